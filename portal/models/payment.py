"""Payments and refunds at the card rail: a row is committed before the provider is called."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
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

PURPOSES = (
    "walk_in",
    "reservation_deposit",
    "reservation_balance",
    "membership_initial",
    "membership_renewal",
    "order",
    "credit",
)


class Payment(Base):
    __tablename__ = "payments"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("purpose", "subject_id", "attempt"),
        belongs_to("stays", "stay_id"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("num_nonnulls(stay_id, membership_id) <= 1", name="folio"),
        CheckConstraint(
            "state in ('open', 'processing', 'unknown', 'succeeded', 'refund_owed', 'canceled',"
            " 'refunded')",
            name="state",
        ),
        CheckConstraint(
            "purpose in ('walk_in', 'reservation_deposit', 'reservation_balance',"
            " 'membership_initial', 'membership_renewal', 'order', 'credit')",
            name="purpose",
        ),
        CheckConstraint("amount > 0 and attempt > 0", name="amount"),
        CheckConstraint(
            "(state in ('succeeded', 'refund_owed', 'refunded')) = (succeeded_at is not null)",
            name="succeeded_at",
        ),
        Index(
            "uq_payments_one_attempt_open",
            "purpose",
            "subject_id",
            unique=True,
            postgresql_where=text("state in ('open', 'processing', 'unknown')"),
        ),
        Index("ix_payments_stay", "facility_id", "stay_id"),
        Index(
            "ix_payments_membership",
            "facility_id",
            "membership_id",
            postgresql_where=text("membership_id is not null"),
        ),
        Index("ix_payments_listed", "facility_id", "created_at", "id"),
        Index(
            "ix_payments_to_read",
            "next_read_at",
            postgresql_where=text("next_read_at is not null"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    purpose: Mapped[Words]
    subject_id: Mapped[Ref]
    """The stay, or one invoice of a membership."""
    stay_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    invoice_id: Mapped[Words | None]
    """The provider's, where it bills a membership."""
    attempt: Mapped[int]
    amount: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    state: Mapped[Words]
    version: Mapped[Version]
    idempotency_key: Mapped[Words] = mapped_column(unique=True)
    intent_id: Mapped[Words | None] = mapped_column(unique=True)
    """The provider's id; absent until its answer was committed."""
    client_secret_sealed: Mapped[Words | None]
    livemode: Mapped[bool | None]
    decline_code: Mapped[Words | None]
    authorised_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """Since when the bank has set the amount aside and nobody has taken it: that is no money."""
    last_error: Mapped[Words | None]
    reads: Mapped[Attempts]
    next_read_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """When the sweep next asks the provider about it; null where there is nothing to ask."""
    succeeded_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]


class Refund(Base):
    """`id` is the idempotency key at the provider and stays the same for every retry."""

    __tablename__ = "refunds"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("payments", "payment_id"),
        belongs_to("stays", "stay_id"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("num_nonnulls(stay_id, membership_id) <= 1", name="folio"),
        CheckConstraint(
            "state in ('asked', 'unknown', 'pending', 'succeeded', 'failed')", name="state"
        ),
        CheckConstraint(
            "reason in ('staff', 'surplus', 'late_payment', 'cancellation', 'external')",
            name="reason",
        ),
        CheckConstraint("amount > 0", name="amount"),
        Index("ix_refunds_payment", "facility_id", "payment_id"),
        Index("ix_refunds_stay", "facility_id", "stay_id"),
        Index(
            "ix_refunds_membership",
            "facility_id",
            "membership_id",
            postgresql_where=text("membership_id is not null"),
        ),
        Index(
            "ix_refunds_due",
            "next_attempt_at",
            postgresql_where=text("state in ('asked', 'unknown', 'pending')"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    payment_id: Mapped[Ref]
    stay_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    amount: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    state: Mapped[Words]
    version: Mapped[Version]
    reason: Mapped[Words]
    lowers_price: Mapped[bool] = mapped_column(server_default=text("false"))
    """A concession: the price falls with it, so that the guest does not owe it again."""
    form_key: Mapped[Ref | None]
    provider_refund_id: Mapped[Words | None] = mapped_column(unique=True)
    failure: Mapped[Words | None]
    claimed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    claim_token: Mapped[Ref | None]
    attempts: Mapped[Attempts]
    next_attempt_at: Mapped[Created]
    last_error: Mapped[Words | None]
    request_id: Mapped[Words] = mapped_column(server_default="")
    created_at: Mapped[Created]


class Dispute(Base):
    """A card's bank questions a payment: what the provider last said of it. It only moves on."""

    __tablename__ = "disputes"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        belongs_to("payments", "payment_id"),
        CheckConstraint(
            "status in ('warning_needs_response', 'warning_under_review', 'warning_closed',"
            " 'needs_response', 'under_review', 'won', 'lost', 'prevented')",
            name="status",
        ),
        CheckConstraint("amount > 0", name="amount"),
        Index("ix_disputes_payment", "facility_id", "payment_id"),
        Index(
            "ix_disputes_open",
            "facility_id",
            "answer_by",
            postgresql_where=text(
                "status in ('warning_needs_response', 'warning_under_review', 'needs_response',"
                " 'under_review')"
            ),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    payment_id: Mapped[Ref]
    provider_dispute_id: Mapped[Words] = mapped_column(unique=True)
    amount: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    status: Mapped[Words]
    """In the provider's words. `warning_…` is a question before any money has moved."""
    refundable: Mapped[bool]
    """Whether the provider would still refund the charge."""
    reason: Mapped[Words]
    opened_at: Mapped[Instant]
    answer_by: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """Until when the house may send evidence."""
    livemode: Mapped[bool]
    created_at: Mapped[Created]
