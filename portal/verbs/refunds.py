"""The refund's verbs. A row first, whose id is the key at the provider for ever; then the
provider; then the ledger."""

from datetime import timedelta
from uuid import UUID

from portal.db import Actor, Tx
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.payments.port import Refund as ProviderRefund
from portal.models import Payment, Refund
from portal.money import LARGEST, Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import refund_answers, refunds_owed
from portal.verbs.desk import Desk
from portal.verbs.refund_answers import PROVIDER

LEASE = timedelta(seconds=60)

OUT_OF_REACH = {"unknown": Code.REFUND_UNKNOWN, "pending": Code.REFUND_PENDING}
"""What a question that reached nobody leaves true. Of a refund that was never sent: no money has
moved."""


def ask(
    desk: Desk,
    actor: Actor,
    payment_id: UUID,
    amount: int,
    form_key: UUID,
    *,
    lowers_price: bool = False,
) -> Outcome:
    """A person returns money: → asked, then the provider, then its word. `amount` in the smallest
    unit. Out of reach: refused and over. Answer lost: unknown, and only the provider resolves it.
    """
    with desk.transaction() as tx:
        asked = _ask_row(tx, actor, payment_id, amount, form_key, lowers_price)
    if not isinstance(asked, Applied) or asked.subject is None:
        return asked
    said = send(desk, actor, asked.subject)
    if isinstance(said, Refused) and said.code is Code.REFUND_UNAVAILABLE:
        _give_up(desk, actor, asked.subject)
    return said


def send(desk: Desk, actor: Actor, refund_id: UUID) -> Outcome:
    """One refund's leg, under its own key, and its settlement. Reads the far side first where an
    earlier answer may have been lost."""
    with desk.transaction() as tx:
        refund = tx.get(Refund, refund_id)
        payment = tx.get(Payment, refund.payment_id) if refund else None
    if refund is None or payment is None or payment.intent_id is None:
        return Refused(Code.NOT_FOUND)
    try:
        answer = _leg(desk, refund, payment.intent_id)
    except Unknown as fault:
        return _lost(desk, actor, refund, fault)
    except Unreachable as fault:
        _note_error(desk, refund_id, fault)
        return Refused(OUT_OF_REACH.get(refund.state, Code.REFUND_UNAVAILABLE))
    except Rejected as fault:
        return _rejected(desk, actor, refund, fault)
    with desk.transaction() as tx:
        return refund_answers.record(tx, PROVIDER, refund_id, answer)


def _ask_row(
    tx: Tx,
    actor: Actor,
    payment_id: UUID,
    amount: int,
    form_key: UUID,
    lowers_price: bool,
) -> Outcome:
    payment = tx.get(Payment, payment_id, lock=True)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    again = tx.row("select id, state from refunds where form_key = :key", key=form_key)
    if again is not None:
        return Noop(Code.REFUND_ALREADY_ASKED, subject=again.id)
    # A person who sees no answer presses again, on a fresh form: that would pay twice.
    if refunds_owed.of(tx, payment_id, ("unknown",)):
        return Refused(Code.REFUND_UNKNOWN)
    if refunds_owed.disputed(tx, payment_id):
        return Refused(Code.PAYMENT_DISPUTED)
    left = refunds_owed.refundable(tx, payment)
    if left <= 0:
        return Refused(Code.NOTHING_TO_REFUND)
    if not 0 < amount <= min(left, LARGEST):
        return Refused(Code.REFUND_EXCEEDS_PAID, {"amount": Money(left, payment.currency)})
    refund_id = refunds_owed.put(
        tx,
        actor,
        payment,
        amount,
        "staff",
        form_key=form_key,
        lowers_price=lowers_price,
    )
    # The leg is ours for a while; should this process die, the worker takes it from there.
    tx.run(
        "update refunds set next_attempt_at = now() + :lease where id = :id",
        lease=LEASE,
        id=refund_id,
    )
    return Applied(Code.REFUND_SENT, to="asked", subject=refund_id)


def _leg(desk: Desk, refund: Refund, intent_id: str) -> ProviderRefund:
    """Provider keys may be pruned after a day, so whatever may have been sent before is looked
    for among the charge's refunds first (Stripe, "Idempotent requests")."""
    if refund.provider_refund_id is not None:
        return desk.payments.retrieve_refund(refund.provider_refund_id)
    if _may_have_been_sent(refund):
        for known in desk.payments.refunds_of(intent_id):
            if known.metadata.get("refund_id") == str(refund.id):
                return known
    return desk.payments.create_refund(
        key=str(refund.id),
        intent_id=intent_id,
        amount=refund.amount,
        metadata={
            "refund_id": str(refund.id),
            "payment_id": str(refund.payment_id),
            "facility": str(refund.facility_id),
        },
    )


def _may_have_been_sent(refund: Refund) -> bool:
    """A person's refund is sent once by the verb itself, before the worker counts an attempt."""
    sent_by_verb = refund.form_key is not None and refund.attempts > 0
    return refund.state == "unknown" or refund.attempts > 1 or sent_by_verb


def _lost(desk: Desk, actor: Actor, refund: Refund, fault: EdgeError) -> Outcome:
    with desk.transaction() as tx:
        now = tx.get(Refund, refund.id, lock=True)
        if now is not None and now.state == "asked":
            refund_answers.move_refund(
                tx, actor, now, "answer_lost", {"last_error": str(fault)[:500]}
            )
            tx.ring("refunds")
    return Refused(Code.REFUND_UNKNOWN)


def _rejected(desk: Desk, actor: Actor, refund: Refund, fault: EdgeError) -> Outcome:
    with desk.transaction() as tx:
        now = tx.get(Refund, refund.id, lock=True)
        if now is not None and now.state in ("asked", "unknown"):
            also = {"failure": fault.code or "rejected", "last_error": str(fault)[:500]}
            refund_answers.move_refund(tx, actor, now, "provider_refused", also)
            refund_answers.withdraw(tx, actor, now)
    return Refused(Code.REFUND_UNAVAILABLE)


def _give_up(desk: Desk, actor: Actor, refund_id: UUID) -> None:
    """asked → failed: nothing was sent, and the person has been told so."""
    with desk.transaction() as tx:
        refund = tx.get(Refund, refund_id, lock=True)
        if refund is not None and refund.state == "asked":
            refund_answers.move_refund(
                tx, actor, refund, "provider_refused", {"failure": "unreachable"}
            )


def _note_error(desk: Desk, refund_id: UUID, fault: EdgeError) -> None:
    with desk.transaction() as tx:
        tx.run(
            "update refunds set last_error = :error where id = :id",
            error=str(fault)[:500],
            id=refund_id,
        )
