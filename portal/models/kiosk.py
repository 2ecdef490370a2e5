"""What a tablet at an entrance holds for a short while: whose stay it is showing."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, UniqueConstraint
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Key, Ref, belongs_to


class KioskSession(Base):
    """Opened by whoever proves whose stay it is, or books one there. The tablet holds its token and
    nothing else; its addresses name no stay."""

    __tablename__ = "kiosk_sessions"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        belongs_to("entrances", "entrance_id"),
        belongs_to("stays", "stay_id"),
        Index("ix_kiosk_sessions_over", "expires_at"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    entrance_id: Mapped[Ref]
    stay_id: Mapped[Ref]
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    expires_at: Mapped[Instant]
    ended_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]
