"""The folio's only writer. Lines are appended; the balance is their sum."""

from typing import Literal, TypeVar
from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.log import request_id
from portal.models import Payment, Refund

Entry = TypeVar("Entry", Payment, Refund)

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
    "chargeback",
    "chargeback_reversed",
]

# Lines that raise what the guest owes; every other kind lowers it.
RAISES: frozenset[Kind] = frozenset({"charge", "fee", "cash_returned", "refund", "chargeback"})


def book(
    tx: Tx,
    actor: Actor,
    kind: Kind,
    *,
    stay_id: UUID | None = None,
    membership_id: UUID | None = None,
    amount: int,
    currency: str,
    payment_id: UUID | None = None,
    refund_id: UUID | None = None,
    dispute_id: UUID | None = None,
    form_key: UUID | None = None,
    memo: str = "",
) -> int | None:
    """Append one line of `amount` > 0 in the smallest unit; the kind gives the sign.

    Returns what the guest owed before it, for a caller that holds the stay's lock. None when the
    same fact (payment, refund, form) is booked already.

    The row whose account it is, a stay's or a membership's, is written again as it is: whoever
    decided on this folio from an older snapshot then gets a serialization failure, and not a
    balance that was true before.
    """
    if amount <= 0:
        raise ValueError("a ledger line needs a positive amount")
    table, column = ("stays", "stay_id") if stay_id else ("memberships", "membership_id")
    before: int | None = tx.scalar(
        f"""
        with folio as (
            update {table} set currency = currency where id = :{column}
        ), before as (
            select coalesce(sum(amount), 0) as balance from ledger_lines where {column} = :{column}
        ), line as (
            insert into ledger_lines (facility_id, {column}, kind, amount, currency, payment_id,
                refund_id, dispute_id, form_key, memo, actor_kind, actor_id, actor_name,
                request_id, at)
            values (:facility_id, :{column}, :kind, :amount, :currency, :payment_id, :refund_id,
                :dispute_id, :form_key, :memo, :actor_kind, :actor_id, :actor_name,
                :request_id, :at)
            on conflict do nothing
            returning id
        )
        select before.balance from before, line
        """,
        facility_id=tx.facility_id,
        **{column: stay_id or membership_id},
        kind=kind,
        amount=amount if kind in RAISES else -amount,
        currency=currency,
        payment_id=payment_id,
        refund_id=refund_id,
        dispute_id=dispute_id,
        form_key=form_key,
        memo=memo,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=request_id(),
        at=clock.now(),
    )
    return None if before is None else int(before)


def is_charged(tx: Tx, membership_id: UUID, invoice_id: str | None) -> bool:
    """Two invoices may speak of one period; each is charged for, once."""
    found = tx.scalar(
        """
        select 1 from ledger_lines
        where membership_id = :membership and kind = 'charge' and memo = :invoice
        """,
        membership=membership_id,
        invoice=invoice_id,
    )
    return found is not None


def hold(tx: Tx, kind: type[Entry], row_id: UUID) -> Entry | None:
    """The payment or refund, locked after the stay or membership to whose folio it belongs: in this
    order everywhere, so that two verbs on one of them wait and never deadlock."""
    table = kind.__tablename__
    folio = f"""
        select id from (
            select s.id from stays s join {table} x on x.stay_id = s.id
            where x.id = :id
            for no key update of s
        ) stay
        union all
        select id from (
            select m.id from memberships m join {table} x on x.membership_id = m.id
            where x.id = :id
            for no key update of m
        ) membership
    """
    return tx.get(kind, row_id, lock=True, first=folio)
