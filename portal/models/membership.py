"""Memberships: what is sold, who has applied, and how it ends."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    Index,
    LargeBinary,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import (
    Attempts,
    Created,
    House,
    Instant,
    Key,
    Ref,
    Version,
    Words,
    belongs_to,
)


class MembershipPlan(Base):
    """What can be joined. Its price is that of the next application: who has joined keeps it."""

    __tablename__ = "membership_plans"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
        UniqueConstraint("facility_id", "form_key"),
        CheckConstraint("price >= 0", name="price"),
        CheckConstraint("billed_every in ('month', 'year')", name="billed_every"),
        CheckConstraint("billing in ('card', 'desk')", name="billing"),
        CheckConstraint("monthly_quota > 0", name="quota"),
        CheckConstraint("not (sold and retired_at is not null)", name="retired"),
        CheckConstraint("tax_class in ('standard', 'reduced', 'untaxed')", name="tax_class"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    code: Mapped[Words]
    """In the address at which one joins."""
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    price: Mapped[int] = mapped_column(BigInteger)
    """For one month or year, in the currency's smallest unit."""
    billed_every: Mapped[Words]
    billing: Mapped[Words]
    monthly_quota: Mapped[int | None]
    """Visits in a calendar month; null for as many as one likes."""
    tax_class: Mapped[Words] = mapped_column(server_default="standard")
    terms_ja: Mapped[Words] = mapped_column(server_default="")
    terms_en: Mapped[Words] = mapped_column(server_default="")
    terms_version: Mapped[Words]
    sold: Mapped[bool] = mapped_column(server_default=text("true"))
    retired_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    price_id: Mapped[Words | None]
    """At the card provider, of the price that `price_id_for` spells out."""
    price_id_for: Mapped[Words | None]
    form_key: Mapped[Ref | None]
    version: Mapped[Version]
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


class Member(Base):
    """A person who has joined, or wants to. One address is one person."""

    __tablename__ = "members"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "guest_id"),
        UniqueConstraint("facility_id", "email_key"),
        belongs_to("guests", "guest_id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    guest_id: Mapped[Ref]
    email_key: Mapped[Words]
    """The e-mail address as addresses are compared: case aside."""
    customer_id: Mapped[Words | None]
    """At the card provider, once something was billed there."""
    created_at: Mapped[Created]


class Membership(Base):
    __tablename__ = "memberships"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("members", "member_id"),
        belongs_to("membership_plans", "plan_id"),
        CheckConstraint(
            "state in ('applying', 'checkout', 'active', 'past_due', 'scheduled_to_end', 'ended')",
            name="state",
        ),
        CheckConstraint("billing in ('card', 'desk')", name="billing"),
        CheckConstraint("billed_every in ('month', 'year')", name="billed_every"),
        CheckConstraint("price >= 0", name="price"),
        CheckConstraint(
            "state not in ('active', 'past_due', 'scheduled_to_end') or started_at is not null",
            name="started_at",
        ),
        CheckConstraint("(state = 'ended') = (ended_at is not null)", name="ended_at"),
        CheckConstraint("state <> 'scheduled_to_end' or ends_at is not null", name="ends_at"),
        CheckConstraint("ends_at is null or end_reason is not null", name="end_reason"),
        # One that is alive, for a person and a plan.
        Index(
            "uq_memberships_one_live",
            "facility_id",
            "member_id",
            "plan_id",
            unique=True,
            postgresql_where=text("state <> 'ended'"),
        ),
        Index("ix_memberships_listed", "facility_id", "created_at", "id"),
        Index("ix_memberships_state", "facility_id", "state", "created_at", "id"),
        Index("ix_memberships_plan_listed", "facility_id", "plan_id", "created_at", "id"),
        Index("ix_memberships_plan_state", "facility_id", "plan_id", "state", "created_at", "id"),
        # Of a plan that is retired, one that still has to be ended.
        Index(
            "ix_memberships_to_retire",
            "plan_id",
            "next_look_at",
            postgresql_where=text("state in ('applying', 'checkout', 'active', 'past_due')"),
        ),
        Index(
            "ix_memberships_to_end",
            "next_look_at",
            "ends_at",
            postgresql_where=text("state = 'scheduled_to_end'"),
        ),
        Index(
            "ix_memberships_unpaid",
            "next_look_at",
            "checkout_until",
            postgresql_where=text("state = 'checkout'"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    member_id: Mapped[Ref]
    plan_id: Mapped[Ref]
    state: Mapped[Words]
    version: Mapped[Version]
    billing: Mapped[Words]
    price: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    billed_every: Mapped[Words]
    monthly_quota: Mapped[int | None]
    terms_version: Mapped[Words]
    confirmation: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """What the person saw and confirmed on the last page, word for word."""
    form_key: Mapped[Ref]
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    token_sealed: Mapped[Words]
    checkout_until: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """Until when the first payment of an approved application is awaited."""
    started_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    ends_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """When it will give nothing more, or gave nothing more."""
    paused: Mapped[bool] = mapped_column(server_default=text("false"))
    """By the card provider's word: it gives nothing until it goes on."""
    ended_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    end_reason: Mapped[Words | None]
    next_look_at: Mapped[Created]
    """When the sweep next tries to end it, once its end has come or its plan is retired."""
    end_tries: Mapped[Attempts]
    """How often it was to be ended because its plan is retired."""
    end_refusal: Mapped[Words | None]
    """The code of what stood in the way the last time."""
    created_at: Mapped[Created]


class EndObligation(Base):
    """One thing that must hold once a membership has ended, and what proved it."""

    __tablename__ = "end_obligations"
    __table_args__ = (
        UniqueConstraint("facility_id", "membership_id", "kind"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("kind in ('keys_gone', 'member_told', 'invoices_closed')", name="kind"),
        CheckConstraint("(proven_at is null) = (proof is null)", name="proof"),
        Index(
            "ix_end_obligations_to_prove",
            "next_look_at",
            postgresql_where=text("proven_at is null"),
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    membership_id: Mapped[Ref]
    kind: Mapped[Words]
    since: Mapped[Instant]
    proven_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    proof: Mapped[Words | None]
    next_look_at: Mapped[Created]
