"""The day's close: the drawer as counted, and which lines of the folios it seals."""

from datetime import date

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Key, Ref, Words, belongs_to


class DayClose(Base):
    """Append-only, and numbered without gaps: each is sealed over the one before it. What is found
    out later is a line of a later day."""

    __tablename__ = "day_closes"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "no"),
        UniqueConstraint("facility_id", "day"),
        UniqueConstraint("facility_id", "form_key"),
        CheckConstraint(
            "no > 0 and opening >= 0 and cash_in >= 0 and cash_out >= 0 and card_in >= 0"
            " and card_out >= 0 and counted >= 0 and taken between 0 and counted and lines >= 0"
            " and left_open >= 0",
            name="amounts",
        ),
        CheckConstraint(
            "reason <> '' or (counted = opening + cash_in - cash_out and left_open = 0)",
            name="reason",
        ),
        Index("ix_day_closes_listed", "facility_id", "created_at", "id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    no: Mapped[int]
    day: Mapped[date]
    """The house's day that it is the close of."""
    closed_at: Mapped[Instant]
    currency: Mapped[Words]
    opening: Mapped[int] = mapped_column(BigInteger)
    """In the drawer when the day began: what the last close left there."""
    cash_in: Mapped[int] = mapped_column(BigInteger)
    cash_out: Mapped[int] = mapped_column(BigInteger)
    card_in: Mapped[int] = mapped_column(BigInteger)
    card_out: Mapped[int] = mapped_column(BigInteger)
    counted: Mapped[int] = mapped_column(BigInteger)
    taken: Mapped[int] = mapped_column(BigInteger)
    """Out of what was counted, to the bank; the rest is the next opening."""
    left_open: Mapped[int]
    """How many matters were open, and seen to be."""
    reason: Mapped[Words] = mapped_column(server_default="")
    lines: Mapped[int]
    lines_digest: Mapped[Words]
    seal: Mapped[Words]
    """SHA-256 over this row and the seal before it, see `policies.day_close`."""
    form_key: Mapped[Ref]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    created_at: Mapped[Created]


class DayCloseLine(Base):
    """Which close a line belongs to: one, and the first that could see it. By the line and not by
    a span of time or of ids, since a line may commit after others that are younger."""

    __tablename__ = "day_close_lines"
    __table_args__ = (
        PrimaryKeyConstraint("facility_id", "line_id"),
        belongs_to("ledger_lines", "line_id"),
        belongs_to("day_closes", "close_id"),
        Index("ix_day_close_lines_close", "facility_id", "close_id", "line_id"),
    )

    facility_id: Mapped[House]
    line_id: Mapped[int] = mapped_column(BigInteger)
    close_id: Mapped[Ref]
