"""The stay's verbs: admitted, departed, cancelled, no-show, reinstated. `bookings` make it."""

from datetime import datetime
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock, ledger, outbox
from portal.db import Actor, Row, Tx, violated
from portal.machines.stay import MACHINE
from portal.models.stay import SPACE_PERIOD
from portal.money import Money
from portal.move import Moved, move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import cancellation
from portal.verbs import (
    blocklist,
    facts,
    gate,
    keys,
    quota,
    refunds_owed,
    ticket_books,
)

DEPOSIT_MISSED = "deposit_missed"
"""Why a stay was cancelled, in its record: before the deadline that was missed."""


def admit(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """reserved → admitted. Orders the door key; the lock worker sets it."""
    stay = _ready(tx, stay_id, "admitted", Code.STAY_ALREADY_ADMITTED, seen)
    if isinstance(stay, Outcome):
        return stay
    request = facts.checkin_request(stay, clock.now(), blocklist.naming(tx, blocklist.person(stay)))
    said = gate.ask(tx, actor, request, stay_id)
    if isinstance(said, Refused):
        return said

    if not _move(tx, actor, stay, "admitted", "admit", admitted_at=request.now):
        return _changed(tx, stay_id)
    keys.order(tx, actor, stay)
    if said.in_vain:
        gate.let_in_though_listed(tx, actor, request, stay_id, said.in_vain)
        return Applied(Code.STAY_ADMITTED_THOUGH_LISTED, to="admitted", subject=stay_id)
    return Applied(Code.STAY_ADMITTED, to="admitted", subject=stay_id)


def depart(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """admitted → departed. Orders the removal of every code; the space rests until it is gone."""
    stay = _ready(tx, stay_id, "departed", Code.STAY_ALREADY_DEPARTED, seen)
    if isinstance(stay, Outcome):
        return stay

    if not _move(tx, actor, stay, "departed", "depart", departed_at=clock.now()):
        return _changed(tx, stay_id)
    keys.revoke_all(tx, actor, stay_id, reason="departed")
    return Applied(Code.STAY_DEPARTED, to="departed", subject=stay_id)


def cancel(tx: Tx, actor: Actor, stay_id: UUID, seen: int, fee: int = 0) -> Outcome:
    """reserved, no_show → cancelled. Reverses the charges, keeps `fee`, owes back what is over."""
    stay = _ready(tx, stay_id, "cancelled", Code.STAY_ALREADY_CANCELLED, seen)
    if isinstance(stay, Outcome):
        return stay
    if not 0 <= fee <= stay.price:
        return Refused(Code.FEE_EXCEEDS_PRICE, {"amount": Money(int(stay.price), stay.currency)})
    return _cancel(tx, actor, stay, fee)


def cancel_as_agreed(
    tx: Tx, actor: Actor, stay_id: UUID, seen: int, fee: int, *, returns: bool
) -> Outcome:
    """reserved → cancelled, by its guest, for what the terms ask. `fee` and `returns` are what the
    page said: where another step has begun since, nothing is done and the new figures are told."""
    stay = _ready(tx, stay_id, "cancelled", Code.STAY_ALREADY_CANCELLED, seen)
    if isinstance(stay, Outcome):
        return stay
    now = clock.now()
    if stay.state != MACHINE.initial or now >= stay.starts_at:
        return Refused(Code.CANCELLATION_TOO_LATE, {"starts_at": stay.starts_at})
    terms = cancellation.steps_of(stay.cancellation_steps)
    if not terms:
        return Refused(Code.CANCELLATION_AT_DESK)
    due = cancellation.consequence(terms, int(stay.price), stay.starts_at, now)
    if (due.fee, due.returns_quota) != (fee, returns):
        return Refused(Code.CANCELLATION_CHANGED, {"amount": Money(due.fee, stay.currency)})
    return _cancel(tx, actor, stay, due.fee)


def miss_deposit(tx: Tx, actor: Actor, stay: Row) -> Outcome:
    """reserved → cancelled, without a fee: what came of the deposit goes back. The caller holds the
    stay, and has seen that its deadline is missed."""
    why = f"{DEPOSIT_MISSED}: {stay.deposit_by.isoformat()}"
    return _cancel(tx, actor, stay, 0, news="deposit_missed", reason=why)


def mark_no_show(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """reserved → no_show. Frees the space; the money stays as it is until somebody cancels."""
    stay = _ready(tx, stay_id, "no_show", Code.STAY_ALREADY_NO_SHOW, seen)
    if isinstance(stay, Outcome):
        return stay
    if clock.now() < stay.starts_at:
        return Refused(Code.STAY_NOT_YET_LATE, {"starts_at": stay.starts_at})

    if not _move(tx, actor, stay, "no_show", "mark_no_show"):
        return _changed(tx, stay_id)
    return Applied(Code.STAY_NO_SHOW, to="no_show", subject=stay_id)


def reinstate(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """no_show → reserved, where the space is still free. Whoever reserves it again holds it without
    a deadline for the deposit: the one that it had is over."""
    stay = _ready(tx, stay_id, "reinstated", Code.STAY_ALREADY_RESERVED, seen)
    if isinstance(stay, Outcome):
        return stay
    if clock.now() >= stay.ends_at:
        return Refused(Code.STAY_WINDOW_OVER, {"ended_at": stay.ends_at})

    try:
        with tx.savepoint():
            moved = _move(tx, actor, stay, "reinstated", "reinstate", deposit_by=None)
    except IntegrityError as fault:
        if violated(fault) != SPACE_PERIOD:
            raise
        return Refused(Code.SPACE_TAKEN)
    if not moved:
        return _changed(tx, stay_id)
    return Applied(Code.STAY_REINSTATED, to="reserved", subject=stay_id)


def _ready(tx: Tx, stay_id: UUID, event: str, already: Code, seen: int) -> Row | Outcome:
    """The locked facts, or the answer: not found, nothing to do, or not what the person saw."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.state in {to for _, name, to in MACHINE.pairs() if name == event}:
        return Noop(already, subject=stay_id)
    if not MACHINE.allows(stay.state, event):
        return _changed(tx, stay_id)
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, stay_id))
    return stay


def _move(
    tx: Tx,
    actor: Actor,
    stay: Row,
    event: str,
    verb: str,
    reason: str | None = None,
    **also: datetime | None,
) -> Moved | None:
    return move(
        tx,
        MACHINE,
        stay.id,
        event=event,
        from_state=stay.state,
        actor=actor,
        verb=verb,
        seen=stay.version,
        reason=reason,
        also=also,
    )


def _changed(tx: Tx, stay_id: UUID) -> Conflict:
    return Conflict(Code.STAY_STATE_CHANGED, standing(tx, MACHINE, stay_id))


def _cancel(
    tx: Tx,
    actor: Actor,
    stay: Row,
    fee: int,
    *,
    news: str = "stay_cancelled",
    reason: str | None = None,
) -> Outcome:
    now = clock.now()
    if not _move(tx, actor, stay, "cancelled", "cancel", reason, cancelled_at=now):
        return _changed(tx, stay.id)
    _settle_cancelled(tx, actor, stay, fee)
    terms = cancellation.steps_of(stay.cancellation_steps)
    if cancellation.visit_returns(terms, stay.starts_at, now):
        _give_visit_back(tx, actor, stay)
    outbox.enqueue(
        tx,
        stay.id,
        news,
        str(stay.id),
        {"fee": fee, "currency": stay.currency},
    )
    return Applied(Code.STAY_CANCELLED, to="cancelled", subject=stay.id)


def _give_visit_back(tx: Tx, actor: Actor, stay: Row) -> None:
    if stay.quota_month:
        quota.give_back(tx, actor, stay)
    if stay.ticket_book_id:
        ticket_books.give_back(tx, actor, stay)


def _settle_cancelled(tx: Tx, actor: Actor, stay: Row, fee: int) -> None:
    """The lodging tax is the town's, and goes back with the night; what was sold beside the stay
    stays sold."""
    charged = int(stay.price) + int(stay.lodging_tax)
    if charged:
        ledger.take_back(tx, actor, stay.id)
    if fee:
        ledger.book(tx, actor, "fee", stay_id=stay.id, amount=fee, currency=stay.currency)
    owed = -(int(stay.balance) - charged + fee)
    if owed > 0:
        refunds_owed.owe_back(tx, actor, stay.id, owed, reason="cancellation")
