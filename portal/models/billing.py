"""Memberships that the card provider bills: what was asked of it, said by it, granted for it."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Attempts, Created, House, Instant, Key, Ref, Words, belongs_to


class BillingLeg(Base):
    """One act at the provider. `id` is its key there; written before the call, settled after it.
    One at a time for a membership."""

    __tablename__ = "billing_legs"
    __table_args__ = (
        belongs_to("memberships", "membership_id"),
        CheckConstraint(
            "kind in ('subscribe', 'set_end', 'end_now', 'abandon_checkout', 'go_on', 'switch')",
            name="kind",
        ),
        CheckConstraint("progress in ('open', 'unknown', 'done', 'refused')", name="progress"),
        CheckConstraint(
            "(progress in ('done', 'refused')) = (settled_at is not null)", name="settled"
        ),
        CheckConstraint("next_read_at is null or settled_at is null", name="read"),
        Index(
            "uq_billing_legs_one_open",
            "facility_id",
            "membership_id",
            unique=True,
            postgresql_where=text("progress in ('open', 'unknown')"),
        ),
        Index("ix_billing_legs_membership", "facility_id", "membership_id", "created_at"),
        Index(
            "ix_billing_legs_to_read",
            "next_read_at",
            postgresql_where=text("next_read_at is not null"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    membership_id: Mapped[Ref]
    kind: Mapped[Words]
    progress: Mapped[Words] = mapped_column(server_default="open")
    wish: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """What is to follow once it is done: reason, note, end or plan."""
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    last_error: Mapped[Words | None]
    reads: Mapped[Attempts]
    next_read_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """When the sweep asks the provider what became of it; null once that is known."""
    settled_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    request_id: Mapped[Words] = mapped_column(server_default="")
    created_at: Mapped[Created]


class SubscriptionMirror(Base):
    """The provider's last word on a membership's subscription. It moves forward only."""

    __tablename__ = "subscription_mirror"
    __table_args__ = (
        belongs_to("memberships", "membership_id"),
        Index(
            "ix_subscription_mirror_to_read",
            "next_read_at",
            postgresql_where=text("next_read_at is not null"),
        ),
        Index("ix_subscription_mirror_listed", "facility_id", "created_at", "membership_id"),
    )

    membership_id: Mapped[Ref] = mapped_column(primary_key=True)
    facility_id: Mapped[House]
    subscription_id: Mapped[Words] = mapped_column(unique=True)
    customer_id: Mapped[Words]
    status: Mapped[Words]
    item_id: Mapped[Words]
    price_id: Mapped[Words]
    amount: Mapped[int] = mapped_column(BigInteger)
    """Of one period, in the currency's smallest unit."""
    currency: Mapped[Words]
    livemode: Mapped[bool]
    period_start: Mapped[Instant]
    period_end: Mapped[Instant]
    ends_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    ended_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    trial_end: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    paused: Mapped[bool]
    resumes_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    latest_invoice_id: Mapped[Words | None]
    told_at: Mapped[Instant]
    """When the provider said so, by its own clock."""
    reads: Mapped[Attempts]
    next_read_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]


class MembershipPeriod(Base):
    """One period that was granted, for ever. `starts_at` to `ends_at` as the provider has it."""

    __tablename__ = "membership_periods"
    __table_args__ = (
        UniqueConstraint("subscription_id", "starts_at"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("amount >= 0", name="amount"),
        CheckConstraint("starts_at < ends_at", name="span"),
        Index("ix_membership_periods_membership", "facility_id", "membership_id", "starts_at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    membership_id: Mapped[Ref]
    subscription_id: Mapped[Words]
    invoice_id: Mapped[Words] = mapped_column(unique=True)
    starts_at: Mapped[Instant]
    ends_at: Mapped[Instant]
    amount: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    paid_at: Mapped[Instant]
    reason: Mapped[Words]
    """The provider's: subscription_create, subscription_cycle …"""
    granted_at: Mapped[Created]
