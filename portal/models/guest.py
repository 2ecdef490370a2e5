"""Who stays."""

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Version, Words


class Guest(Base):
    __tablename__ = "guests"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        CheckConstraint("preferred_locale in ('ja', 'en')", name="locale"),
        Index("ix_guests_phone", "facility_id", "phone_digits"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    name: Mapped[Words]
    """As entered; never folded."""
    kana: Mapped[Words] = mapped_column(server_default="")
    search_key: Mapped[Words]
    """Name and kana folded by `policies.folding`, for search only."""
    email: Mapped[Words | None]
    phone: Mapped[Words | None]
    """E.164."""
    phone_digits: Mapped[Words] = mapped_column(server_default="")
    """National digits with the leading zero, as a person at the desk types them."""
    document_mark: Mapped[Words | None]
    """`seal.fingerprint` of a passport or the like that was shown; its number is not kept here."""
    line_user_id: Mapped[Words | None]
    preferred_locale: Mapped[Words | None]
    version: Mapped[Version]
    created_at: Mapped[Created]
