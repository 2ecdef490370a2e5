"""Cash at the desk: a line in the folio, with its own verbs."""

from uuid import UUID

from portal import ledger
from portal.db import Actor, Row, Tx
from portal.money import LARGEST, Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import facts, refunds_owed


def take(tx: Tx, actor: Actor, stay_id: UUID, amount: int, form_key: UUID) -> Outcome:
    """Cash in, at most what is due: the desk gives change before it books. Smallest unit."""
    stay = _counter(tx, stay_id, form_key)
    if isinstance(stay, Outcome):
        return stay
    due = max(0, int(stay.balance))
    if due == 0:
        return Noop(Code.NOTHING_DUE, subject=stay_id)
    if stay.payment_processing:
        return Refused(Code.PAYMENT_PENDING)
    if stay.payment_unknown:
        return Refused(Code.PAYMENT_UNKNOWN)
    if not 0 < amount <= min(due, LARGEST):
        return Refused(Code.CASH_EXCEEDS_DUE, {"amount": Money(due, stay.currency)})
    _book(tx, actor, stay, "cash", amount, form_key)
    return Applied(Code.CASH_TAKEN, to="booked", subject=stay_id)


def hand_back(tx: Tx, actor: Actor, stay_id: UUID, amount: int, form_key: UUID) -> Outcome:
    """Cash out: at most what the house owes and what came in as cash. Smallest unit."""
    stay = _counter(tx, stay_id, form_key)
    if isinstance(stay, Outcome):
        return stay
    owed = min(-int(stay.balance) - refunds_owed.in_flight(tx, stay_id), _cash_held(tx, stay_id))
    if not 0 < amount <= owed:
        return Refused(Code.CASH_EXCEEDS_OWED, {"amount": Money(max(0, owed), stay.currency)})
    _book(tx, actor, stay, "cash_returned", amount, form_key)
    return Applied(Code.CASH_RETURNED, to="booked", subject=stay_id)


def _counter(tx: Tx, stay_id: UUID, form_key: UUID) -> Row | Outcome:
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if tx.scalar("select 1 from ledger_lines where form_key = :key", key=form_key):
        return Noop(Code.CASH_ALREADY_BOOKED, subject=stay_id)
    return stay


def _book(tx: Tx, actor: Actor, stay: Row, kind: ledger.Kind, amount: int, form_key: UUID) -> None:
    ledger.book(
        tx,
        actor,
        kind,
        stay_id=stay.id,
        amount=amount,
        currency=stay.currency,
        form_key=form_key,
    )


def _cash_held(tx: Tx, stay_id: UUID) -> int:
    found = tx.scalar(
        """
        select coalesce(-sum(amount), 0) from ledger_lines
        where stay_id = :stay and kind in ('cash', 'cash_returned')
        """,
        stay=stay_id,
    )
    return int(found)
