"""The day's closes in a list and one by one, and the journal that they seal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal import journal
from portal.db import Row, Tx
from portal.policies import day_close
from portal.policies.day_close import Figures
from portal.queries import keyset
from portal.queries.keyset import Cursor, Page


@dataclass(frozen=True, slots=True)
class Open:
    """What a close would seal now. `last` is the close before it, None where there is none."""

    last: Row | None
    figures: Figures
    matters: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Closed:
    """A close as it was sealed, its lines added up by kind, and whether both still agree with the
    seal: `whole` the row with the close before it, `lines_whole` the lines."""

    close: Row
    kinds: Sequence[Row]
    whole: bool
    lines_whole: bool


def to_close(tx: Tx, now: datetime, opening: int = 0) -> Open:
    """Three statements. `opening` counts where nothing was closed yet."""
    last = journal.last_close(tx)
    figures = journal.unsealed(tx, last, last.kept if last else opening)
    return Open(last, figures, journal.open_matters(tx, last, now))


def page(tx: Tx, cursor: Cursor, size: int = keyset.SIZE) -> Page:
    """Latest first: one statement, and no count."""
    beyond, params = cursor.condition("day_closes", "c")
    found = tx.rows(
        f"""
        select c.id, c.no, c.day, c.closed_at, c.currency, c.counted, c.reason, c.left_open,
               c.counted - c.opening - c.cash_in + c.cash_out as difference, c.actor_name
        from (
            select * from day_closes c where {beyond}
            order by c.created_at {cursor.direction}, c.id {cursor.direction} limit :size
        ) c
        order by c.created_at desc, c.id desc
        """,
        size=size + 1,
        **params,
    )
    return keyset.cut(found, cursor, size)


def load(tx: Tx, close_id: UUID) -> Closed | None:
    """None when there is no such close in this house. Three statements."""
    close = tx.row(
        """
        select c.*, c.opening + c.cash_in - c.cash_out as expected, before.seal as seal_before
        from day_closes c left join day_closes before on before.no = c.no - 1
        where c.id = :id
        """,
        id=close_id,
    )
    if close is None:
        return None
    kinds = tx.rows(
        """
        select l.kind, l.item, count(*) as lines, sum(l.amount)::bigint as amount
        from day_close_lines c
        join ledger_lines l on l.facility_id = c.facility_id and l.id = c.line_id
        where c.close_id = :id group by l.kind, l.item
        order by l.kind, l.item
        """,
        id=close_id,
    )
    now = tx.row(
        f"""
        select count(*)::int, {journal.DIGEST} from day_close_lines c
        join ledger_lines l on l.facility_id = c.facility_id and l.id = c.line_id
        where c.close_id = :id
        """,
        id=close_id,
    )
    row = close._asdict()
    whole = day_close.seal(row["seal_before"] or "", row) == close.seal
    return Closed(close, kinds, whole, tuple(now or ()) == (close.lines, close.lines_digest))


def lines(
    tx: Tx, start: datetime, end: datetime, after: tuple[datetime, int], most: int
) -> Sequence[Row]:
    """The journal in [start, end): at most so many lines after the one at `after`, oldest first."""
    return tx.rows(
        """
        select l.id, l.at, l.kind, l.item, l.amount, l.currency, l.tax_rate, l.memo,
               l.actor_name,
               s.code as stay_code, coalesce(g.name, n.name) as guest, p.intent_id,
               f.provider_refund_id, closed.no as close_no
        from ledger_lines l
        left join stays s on s.id = l.stay_id
        left join guests g on g.id = s.guest_id
        left join memberships m on m.id = l.membership_id
        left join members r on r.id = m.member_id
        left join guests n on n.id = r.guest_id
        left join payments p on p.id = l.payment_id
        left join refunds f on f.id = l.refund_id
        left join day_close_lines c on c.facility_id = l.facility_id and c.line_id = l.id
        left join day_closes closed on closed.id = c.close_id
        where l.at >= :start and l.at < :end and (l.at, l.id) > (:at, :id)
        order by l.at, l.id limit :most
        """,
        start=start,
        end=end,
        at=after[0],
        id=after[1],
        most=most,
    )
