"""The folio's only writer. Lines are appended; the balance is their sum."""

from typing import Literal
from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.log import request_id

Kind = Literal[
    "charge",
    "charge_reversed",
    "fee",
    "deposit",
    "payment",
    "cash",
    "cash_returned",
    "refund",
    "refund_reversed",
]

# Lines that raise what the guest owes; every other kind lowers it.
RAISES: frozenset[Kind] = frozenset({"charge", "fee", "cash_returned", "refund"})


def book(
    tx: Tx,
    actor: Actor,
    kind: Kind,
    *,
    stay_id: UUID,
    amount: int,
    currency: str,
    payment_id: UUID | None = None,
    refund_id: UUID | None = None,
    form_key: UUID | None = None,
    memo: str = "",
) -> bool:
    """Append one line of `amount` > 0 in the smallest unit; the kind gives the sign.

    False when the same fact (payment, refund, form) is booked already.
    """
    if amount <= 0:
        raise ValueError("a ledger line needs a positive amount")
    made = tx.run(
        """
        insert into ledger_lines (facility_id, stay_id, kind, amount, currency, payment_id,
            refund_id, form_key, memo, actor_kind, actor_id, actor_name, request_id, at)
        values (:facility_id, :stay_id, :kind, :amount, :currency, :payment_id, :refund_id,
            :form_key, :memo, :actor_kind, :actor_id, :actor_name, :request_id, :at)
        on conflict do nothing
        """,
        facility_id=tx.facility_id,
        stay_id=stay_id,
        kind=kind,
        amount=amount if kind in RAISES else -amount,
        currency=currency,
        payment_id=payment_id,
        refund_id=refund_id,
        form_key=form_key,
        memo=memo,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=request_id(),
        at=clock.now(),
    )
    return bool(made.rowcount)


def balance(tx: Tx, stay_id: UUID) -> int:
    """What the guest owes, in the smallest unit; negative is what the house owes."""
    found = tx.scalar(
        "select coalesce(sum(amount), 0) from ledger_lines where stay_id = :stay", stay=stay_id
    )
    return int(found)
