"""Books of tickets: a number of visits under one plan, paid at once. Each figure of a book is the
sum of its lines: `granted` of those that are no use of it, `used` of the others, `worth` of all."""

from datetime import date, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    Identity,
    Index,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Key, Ref, Version, Words, belongs_to

MOST_TICKETS = 100
MOST_MONTHS = 60

HELD = """
    (select l.book_id from ticket_lines l
     where l.stay_id = s.id group by l.book_id having sum(l.amount) < 0)
"""
"""The book of which a stay `s` holds a ticket; null where it holds none."""


class TicketOffer(Base):
    """What the desk sells: so many tickets for so much, used within so many months. It is withdrawn
    and never changed, since the books that were sold say what they were sold as."""

    __tablename__ = "ticket_offers"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("plans", "plan_id"),
        CheckConstraint("tickets between 1 and 100", name="tickets"),
        CheckConstraint("price >= 0", name="price"),
        CheckConstraint("months between 1 and 60", name="months"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    plan_id: Mapped[Ref]
    """One ticket pays one visit under it."""
    tickets: Mapped[int]
    price: Mapped[int]
    """Of the whole book, in the currency's smallest unit."""
    months: Mapped[int]
    withdrawn_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    form_key: Mapped[Ref]
    version: Mapped[Version]
    created_at: Mapped[Created]


class TicketBook(Base):
    """The counter of one book: taken from by an update that counts, never read first."""

    __tablename__ = "ticket_books"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("ticket_offers", "offer_id"),
        belongs_to("plans", "plan_id"),
        belongs_to("stays", "stay_id"),
        CheckConstraint("used between 0 and granted", name="used"),
        CheckConstraint(
            "worth between 0 and price and (used < granted or worth = 0)", name="worth"
        ),
        CheckConstraint("taken_back_at is null or used = granted", name="taken_back"),
        Index("ix_ticket_books_stay", "facility_id", "stay_id"),
        Index("ix_ticket_books_created", "facility_id", "created_at", "id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    offer_id: Mapped[Ref]
    plan_id: Mapped[Ref]
    stay_id: Mapped[Ref]
    """On whose account it was sold. While that account is not paid, the book pays nothing."""
    code: Mapped[Words]
    """Whoever says it uses the book, as with tickets of paper."""
    granted: Mapped[int]
    used: Mapped[int] = mapped_column(server_default=text("0"))
    price: Mapped[int]
    worth: Mapped[int]
    """What of the price the tickets that are left stand for."""
    currency: Mapped[Words]
    last_day: Mapped[date] = mapped_column(Date)
    """Of use, on the house's calendar. A ticket that comes back keeps it."""
    taken_back_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    form_key: Mapped[Ref]
    version: Mapped[Version]
    created_at: Mapped[Created]


class TicketLine(Base):
    """`amount` and `worth` are the effects on what is left."""

    __tablename__ = "ticket_lines"
    __table_args__ = (
        belongs_to("ticket_books", "book_id"),
        belongs_to("stays", "stay_id"),
        CheckConstraint("kind in ('sold', 'taken', 'returned', 'taken_back')", name="kind"),
        CheckConstraint(
            "case kind when 'sold' then amount > 0 when 'taken' then amount = -1"
            " when 'returned' then amount = 1 else amount < 0 end",
            name="amount",
        ),
        CheckConstraint(
            "case when kind in ('sold', 'returned') then worth >= 0 else worth <= 0 end",
            name="worth",
        ),
        CheckConstraint("(kind in ('taken', 'returned')) = (stay_id is not null)", name="stay"),
        Index("ix_ticket_lines_book", "facility_id", "book_id", "id"),
        Index(
            "ix_ticket_lines_stay",
            "facility_id",
            "stay_id",
            postgresql_where=text("stay_id is not null"),
        ),
        Index("ix_ticket_lines_at", "facility_id", "at", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    book_id: Mapped[Ref]
    kind: Mapped[Words]
    amount: Mapped[int]
    worth: Mapped[int]
    stay_id: Mapped[Ref | None]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    at: Mapped[Instant]
    written_at: Mapped[Created]
