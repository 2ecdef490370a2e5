"""Disputes: a card's bank takes a payment back, and may give it up again. The provider's word is
followed; the house answers the bank in the provider's own pages."""

from uuid import UUID

from portal import ledger
from portal.db import Actor, Row, Tx
from portal.edges.errors import EdgeError
from portal.edges.payments.port import Dispute as Told
from portal.models import Dispute, Payment
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import dispute_progress, payment_progress
from portal.verbs import refunds_owed
from portal.verbs.desk import Desk
from portal.verbs.payment_answers import PROVIDER


def hear(tx: Tx, payment_id: UUID, told: Told) -> Outcome:
    """The provider speaks of a dispute of this payment: noted, and booked where money moved. An
    older word after a younger changes nothing."""
    payment = ledger.hold(tx, Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if told.currency != payment.currency or not 0 < told.amount <= payment.amount:
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment_id)})
    dispute = _noted(tx, payment_id, told)
    if dispute is None:
        return Noop(Code.DISPUTE_ALREADY_RECORDED, subject=payment_id)
    _follow_the_money(tx, payment, dispute)
    return Applied(Code.DISPUTE_RECORDED, to=told.status, subject=payment_id)


def ask(desk: Desk, actor: Actor, payment_id: UUID) -> Outcome:
    """Ask the provider what has become of a payment's disputes, and follow its word."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, payment_id)
    if payment is None or payment.intent_id is None:
        return Refused(Code.NOT_FOUND)
    try:
        found = desk.payments.disputes_of(payment.intent_id)
    except EdgeError:
        return Refused(Code.BILLING_UNAVAILABLE)
    with desk.transaction() as tx:
        said = [hear(tx, payment_id, told) for told in found]
    refused = [one for one in said if isinstance(one, Refused)]
    if refused:
        return refused[0]
    moved = [one for one in said if isinstance(one, Applied)]
    return moved[-1] if moved else Noop(Code.DISPUTE_ALREADY_RECORDED, subject=payment_id)


def _noted(tx: Tx, payment_id: UUID, told: Told) -> Row | None:
    """The dispute as it now is; None where this word is not younger than the last. Each of the two
    writers of a payment holds it, so no other is between the look and the write."""
    was = tx.row("select id, status from disputes where provider_dispute_id = :id", id=told.id)
    if was is None:
        dispute_id = tx.add(
            Dispute,
            facility_id=tx.facility_id,
            payment_id=payment_id,
            provider_dispute_id=told.id,
            amount=told.amount,
            currency=told.currency,
            status=told.status,
            refundable=told.refundable,
            reason=told.reason,
            opened_at=told.created,
            answer_by=told.answer_by,
            livemode=told.livemode,
        )
    elif dispute_progress.moves_on(was.status, told.status):
        dispute_id = was.id
        tx.run(
            """
            update disputes set status = :status, refundable = :refundable, answer_by = :answer_by
            where id = :id
            """,
            id=dispute_id,
            status=told.status,
            refundable=told.refundable,
            answer_by=told.answer_by,
        )
    else:
        return None
    return tx.row("select id, amount, currency, status from disputes where id = :id", id=dispute_id)


def _follow_the_money(tx: Tx, payment: Payment, dispute: Row) -> None:
    """Taken by the bank, the guest owes it again. Given back, what nobody owes goes to the guest
    as any payment too many does."""
    if dispute_progress.bank_has_it(dispute.status):
        _book(tx, payment, dispute, "chargeback")
    elif dispute.status == "won" and _was_taken(tx, dispute.id):
        before = _book(tx, payment, dispute, "chargeback_reversed")
        over = payment_progress.surplus(dispute.amount, before) if before is not None else 0
        if over:
            refunds_owed.owe(tx, PROVIDER, payment.id, over, reason="surplus")


def _was_taken(tx: Tx, dispute_id: UUID) -> bool:
    found = tx.scalar("select 1 from ledger_lines where dispute_id = :id", id=dispute_id)
    return found is not None


def _book(tx: Tx, payment: Payment, dispute: Row, kind: ledger.Kind) -> int | None:
    return ledger.book(
        tx,
        PROVIDER,
        kind,
        stay_id=payment.stay_id,
        membership_id=payment.membership_id,
        amount=dispute.amount,
        currency=dispute.currency,
        dispute_id=dispute.id,
    )
