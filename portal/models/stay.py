"""A stay: who is where from when to when."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP, TSTZRANGE, ExcludeConstraint
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Key, Ref, Version, Words, belongs_to

SPACE_PERIOD = "ex_stays_space_period"
"""Refuses what would be in a space at once with another stay."""

SOURCES = ("desk", "web", "walk_in")
MOST_PERSONS = 50

AWAITED_BY = """
    case when s.deposit_by is not null and s.state = 'reserved' and deposit_to_come(s) > 0
         then s.deposit_by end
"""
"""The deadline of a stay `s`, while it means anything: `policies.deposit_hold.is_awaited`."""

ENDED_BY_DEPOSIT = """
    s.state = 'cancelled' and s.deposit_by is not null and exists (
        select 1 from transitions t where t.machine = 'stay' and t.subject_id = s.id
        and t.event = 'cancelled' and starts_with(t.reason, 'deposit_missed'))
"""
"""Whether a stay `s` was cancelled since its deposit did not come: its record keeps why."""


class Stay(Base):
    __tablename__ = "stays"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("guests", "guest_id"),
        belongs_to("spaces", "space_id"),
        belongs_to("plans", "plan_id"),
        belongs_to("memberships", "membership_id"),
        belongs_to("cancellation_terms", "cancellation_terms_id"),
        ForeignKeyConstraint(["space_no", "space_id"], ["spaces.no", "spaces.id"]),
        CheckConstraint(
            "state in ('reserved', 'admitted', 'no_show', 'cancelled', 'departed')", name="state"
        ),
        CheckConstraint("source in ('desk', 'web', 'walk_in')", name="source"),
        CheckConstraint("ends_at > starts_at", name="times"),
        CheckConstraint("deposit_due >= 0", name="deposit"),
        CheckConstraint("tax_class in ('standard', 'reduced', 'untaxed')", name="tax_class"),
        CheckConstraint("unit_price >= 0", name="unit_price"),
        CheckConstraint("persons between 1 and 50", name="persons"),
        CheckConstraint(
            "deposit_by is null or deposit_due > 0 and deposit_by <= starts_at", name="deposit_by"
        ),
        CheckConstraint(
            "(state in ('admitted', 'departed')) = (admitted_at is not null)", name="admitted_at"
        ),
        CheckConstraint("(state = 'departed') = (departed_at is not null)", name="departed_at"),
        CheckConstraint("(state = 'cancelled') = (cancelled_at is not null)", name="cancelled_at"),
        # Half-open: one stay may begin at the instant another ends. The space is a range of one
        # number because PostgreSQL without btree_gist has no GiST equality for uuid.
        ExcludeConstraint(
            (literal_column("int8range(space_no, space_no, '[]')"), "&&"),
            (literal_column("period"), "&&"),
            where=text("state in ('reserved', 'admitted')"),
            using="gist",
            name=SPACE_PERIOD,
        ),
        Index("ix_stays_arrivals", "facility_id", "starts_at", "id"),
        # The desk's day reads every stay that is not over, however old.
        Index(
            "ix_stays_live",
            "facility_id",
            "starts_at",
            postgresql_where=text("state in ('reserved', 'admitted')"),
        ),
        Index(
            "ix_stays_deposit_by",
            "deposit_by",
            "id",
            postgresql_where=text("state = 'reserved' and deposit_by is not null"),
        ),
        Index("ix_stays_departures", "facility_id", "ends_at"),
        Index("ix_stays_guest", "facility_id", "guest_id"),
        Index("ix_stays_space", "facility_id", "space_id"),
        Index(
            "ix_stays_membership",
            "facility_id",
            "membership_id",
            postgresql_where=text("membership_id is not null"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    code: Mapped[Words]
    """What a guest says at the desk: eight characters without look-alikes."""
    guest_id: Mapped[Ref]
    space_id: Mapped[Ref]
    space_no: Mapped[int] = mapped_column(BigInteger)
    plan_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    """Whose member's it is, where a membership gives it."""
    cancellation_terms_id: Mapped[Ref | None]
    """What the guest agreed to; a newer version of the policy concerns later bookings."""
    source: Mapped[Words]
    state: Mapped[Words]
    version: Mapped[Version]
    starts_at: Mapped[Instant]
    ends_at: Mapped[Instant]
    period: Mapped[Any] = mapped_column(
        TSTZRANGE, Computed("tstzrange(starts_at, ends_at, '[)')", persisted=True), deferred=True
    )
    currency: Mapped[Words]
    deposit_due: Mapped[int] = mapped_column(server_default=text("0"))
    deposit_by: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """Until when the space is held while the deposit is open; null: without end."""
    tax_class: Mapped[Words] = mapped_column(server_default="standard")
    """Of its plan when it was booked."""
    unit_price: Mapped[int | None]
    """What its plan asked for a unit then; null without a plan."""
    persons: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    """Who come with the guest, the guest included."""
    note: Mapped[Words] = mapped_column(server_default="")
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    token_sealed: Mapped[Words]
    form_key: Mapped[Ref]
    admitted_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    departed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    cancelled_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]
