"""The folios' lines as a journal: which of them no close has yet, what they add up to, and what is
still open that a close should wait for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.db import Row, Tx
from portal.policies.day_close import Figures

LONGEST_WRITING = timedelta(days=7)
"""A line is dated before it commits. One that is older than this beside the last close was there to
be seen by it: no transaction lives so long."""

RECENT = timedelta(days=30)
"""How far back an unpaid departure is a matter of the first close."""

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)

MOST = 100

DIGEST = """
    encode(sha256(convert_to(coalesce(string_agg(
        concat_ws('|', l.id, extract(epoch from l.at), l.kind, l.amount, l.currency,
            coalesce(l.stay_id::text, '-'), coalesce(l.membership_id::text, '-'),
            coalesce(l.payment_id::text, '-'), coalesce(l.refund_id::text, '-'),
            coalesce(l.dispute_id::text, '-'), l.item, coalesce(l.tax_rate::text, '-'),
            l.actor_kind, l.actor_name, l.memo),
        E'\\n' order by l.id), ''), 'UTF8')), 'hex')
"""

SUMS = """
    coalesce(-sum(l.amount) filter (where l.kind = 'cash'), 0)::bigint as cash_in,
    coalesce(sum(l.amount) filter (where l.kind = 'cash_returned'), 0)::bigint as cash_out,
    coalesce(-sum(l.amount) filter (where l.kind in ('deposit', 'payment',
             'refund_reversed', 'chargeback_reversed')), 0)::bigint as card_in,
    coalesce(sum(l.amount) filter (where l.kind in ('refund', 'chargeback')), 0)::bigint
        as card_out
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines that no close has, as they were read at one moment."""

    figures: Figures
    lines: Sequence[int]
    digest: str


def last_close(tx: Tx) -> Row | None:
    """The newest of the house's closes."""
    return tx.row(
        """
        select no, day, closed_at, counted - taken as kept, seal
        from day_closes order by no desc limit 1
        """
    )


def unsealed(tx: Tx, last: Row | None, opening: int) -> Figures:
    """What the lines add up to that no close has. `opening` is what the drawer began with."""
    found = tx.rows(f"select {SUMS} from ledger_lines l where {_NOT_YET}", since=_since(last))
    return Figures(opening, *found[0])


def batch(tx: Tx, last: Row | None, opening: int) -> Batch:
    """The same, with the lines themselves: only these are to be sealed. One statement, since what
    is booked meanwhile would be seen by the next."""
    found = tx.rows(
        f"""
        select {SUMS}, coalesce(array_agg(l.id), '{{}}') as lines, {DIGEST} as digest
        from ledger_lines l where {_NOT_YET}
        """,
        since=_since(last),
    )
    *sums, lines, digest = found[0]
    return Batch(Figures(opening, *sums), lines, digest)


def take(tx: Tx, close_id: UUID, lines: Sequence[int]) -> None:
    """Make them lines of this close. The caller holds the house, so that no other close does."""
    tx.run(
        """
        insert into day_close_lines (facility_id, line_id, close_id)
        select :facility, unnest(cast(:lines as bigint[])), :close
        """,
        facility=tx.facility_id,
        lines=list(lines),
        close=close_id,
    )


def open_matters(tx: Tx, last: Row | None, now: datetime) -> Sequence[Row]:
    """[(kind, stay_id, payment_id, code, guest, amount, at)], money of which nobody knows first: at
    most MOST. Who left without paying is named once: by the close of that day."""
    return tx.rows(
        """
        with matters as (
            select 1 as urgency, 'money_unknown' as kind, x.stay_id, x.id as payment_id, x.amount,
                   x.created_at as at
            from payments x where x.state in ('unknown', 'processing')
            union all
            select 1, 'refund_unknown', x.stay_id, x.payment_id, x.amount, x.created_at
            from refunds x where x.state = 'unknown'
            union all
            select 2, 'money_differs', p.stay_id, x.payment_id, p.amount, x.first_seen
            from divergences x join payments p on p.id = x.payment_id
            where x.healed_at is null
            union all
            select 3, 'unpaid', s.id, null, owed.amount, s.departed_at
            from stays s cross join lateral (
                select sum(l.amount)::bigint as amount from ledger_lines l where l.stay_id = s.id
            ) owed
            where s.state = 'departed' and s.departed_at >= :since and owed.amount > 0
              and s.ends_at >= :since - interval '366 days'
            union all
            select 4, 'not_checked_out', s.id, null, null, s.ends_at
            from stays s where s.state = 'admitted' and s.ends_at <= :now
        )
        select m.kind, m.stay_id, m.payment_id, s.code, g.name as guest, m.amount, m.at
        from matters m
        left join stays s on s.id = m.stay_id
        left join guests g on g.id = s.guest_id
        order by m.urgency, m.at, m.stay_id, m.payment_id
        limit :most
        """,
        since=last.closed_at if last else now - RECENT,
        now=now,
        most=MOST,
    )


_NOT_YET = """
    l.at >= :since and not exists (
        select 1 from day_close_lines c where c.facility_id = l.facility_id and c.line_id = l.id)
"""


def _since(last: Row | None) -> datetime:
    return last.closed_at - LONGEST_WRITING if last else BEFORE_ALL
