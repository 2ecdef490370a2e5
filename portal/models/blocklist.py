"""Who is not let in, and on what ground. Entries are made and lifted, never changed or deleted."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, PrimaryKeyConstraint, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Version, Words, belongs_to


class RefusalGround(Base):
    """A ground on which the law lets a house refuse lodging: data of each house."""

    __tablename__ = "refusal_grounds"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    code: Mapped[Words]
    words_ja: Mapped[Words]
    words_en: Mapped[Words]
    retired_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]

    def words(self, locale: str) -> str:
        return self.words_ja if locale == "ja" else self.words_en


class BlocklistEntry(Base):
    __tablename__ = "blocklist_entries"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("refusal_grounds", "refusal_ground_id"),
        CheckConstraint("expires_at > created_at", name="expires_at"),
        Index("ix_blocklist_entries_listed", "facility_id", "created_at", "id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    name: Mapped[Words] = mapped_column(server_default="")
    kana: Mapped[Words] = mapped_column(server_default="")
    variants: Mapped[Words] = mapped_column(server_default="")
    """Other ways in which the name is written, a line each."""
    phone: Mapped[Words | None]
    """E.164."""
    email: Mapped[Words | None]
    by_document: Mapped[bool] = mapped_column(server_default=text("false"))
    """A document is among its keys; its number is kept nowhere."""
    ground: Mapped[Words]
    """In the house's own words, for its own eyes."""
    refusal_ground_id: Mapped[Ref | None]
    """The law's ground, without which nobody is refused lodging."""
    author_id: Mapped[Ref | None]
    author_name: Mapped[Words]
    expires_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    lifted_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    form_key: Mapped[Ref]
    version: Mapped[Version]
    created_at: Mapped[Created]


class BlocklistKey(Base):
    """What an entry is found by: `policies.blocklist.Mark`."""

    __tablename__ = "blocklist_keys"
    __table_args__ = (
        PrimaryKeyConstraint("entry_id", "kind", "value"),
        belongs_to("blocklist_entries", "entry_id"),
        CheckConstraint("kind in ('name', 'phone', 'email', 'document')", name="kind"),
        Index("ix_blocklist_keys_value", "facility_id", "kind", "value"),
    )

    facility_id: Mapped[House]
    entry_id: Mapped[Ref]
    kind: Mapped[Words]
    value: Mapped[Words]
