"""Card payments in a list and one by one, and what a day's money adds up to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from portal import ledger
from portal.db import Row, Tx
from portal.queries import keyset
from portal.queries.keyset import BEGINNING, Cursor, Page

SHOWN = """
    p.id, p.purpose, p.attempt, p.amount, p.currency, p.state, p.decline_code, p.authorised_at,
    p.created_at, p.succeeded_at, p.stay_id, p.membership_id, s.code as stay_code,
    coalesce(g.name, n.name) as guest,
    coalesce((select sum(r.amount) from refunds r
              where r.payment_id = p.id and r.state = 'succeeded'), 0)::bigint as returned,
    coalesce((select sum(r.amount) from refunds r where r.payment_id = p.id
              and r.state in ('asked', 'unknown', 'pending')), 0)::bigint as returning
"""
"""What is said of a payment `p`, its stay `s` and its guest `g`: `returned` is back with the guest,
`returning` on its way."""

FROM = """
    left join stays s on s.id = p.stay_id
    left join guests g on g.id = s.guest_id
    left join memberships m on m.id = p.membership_id
    left join members r on r.id = m.member_id
    left join guests n on n.id = r.guest_id
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list. `during`: [start, end)."""

    state: str = ""
    during: tuple[datetime, datetime] | None = None
    cursor: Cursor = BEGINNING


@dataclass(frozen=True, slots=True)
class PaymentPage:
    """`refundable`: what can still be returned, in the smallest unit."""

    payment: Row
    refunds: Sequence[Row]
    disputes: Sequence[Row]

    @property
    def refundable(self) -> int:
        if self.payment.state not in ("succeeded", "refund_owed") or self.disputed:
            return 0
        return int(self.payment.amount - self.payment.returned - self.payment.returning)

    @property
    def disputed(self) -> bool:
        """The card's bank has taken it back, or may: nothing can be returned beside that."""
        return any(not dispute.refundable for dispute in self.disputes)

    @property
    def owed(self) -> int:
        """What of it the house owes the guest by the folio: the usual reason for a refund."""
        return min(self.refundable, max(0, -int(self.payment.balance)))

    @property
    def doubtful(self) -> bool:
        """The answer to a refund was lost: nothing more is returned until it is known."""
        return any(refund.state == "unknown" for refund in self.refunds)


def page(tx: Tx, wanted: Wanted, size: int = keyset.SIZE) -> Page:
    """Latest first: one statement whatever the table holds, and no count."""
    direction = wanted.cursor.direction
    conditions, params = _conditions(wanted)
    found = tx.rows(
        f"""
        with found as materialized (
            select p.id from payments p
            where {conditions}
            order by p.created_at {direction}, p.id {direction}
            limit :size
        )
        select {SHOWN}
        from found join payments p on p.id = found.id {FROM}
        order by p.created_at desc, p.id desc
        """,
        size=size + 1,
        **params,
    )
    return keyset.cut(found, wanted.cursor, size)


def _conditions(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    beyond, params = wanted.cursor.condition("payments", "p")
    parts = [beyond]
    if wanted.state:
        parts.append("p.state = :state")
        params["state"] = wanted.state
    if wanted.during:
        parts.append("p.created_at >= :day_start and p.created_at < :day_end")
        params["day_start"], params["day_end"] = wanted.during
    return " and ".join(f"({part})" for part in parts), params


def of_day(tx: Tx, start: datetime, end: datetime) -> Sequence[Row]:
    """What came in and went out in [start, end), by kind; `amount` above zero is money in."""
    return tx.rows(
        """
        select kind, count(*) as lines, -sum(amount)::bigint as amount
        from ledger_lines
        where at >= :start and at < :end and kind = any(:money)
        group by kind order by array_position(:money, kind)
        """,
        start=start,
        end=end,
        money=list(ledger.MONEY),
    )


def load(tx: Tx, payment_id: UUID) -> PaymentPage | None:
    """None when there is no such payment in this house. Three statements."""
    payment = tx.row(
        f"""
        select {SHOWN}, p.version, p.intent_id, p.livemode, p.idempotency_key, p.last_error,
               p.next_read_at,
               coalesce((select sum(l.amount) from ledger_lines l where l.stay_id = p.stay_id),
                        (select sum(l.amount) from ledger_lines l
                         where l.membership_id = p.membership_id), 0)::bigint as balance
        from payments p {FROM} where p.id = :id
        """,
        id=payment_id,
    )
    if payment is None:
        return None
    return PaymentPage(payment, _refunds(tx, payment_id), _disputes(tx, payment_id))


def _disputes(tx: Tx, payment_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select provider_dispute_id, amount, currency, status, refundable, reason, opened_at,
               answer_by, livemode
        from disputes where payment_id = :payment order by opened_at, id
        """,
        payment=payment_id,
    )


def _refunds(tx: Tx, payment_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select r.id, r.amount, r.currency, r.state, r.reason, r.lowers_price, r.failure,
               r.provider_refund_id, r.attempts, r.next_attempt_at, r.last_error, r.created_at,
               asked.actor_kind, asked.actor_name
        from refunds r
        left join lateral (
            select t.actor_kind, t.actor_name from transitions t
            where t.machine = 'refund' and t.subject_id = r.id and t.from_state is null
            limit 1
        ) asked on true
        where r.payment_id = :payment
        order by r.created_at, r.id
        """,
        payment=payment_id,
    )
