"""People who work in one or more houses, and their signed-in sessions."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, Instant, Key, Ref, Words

ROLES = ("front_desk", "manager", "owner")


class Staff(Base):
    __tablename__ = "staff"
    __table_args__ = (
        Index("uq_staff_email", func.lower(text("email")), unique=True),
        CheckConstraint("locale in ('ja', 'en')", name="locale"),
    )

    id: Mapped[Key]
    email: Mapped[Words]
    name: Mapped[Words]
    password_hash: Mapped[Words]
    locale: Mapped[Words] = mapped_column(server_default="ja")
    active: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[Created]


class StaffRole(Base):
    __tablename__ = "staff_roles"
    __table_args__ = (
        PrimaryKeyConstraint("staff_id", "facility_id"),
        CheckConstraint("role in ('front_desk', 'manager', 'owner')", name="role"),
    )

    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"))
    facility_id: Mapped[UUID] = mapped_column(ForeignKey("facilities.id"))
    role: Mapped[Words]


class StaffSession(Base):
    """A signed-in browser. The cookie holds the token, this row its hash; ending it ends it
    everywhere, so a replayed cookie is nobody's."""

    __tablename__ = "staff_sessions"

    token_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    staff_id: Mapped[UUID] = mapped_column(ForeignKey("staff.id"))
    chosen_facility: Mapped[Ref | None]
    created_at: Mapped[Created]
    expires_at: Mapped[Instant]
    ended_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
