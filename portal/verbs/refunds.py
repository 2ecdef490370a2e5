"""The refund's verbs. A row first, whose id is the key at the provider for ever; then the
provider; then the ledger."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from portal import ledger, outbox
from portal.db import Actor, Tx
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.payments.port import Refund as ProviderRefund
from portal.machines.payment import MACHINE as PAYMENT
from portal.machines.refund import MACHINE
from portal.models import Payment, Refund
from portal.money import LARGEST, Money
from portal.move import create as create_row
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs.desk import Desk

PROVIDER = Actor("provider", None, "card provider")

COUNTED = ("asked", "unknown", "pending", "succeeded")
"""Refunds that use up what can be refunded: only a failed one gives it back."""

LEASE = timedelta(seconds=60)

_EVENTS: dict[str, dict[str, str]] = {
    "asked": {
        "pending": "accepted",
        "requires_action": "accepted",
        "succeeded": "provider_succeeded",
        "failed": "provider_refused",
        "canceled": "provider_refused",
    },
    "unknown": {
        "pending": "accepted",
        "requires_action": "accepted",
        "succeeded": "provider_succeeded",
        "failed": "provider_refused",
        "canceled": "provider_refused",
    },
    "pending": {
        "succeeded": "provider_succeeded",
        "failed": "provider_failed",
        "canceled": "provider_failed",
    },
    "succeeded": {"failed": "provider_failed", "canceled": "provider_failed"},
}


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
        return Refused(Code.REFUND_UNAVAILABLE)
    except Rejected as fault:
        return _rejected(desk, actor, refund, fault)
    with desk.transaction() as tx:
        return record(tx, PROVIDER, refund_id, answer)


def record(tx: Tx, actor: Actor, refund_id: UUID, answer: ProviderRefund) -> Outcome:
    """Move a refund by the provider's word; book it when it succeeded, take that back when it
    failed later."""
    ledger.hold(tx, "refund", refund_id)
    refund = tx.get(Refund, refund_id, lock=True)
    if refund is None:
        return Refused(Code.NOT_FOUND)
    if answer.amount != refund.amount or answer.currency != refund.currency:
        return Refused(Code.AMOUNT_MISMATCH, {"refund": str(refund_id)})
    event = _EVENTS.get(refund.state, {}).get(answer.status)
    if event is None:
        return Noop(Code.REFUND_RECORDED, subject=refund_id)
    also = {
        "provider_refund_id": answer.id,
        "failure": answer.failure_reason,
        "claimed_at": None,
        "claim_token": None,
    }
    to = MACHINE.target(refund.state, event)
    if not _move(tx, actor, refund, event, also):
        return Conflict(Code.REFUND_STATE_CHANGED, standing(tx, MACHINE, refund_id))
    _after(tx, actor, refund, event)
    code = Code.REFUND_FAILED if to == "failed" else Code.REFUND_SENT
    return Applied(code, to=to, subject=refund_id)


def record_external(tx: Tx, payment_id: UUID, answer: ProviderRefund) -> Outcome:
    """A refund made in the provider's dashboard: a row of its own, then recorded like ours."""
    ledger.hold(tx, "payment", payment_id)
    payment = tx.get(Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if answer.currency != payment.currency:
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment_id)})
    known: UUID | None = tx.scalar(
        "select id from refunds where provider_refund_id = :id", id=answer.id
    )
    refund_id = known or _insert(tx, PROVIDER, payment, answer.amount, "external")
    return record(tx, PROVIDER, refund_id, answer)


def hear(tx: Tx, payment_id: UUID, answer: ProviderRefund) -> Outcome:
    """The provider speaks of a refund of this payment: ours by its metadata, else an external."""
    named = answer.metadata.get("refund_id", "")
    ours: UUID | None = tx.scalar(
        "select id from refunds where payment_id = :payment and (id::text = :named"
        " or provider_refund_id = :id)",
        payment=payment_id,
        named=named,
        id=answer.id,
    )
    if ours is not None:
        return record(tx, PROVIDER, ours, answer)
    return record_external(tx, payment_id, answer)


def owe(tx: Tx, actor: Actor, payment_id: UUID, amount: int, *, reason: str) -> None:
    """Put a refund that the house owes; the worker sends it. A whole payment is `refund_owed`
    until its money is back."""
    payment = tx.get(Payment, payment_id, lock=True)
    if payment is None:
        raise LookupError("a refund is owed on a payment that is not in scope")
    left = payment.amount - _counted(tx, payment_id)
    if left <= 0:
        return
    owed = min(left, amount)
    _insert(tx, actor, payment, owed, reason)
    if owed == payment.amount and payment.state == "succeeded":
        _move_payment(tx, actor, payment, "refund_owed")
    tx.ring("refunds")


def owe_back(tx: Tx, actor: Actor, stay_id: UUID, amount: int, *, reason: str) -> None:
    """Owe `amount` back over the stay's card payments, newest first. What was paid in cash stays
    on the folio as owed, for the desk to hand out. What is on its way back already counts."""
    amount -= in_flight(tx, stay_id)
    rows = tx.rows(
        """
        select p.id, p.amount - coalesce((
            select sum(r.amount) from refunds r
            where r.payment_id = p.id and r.state = any(:counted)
        ), 0) as refundable
        from payments p
        where p.stay_id = :stay and p.state = 'succeeded'
        order by p.succeeded_at desc, p.id
        """,
        stay=stay_id,
        counted=list(COUNTED),
    )
    for row in rows:  # the card payments of one stay
        part = min(amount, int(row.refundable))
        if part > 0:
            owe(tx, actor, row.id, part, reason=reason)
            amount -= part


def in_flight(tx: Tx, stay_id: UUID) -> int:
    """What is being returned on a stay and not yet in its folio, in the smallest unit. A
    concession lowers the price by as much, so it leaves the balance as it is."""
    found = tx.scalar(
        """
        select coalesce(sum(amount), 0) from refunds
        where stay_id = :stay and state in ('asked', 'unknown', 'pending') and not lowers_price
        """,
        stay=stay_id,
    )
    return int(found)


def refundable(tx: Tx, payment: Payment) -> int:
    """What of this payment can still be returned, in the smallest unit."""
    if payment.state not in ("succeeded", "refund_owed"):
        return 0
    return payment.amount - _counted(tx, payment.id)


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
    if _sum(tx, payment_id, ("unknown",)):
        return Refused(Code.REFUND_UNKNOWN)
    left = refundable(tx, payment)
    if left <= 0:
        return Refused(Code.NOTHING_TO_REFUND)
    if not 0 < amount <= min(left, LARGEST):
        return Refused(Code.REFUND_EXCEEDS_PAID, {"amount": Money(left, payment.currency)})
    refund_id = _insert(
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
            _move(tx, actor, now, "answer_lost", {"last_error": str(fault)[:500]})
            tx.ring("refunds")
    return Refused(Code.REFUND_UNKNOWN)


def _rejected(desk: Desk, actor: Actor, refund: Refund, fault: EdgeError) -> Outcome:
    with desk.transaction() as tx:
        now = tx.get(Refund, refund.id, lock=True)
        if now is not None and now.state in ("asked", "unknown"):
            also = {"failure": fault.code or "rejected", "last_error": str(fault)[:500]}
            _move(tx, actor, now, "provider_refused", also)
            _withdraw(tx, actor, now)
    return Refused(Code.REFUND_UNAVAILABLE)


def _give_up(desk: Desk, actor: Actor, refund_id: UUID) -> None:
    """asked → failed: nothing was sent, and the person has been told so."""
    with desk.transaction() as tx:
        refund = tx.get(Refund, refund_id, lock=True)
        if refund is not None and refund.state == "asked":
            _move(tx, actor, refund, "provider_refused", {"failure": "unreachable"})


def _note_error(desk: Desk, refund_id: UUID, fault: EdgeError) -> None:
    with desk.transaction() as tx:
        tx.run(
            "update refunds set last_error = :error where id = :id",
            error=str(fault)[:500],
            id=refund_id,
        )


def _insert(tx: Tx, actor: Actor, payment: Payment, amount: int, reason: str, **more: Any) -> UUID:
    refund_id = uuid4()
    create_row(
        tx,
        MACHINE,
        actor,
        "refund",
        {
            "id": refund_id,
            "facility_id": tx.facility_id,
            "payment_id": payment.id,
            "stay_id": payment.stay_id,
            "amount": amount,
            "currency": payment.currency,
            "reason": reason,
            **more,
        },
    )
    return refund_id


def _move(tx: Tx, actor: Actor, refund: Refund, event: str, also: dict[str, Any]) -> bool:
    moved = move(
        tx,
        MACHINE,
        refund.id,
        event=event,
        from_state=refund.state,
        actor=actor,
        verb="refund",
        also=also,
    )
    return moved is not None


def _after(tx: Tx, actor: Actor, refund: Refund, event: str) -> None:
    if event == "provider_succeeded":
        _book(tx, actor, refund)
    elif event in ("provider_failed", "provider_refused"):
        _unbook(tx, actor, refund)
        _withdraw(tx, actor, refund)


def _book(tx: Tx, actor: Actor, refund: Refund) -> None:
    if refund.stay_id is None:
        raise LookupError("a refund of this kind has no folio yet")
    _line(tx, actor, refund, "refund")
    if refund.lowers_price:
        _line(tx, actor, refund, "charge_reversed", memo="concession")
    payment = tx.get(Payment, refund.payment_id, lock=True)
    if payment is not None and _returned(tx, payment.id) == payment.amount:
        if payment.state == "succeeded":
            _move_payment(tx, actor, payment, "refund_owed")
            payment = tx.get(Payment, refund.payment_id)
        if payment is not None and payment.state == "refund_owed":
            _move_payment(tx, actor, payment, "refunded_in_full")
    outbox.enqueue(
        tx,
        outbox.contact_of(tx, refund.stay_id),
        "refund_sent",
        str(refund.id),
        {"amount": refund.amount, "currency": refund.currency},
    )


def _unbook(tx: Tx, actor: Actor, refund: Refund) -> None:
    """It had succeeded and the bank sent it back: the line is reversed, the guest corrected."""
    if refund.state != "succeeded" or refund.stay_id is None:
        return
    _line(tx, actor, refund, "refund_reversed")
    if refund.lowers_price:
        _line(tx, actor, refund, "charge", memo="concession reversed")
    outbox.enqueue(
        tx,
        outbox.contact_of(tx, refund.stay_id),
        "refund_failed",
        str(refund.id),
        {"amount": refund.amount, "currency": refund.currency},
    )


def _line(tx: Tx, actor: Actor, refund: Refund, kind: ledger.Kind, memo: str = "") -> None:
    if refund.stay_id is None:
        raise LookupError("a refund of this kind has no folio yet")
    ledger.book(
        tx,
        actor,
        kind,
        stay_id=refund.stay_id,
        amount=refund.amount,
        currency=refund.currency,
        refund_id=refund.id if kind in ("refund", "refund_reversed") else None,
        memo=memo,
    )


def _withdraw(tx: Tx, actor: Actor, refund: Refund) -> None:
    """The payment no longer counts as being returned in full."""
    payment = tx.get(Payment, refund.payment_id, lock=True)
    if payment is not None and payment.state in ("refund_owed", "refunded"):
        _move_payment(tx, actor, payment, "refund_withdrawn")


def _move_payment(tx: Tx, actor: Actor, payment: Payment, event: str) -> None:
    move(
        tx,
        PAYMENT,
        payment.id,
        event=event,
        from_state=payment.state,
        actor=actor,
        verb="refund",
    )


def _counted(tx: Tx, payment_id: UUID) -> int:
    return _sum(tx, payment_id, COUNTED)


def _returned(tx: Tx, payment_id: UUID) -> int:
    return _sum(tx, payment_id, ("succeeded",))


def _sum(tx: Tx, payment_id: UUID, states: tuple[str, ...]) -> int:
    found = tx.scalar(
        """
        select coalesce(sum(amount), 0) from refunds
        where payment_id = :payment and state = any(:states)
        """,
        payment=payment_id,
        states=list(states),
    )
    return int(found)
