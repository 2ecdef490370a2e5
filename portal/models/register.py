"""The register of guests that the law asks of lodging: sealed at rest, each reading recorded."""

from datetime import date

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    Identity,
    Index,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import House, Instant, Key, Ref, Version, Words, belongs_to

COMPLETED = """(
    select max(r.filled_at) from guest_registers r
    where r.stay_id = s.id having count(*) >= s.persons
)"""
"""When the register of a stay `s` had an entry for each person; null until then."""

MISSING = f"""
    coalesce(f.register_required and plan.kind = 'lodging' and {COMPLETED} is null, false)
"""
"""The house `f` lets nobody of a stay `s` in without the register, and it is not complete."""


class GuestRegister(Base):
    __tablename__ = "guest_registers"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "stay_id", "person"),
        belongs_to("stays", "stay_id"),
        CheckConstraint("person >= 1", name="person"),
        CheckConstraint("(nationality_sealed is null) = (passport_sealed is null)", name="abroad"),
        Index("ix_guest_registers_filled", "filled_at"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    stay_id: Mapped[Ref]
    person: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    """1 is the guest who has booked, then whoever comes along."""
    name_sealed: Mapped[Words]
    address_sealed: Mapped[Words]
    contact: Mapped[Words]
    nationality_sealed: Mapped[Words | None]
    """With the passport's number, of whoever has no address in Japan."""
    passport_sealed: Mapped[Words | None]
    occupation_sealed: Mapped[Words | None]
    """Where the house still asks for it."""
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    filled_at: Mapped[Instant]
    version: Mapped[Version]


class RegisterReading(Base):
    """Somebody read what is sealed. It outlives what was read."""

    __tablename__ = "register_readings"
    __table_args__ = (
        belongs_to("stays", "stay_id"),
        CheckConstraint("kind in ('opened', 'exported')", name="kind"),
        CheckConstraint("reason <> ''", name="reason"),
        CheckConstraint(
            "case when kind = 'opened' then stay_id is not null"
            " else num_nonnulls(first_day, last_day) = 2 end",
            name="what",
        ),
        Index("ix_register_readings_at", "facility_id", "at", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    kind: Mapped[Words]
    stay_id: Mapped[Ref | None]
    first_day: Mapped[date | None] = mapped_column(Date)
    last_day: Mapped[date | None] = mapped_column(Date)
    rows_read: Mapped[int]
    reason: Mapped[Words]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    at: Mapped[Instant]
