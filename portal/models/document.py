"""Receipts and returns: numbered without gaps, stated once, never changed."""

from datetime import date
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Date, Identity, Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import House, Instant, Key, Ref, Words, belongs_to


class DocumentCounter(Base):
    """The last number of a house. Whoever issues holds the row until the commit, so a number that
    was taken and not kept is the next one's."""

    __tablename__ = "document_counters"
    __table_args__ = (CheckConstraint("last > 0", name="last"),)

    facility_id: Mapped[House] = mapped_column(primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)


class Document(Base):
    """A receipt for money that arrived, or the return of what a receipt had stated."""

    __tablename__ = "documents"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "number"),
        UniqueConstraint("facility_id", "form_key"),
        UniqueConstraint("facility_id", "stay_id", "upto"),
        UniqueConstraint("facility_id", "membership_id", "upto"),
        belongs_to("stays", "stay_id"),
        belongs_to("memberships", "membership_id"),
        belongs_to("documents", "corrects_id"),
        CheckConstraint("kind in ('receipt', 'return')", name="kind"),
        CheckConstraint("num_nonnulls(stay_id, membership_id) = 1", name="folio"),
        CheckConstraint("number > 0", name="number"),
        CheckConstraint("amount > 0 or kind = 'return' and amount = 0", name="amount"),
        CheckConstraint("kind = 'return' or corrects_id is null", name="corrects"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    number: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[Words]
    stay_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    corrects_id: Mapped[Ref | None]
    """Of a return, the receipt before it."""
    day: Mapped[date] = mapped_column(Date)
    """The facility's, of the issue."""
    addressee: Mapped[Words]
    amount: Mapped[int] = mapped_column(BigInteger)
    """What came in, or of a return what went back; never below 0."""
    currency: Mapped[Words]
    upto: Mapped[int] = mapped_column(BigInteger)
    """The account's last line that it knows: what comes later is the next document's."""
    stated: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """Who issued it, what for, at which rates and how it was paid, as of the issue."""
    form_key: Mapped[Ref]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    issued_at: Mapped[Instant]


class DocumentCopy(Base):
    """A document was issued again, under its number."""

    __tablename__ = "document_copies"
    __table_args__ = (
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("documents", "document_id"),
        Index("ix_document_copies_document", "facility_id", "document_id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    document_id: Mapped[Ref]
    form_key: Mapped[Ref]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    at: Mapped[Instant]
