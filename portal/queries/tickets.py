"""Ticket books in a list and one by one, what of them concerns a stay, and what was used when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.db import Row, Tx
from portal.policies.folding import fold, like_pattern
from portal.queries import keyset
from portal.queries.keyset import Cursor, Page

SHOWN = """
    b.id, b.version, b.code, b.stay_id, b.granted, b.used, b.granted - b.used as left, b.price,
    b.worth, b.currency, b.last_day, b.taken_back_at, b.created_at,
    o.name_ja, o.name_en, o.tickets, p.name_ja as plan_ja, p.name_en as plan_en,
    s.code as stay_code, g.name as guest, g.kana,
    (select coalesce(sum(l.amount), 0) from ledger_lines l where l.stay_id = b.stay_id)::bigint
        as owed
"""
"""`owed`: what is not paid of the account on which it was sold; below 0 the house owes."""

SOLD = """
    join ticket_offers o on o.id = b.offer_id
    join plans p on p.id = b.plan_id
    join stays s on s.id = b.stay_id
    join guests g on g.id = s.guest_id
"""


@dataclass(frozen=True, slots=True)
class BookPage:
    """A book, the lines that made its figures, and the words with which it was taken back."""

    book: Row
    lines: Sequence[Row]
    reason: str | None


def offers(tx: Tx) -> Sequence[Row]:
    """What is sold first. `books`: how many were sold."""
    return tx.rows(
        """
        select o.id, o.version, o.name_ja, o.name_en, o.tickets, o.price, o.months,
               o.withdrawn_at, o.created_at, p.name_ja as plan_ja, p.name_en as plan_en,
               (select count(*) from ticket_books b where b.offer_id = o.id) as books
        from ticket_offers o join plans p on p.id = o.plan_id
        order by o.withdrawn_at desc nulls first, o.created_at, o.id
        """
    )


def sold_now(tx: Tx) -> Sequence[Row]:
    """For a choice at the desk."""
    return tx.rows(
        """
        select id, name_ja, name_en, tickets, price, months from ticket_offers
        where withdrawn_at is null order by created_at, id
        """
    )


def visits(tx: Tx) -> Sequence[Row]:
    """Plans whose visits a ticket can pay."""
    return tx.rows(
        """
        select id, name_ja, name_en, unit_price from plans
        where active and kind = 'day_use' and unit = 'visit' and not members_only order by code
        """
    )


def page(tx: Tx, words: str, cursor: Cursor, size: int = keyset.SIZE) -> Page:
    """Latest first; of one code or one person where words are given. One statement."""
    beyond, params = cursor.condition("ticket_books", "b")
    if words:
        beyond = f"{beyond} and (b.code = :code or g.search_key like :pattern)"
        params |= {"code": words.upper(), "pattern": like_pattern(fold(words))}
    found = tx.rows(
        f"""
        select {SHOWN} from ticket_books b {SOLD}
        where {beyond}
        order by b.created_at {cursor.direction}, b.id {cursor.direction} limit :size
        """,
        size=size + 1,
        **params,
    )
    return keyset.cut(found[::-1] if cursor.before else found, cursor, size)


def load(tx: Tx, book_id: UUID) -> BookPage | None:
    """None when there is no such book in this house. Three statements."""
    book = tx.row(f"select {SHOWN} from ticket_books b {SOLD} where b.id = :id", id=book_id)
    if book is None:
        return None
    lines = tx.rows(
        """
        select l.kind, l.amount, l.worth, l.at, l.actor_kind, l.actor_name,
               s.id as stay_id, s.code, s.starts_at, g.name as guest
        from ticket_lines l
        left join stays s on s.id = l.stay_id
        left join guests g on g.id = s.guest_id
        where l.book_id = :id order by l.id
        """,
        id=book_id,
    )
    reason = tx.scalar(
        """
        select reason from transitions
        where machine = 'ticket_book' and subject_id = :id and event = 'taken_back'
        """,
        id=book_id,
    )
    return BookPage(book, lines, reason)


def of_stay(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """Books that were sold on the stay's account, and the one of which it holds a ticket (`pays`).
    The newest first."""
    return tx.rows(
        f"""
        with held as (
            select l.book_id as id from ticket_lines l
            where l.stay_id = :stay group by l.book_id having sum(l.amount) < 0
        )
        select {SHOWN}, b.id in (select id from held) as pays, b.stay_id = :stay as sold_here
        from ticket_books b {SOLD}
        where b.stay_id = :stay or b.id in (select id from held)
        order by b.created_at desc, b.id
        """,
        stay=stay_id,
    )


def uses(
    tx: Tx, start: datetime, end: datetime, after: tuple[datetime, int], most: int
) -> Sequence[Row]:
    """Tickets that were taken and came back in [start, end): at most so many lines after the one at
    `after`, oldest first. What each is worth is what the house has earned by it."""
    return tx.rows(
        """
        select l.id, l.at, l.kind, -l.amount as tickets, -l.worth as worth, b.currency,
               b.code as book_code, s.code as stay_code, s.starts_at, p.name_ja as plan_ja,
               p.name_en as plan_en, l.actor_name
        from ticket_lines l
        join ticket_books b on b.id = l.book_id
        join plans p on p.id = b.plan_id
        join stays s on s.id = l.stay_id
        where l.at >= :start and l.at < :end and (l.at, l.id) > (:at, :id)
        order by l.at, l.id limit :most
        """,
        start=start,
        end=end,
        at=after[0],
        id=after[1],
        most=most,
    )
