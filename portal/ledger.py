"""The folio's only writer. Lines are appended; the balance is their sum."""

from typing import Literal, TypeVar
from uuid import UUID

from portal.db import Actor, Tx
from portal.models import Payment, Refund
from portal.move import signed

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

# Money that came or went; every other kind is a price. In the order in which people read them.
CASH: tuple[Kind, ...] = ("cash", "cash_returned")
RECEIVED: tuple[Kind, ...] = ("deposit", "payment", "cash")
GIVEN_BACK: tuple[Kind, ...] = (
    *("cash_returned", "refund", "refund_reversed"),
    *("chargeback", "chargeback_reversed"),
)
MONEY: tuple[Kind, ...] = (*RECEIVED, *GIVEN_BACK)

# Lines that raise what the guest owes; every other kind lowers it.
RAISES: frozenset[Kind] = frozenset({"charge", "fee", "cash_returned", "refund", "chargeback"})

Item = Literal["", "lodging_tax", "ticket_book"]
"""What is charged for: the price itself, or what is charged beside it. A book of tickets contains
no tax: what is taxed is each visit that it pays, National Tax Agency, No. 6229."""

OF_THE_STAY: tuple[Item, ...] = ("", "lodging_tax")
"""What a stay costs, and not what was sold on its account beside it."""

# Which rate of consumption tax a line contains. A cancellation fee makes up for what the house
# would have earned, so it is no price of anything and out of the tax's scope: National Tax Agency,
# No. 6253. What is sold has the rate of the day of the service, by the class that a stay's plan had
# when it was booked.
_NO_RATE = "select null::smallint as percent from folio"
_UNTAXED = "select 0::smallint as percent from folio"
_RATE_OF_CLASS = """
    select coalesce((
        select r.percent from consumption_tax_rates r
        where r.tax_class = folio.tax_class
          and r.valid_from <= (folio.day at time zone f.time_zone)::date
        order by r.valid_from desc limit 1
    ), 0)::smallint as percent
    from folio join facilities f on f.id = folio.facility_id
"""
_CLASS = {
    "stays": "tax_class",
    "memberships": "(select p.tax_class from membership_plans p where p.id = plan_id)",
}


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
    item: Item = "",
) -> int | None:
    """Append one line of `amount` > 0 in the smallest unit; the kind gives the sign. A charge
    contains consumption tax at its plan's rate.

    Returns what the guest owed before it, for a caller that holds the stay's lock. None when the
    same fact (payment, refund, form) is booked already.

    The row whose account it is, a stay's or a membership's, is written again as it is: whoever
    decided on this folio from an older snapshot then gets a serialization failure, and not a
    balance that was true before.
    """
    if amount <= 0:
        raise ValueError("a ledger line needs a positive amount")
    table, column = ("stays", "stay_id") if stay_id else ("memberships", "membership_id")
    day = "starts_at" if stay_id else "cast(:at as timestamptz)"
    before: int | None = tx.scalar(
        f"""
        with folio as (
            update {table} set currency = currency where id = :{column}
            returning facility_id, {_CLASS[table]} as tax_class, {day} as day
        ), before as (
            select coalesce(sum(amount), 0) as balance from ledger_lines where {column} = :{column}
        ), rate as ({_rate(kind, item)}), line as (
            insert into ledger_lines (facility_id, {column}, kind, amount, currency, payment_id,
                refund_id, dispute_id, form_key, memo, item, tax_rate, actor_kind, actor_id,
                actor_name, request_id, at)
            values (:facility_id, :{column}, :kind, :amount, :currency, :payment_id, :refund_id,
                :dispute_id, :form_key, :memo, :item, (select percent from rate), :actor_kind,
                :actor_id, :actor_name, :request_id, :at)
            on conflict do nothing
            returning id
        )
        select before.balance from before, line
        """,
        **{column: stay_id or membership_id},
        kind=kind,
        amount=amount if kind in RAISES else -amount,
        currency=currency,
        payment_id=payment_id,
        refund_id=refund_id,
        dispute_id=dispute_id,
        form_key=form_key,
        memo=memo,
        item=item,
        **signed(tx, actor),
    )
    return None if before is None else int(before)


def take_back(tx: Tx, actor: Actor, stay_id: UUID, items: tuple[Item, ...] = OF_THE_STAY) -> None:
    """Reverse what is charged and not reversed yet. A line for each item and rate, so that what is
    left of each is nothing. Of a rate that was reversed by more than was charged at it, the rest is
    charged again."""
    tx.run(
        """
        with folio as (
            update stays set currency = currency where id = :stay
        )
        insert into ledger_lines (facility_id, stay_id, kind, amount, currency, item, tax_rate,
            actor_kind, actor_id, actor_name, request_id, at)
        select l.facility_id, l.stay_id,
            case when sum(l.amount) > 0 then 'charge_reversed' else 'charge' end, -sum(l.amount),
            l.currency, l.item, l.tax_rate, :actor_kind, cast(:actor_id as uuid), :actor_name,
            :request_id, :at
        from ledger_lines l
        where l.stay_id = :stay and l.kind in ('charge', 'charge_reversed')
          and l.item = any(:items)
        group by l.facility_id, l.stay_id, l.currency, l.item, l.tax_rate
        having sum(l.amount) <> 0
        order by l.item, l.tax_rate desc
        """,
        stay=stay_id,
        items=list(items),
        **signed(tx, actor),
    )


def _rate(kind: Kind, item: Item) -> str:
    if kind == "fee" or item:
        return _UNTAXED
    if kind not in ("charge", "charge_reversed"):
        return _NO_RATE
    return _RATE_OF_CLASS


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
