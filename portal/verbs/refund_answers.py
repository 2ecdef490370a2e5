"""The provider's word on a refund: moves it, books it, takes it back when it failed later."""

from typing import Any
from uuid import UUID

from portal import ledger, outbox
from portal.db import Actor, Tx
from portal.edges.payments.port import Refund as ProviderRefund
from portal.machines.refund import MACHINE
from portal.models import Payment, Refund
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import refunds_owed

PROVIDER = Actor("provider", None, "card provider")


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


def record(tx: Tx, actor: Actor, refund_id: UUID, answer: ProviderRefund) -> Outcome:
    """Move a refund by the provider's word; book it when it succeeded, take that back when it
    failed later."""
    refund = ledger.hold(tx, Refund, refund_id)
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
    if not move_refund(tx, actor, refund, event, also):
        return Conflict(Code.REFUND_STATE_CHANGED, standing(tx, MACHINE, refund_id))
    _after(tx, actor, refund, event)
    code = Code.REFUND_FAILED if to == "failed" else Code.REFUND_SENT
    return Applied(code, to=to, subject=refund_id)


def record_external(tx: Tx, payment_id: UUID, answer: ProviderRefund) -> Outcome:
    """A refund made in the provider's dashboard: a row of its own, then recorded like ours."""
    payment = ledger.hold(tx, Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if answer.currency != payment.currency:
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment_id)})
    known: UUID | None = tx.scalar(
        "select id from refunds where provider_refund_id = :id", id=answer.id
    )
    refund_id = known or refunds_owed.put(tx, PROVIDER, payment, answer.amount, "external")
    return record(tx, PROVIDER, refund_id, answer)


def lost(tx: Tx, actor: Actor, refund_id: UUID, why: str) -> Outcome:
    """pending, succeeded → failed: the provider has no such refund. Asked by a person."""
    refund = tx.get(Refund, refund_id, lock=True)
    if refund is None:
        return Refused(Code.NOT_FOUND)
    if refund.state not in ("pending", "succeeded"):
        return Noop(Code.REFUND_RECORDED, subject=refund_id)
    if not move_refund(tx, actor, refund, "provider_failed", {"failure": why}):
        return Conflict(Code.REFUND_STATE_CHANGED, standing(tx, MACHINE, refund_id))
    _after(tx, actor, refund, "provider_failed")
    return Applied(Code.REFUND_FAILED, to="failed", subject=refund_id)


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


def move_refund(tx: Tx, actor: Actor, refund: Refund, event: str, also: dict[str, Any]) -> bool:
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
        withdraw(tx, actor, refund)


def _book(tx: Tx, actor: Actor, refund: Refund) -> None:
    _line(tx, actor, refund, "refund")
    if refund.lowers_price:
        _line(tx, actor, refund, "charge_reversed", memo="concession")
    payment = tx.get(Payment, refund.payment_id, lock=True)
    if payment is not None:
        refunds_owed.close_if_returned(tx, actor, payment)
    _tell(tx, refund, "refund_sent")


def _unbook(tx: Tx, actor: Actor, refund: Refund) -> None:
    """It had succeeded and the bank sent it back: the line is reversed, the guest corrected."""
    if refund.state != "succeeded":
        return
    _line(tx, actor, refund, "refund_reversed")
    if refund.lowers_price:
        _line(tx, actor, refund, "charge", memo="concession reversed")
    _tell(tx, refund, "refund_failed")


def _tell(tx: Tx, refund: Refund, news: str) -> None:
    """In the words of a stay, or in those of a membership."""
    outbox.enqueue(
        tx,
        refund.stay_id,
        f"membership_{news}" if refund.membership_id else news,
        str(refund.id),
        {"amount": refund.amount, "currency": refund.currency},
        membership_id=refund.membership_id,
    )


def _line(tx: Tx, actor: Actor, refund: Refund, kind: ledger.Kind, memo: str = "") -> None:
    ledger.book(
        tx,
        actor,
        kind,
        stay_id=refund.stay_id,
        membership_id=refund.membership_id,
        amount=refund.amount,
        currency=refund.currency,
        refund_id=refund.id if kind in ("refund", "refund_reversed") else None,
        memo=memo,
    )


def withdraw(tx: Tx, actor: Actor, refund: Refund) -> None:
    """The payment no longer counts as being returned in full."""
    payment = tx.get(Payment, refund.payment_id, lock=True)
    if payment is not None and payment.state in ("refund_owed", "refunded"):
        refunds_owed.move_payment(tx, actor, payment, "refund_withdrawn")
