"""What can be returned of a payment, and what the house owes: rows that the worker sends."""

from typing import Any
from uuid import UUID, uuid4

from portal.db import Actor, Tx
from portal.machines.payment import MACHINE as PAYMENT
from portal.machines.refund import MACHINE
from portal.models import Payment
from portal.move import create as create_row
from portal.move import move

COUNTED = ("asked", "unknown", "pending", "succeeded")
"""Refunds that use up what can be refunded: only a failed one gives it back."""


def owe(tx: Tx, actor: Actor, payment_id: UUID, amount: int, *, reason: str) -> None:
    """Put a refund that the house owes; the worker sends it. A whole payment is `refund_owed`
    until its money is back. While the card's bank has it, it is the bank's to give."""
    payment = tx.get(Payment, payment_id, lock=True)
    if payment is None:
        raise LookupError("a refund is owed on a payment that is not in scope")
    left = payment.amount - _counted(tx, payment_id)
    if left <= 0 or disputed(tx, payment_id):
        return
    owed = min(left, amount)
    put(tx, actor, payment, owed, reason)
    if owed == payment.amount and payment.state == "succeeded":
        move_payment(tx, actor, payment, "refund_owed")
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
          and not exists (select 1 from disputes d where d.payment_id = p.id and not d.refundable)
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
    if payment.state not in ("succeeded", "refund_owed") or disputed(tx, payment.id):
        return 0
    return payment.amount - _counted(tx, payment.id)


def disputed(tx: Tx, payment_id: UUID) -> bool:
    """The card's bank has taken it back, or may: nothing of it can be refunded beside that."""
    found = tx.scalar(
        "select exists (select 1 from disputes where payment_id = :payment and not refundable)",
        payment=payment_id,
    )
    return bool(found)


def put(tx: Tx, actor: Actor, payment: Payment, amount: int, reason: str, **more: Any) -> UUID:
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
            "membership_id": payment.membership_id,
            "amount": amount,
            "currency": payment.currency,
            "reason": reason,
            **more,
        },
    )
    return refund_id


def close_if_returned(tx: Tx, actor: Actor, payment: Payment) -> None:
    """succeeded, refund_owed → refunded, once all of it is back. The word of a refund may overtake
    that of the payment itself, so both ask."""
    if returned(tx, payment.id) != payment.amount:
        return
    now = tx.get(Payment, payment.id, lock=True)
    if now is not None and now.state == "succeeded":
        move_payment(tx, actor, now, "refund_owed")
        now = tx.get(Payment, payment.id)
    if now is not None and now.state == "refund_owed":
        move_payment(tx, actor, now, "refunded_in_full")


def move_payment(tx: Tx, actor: Actor, payment: Payment, event: str) -> None:
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
    return of(tx, payment_id, COUNTED)


def returned(tx: Tx, payment_id: UUID) -> int:
    return of(tx, payment_id, ("succeeded",))


def of(tx: Tx, payment_id: UUID, states: tuple[str, ...]) -> int:
    """The sum of this payment's refunds in these states, in the smallest unit."""
    found = tx.scalar(
        """
        select coalesce(sum(amount), 0) from refunds
        where payment_id = :payment and state = any(:states)
        """,
        payment=payment_id,
        states=list(states),
    )
    return int(found)
