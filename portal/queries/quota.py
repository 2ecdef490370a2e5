"""What is left of a membership's months, opened into the lines that made it so."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from portal.db import Row, Tx

MOST_LINES = 200
A_MONTH_LATER = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class Month:
    """`used` of `granted` visits; `lines` newest last."""

    first: date
    granted: int
    used: int
    lines: Sequence[Row]

    @property
    def left(self) -> int:
        return self.granted - self.used


def months(tx: Tx, membership_id: UUID, quota: int | None, first: date) -> Sequence[Month]:
    """The month that begins with `first`, and the next; none for a membership without a quota. One
    of which nothing was ever taken has no lines yet. One statement."""
    if quota is None:
        return []
    shown = [first, (first + A_MONTH_LATER).replace(day=1)]
    rows = tx.rows(
        """
        select q.month, q.granted, q.used, l.kind, l.amount, l.at, l.actor_kind, l.actor_name,
               s.id as stay_id, s.code, s.starts_at
        from quota_months q
        cross join lateral (
            select * from quota_lines l where l.month_id = q.id order by l.id desc limit :most
        ) l
        left join stays s on s.id = l.stay_id
        where q.membership_id = :membership and q.month = any(:months)
        order by q.month, l.id
        """,
        membership=membership_id,
        months=shown,
        most=MOST_LINES,
    )
    return [_month(one, quota, [row for row in rows if row.month == one]) for one in shown]


def _month(first: date, quota: int, lines: Sequence[Row]) -> Month:
    if not lines:
        return Month(first, quota, 0, [])
    return Month(first, lines[0].granted, lines[0].used, lines)
