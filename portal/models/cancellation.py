"""What a cancellation costs: policies, each version of their terms, and its steps."""

from sqlalchemy import BigInteger, CheckConstraint, Identity, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Version, Words, belongs_to

STEP = "json_build_array(c.hours_before, c.fee_percent, c.returns_quota)"
STEPS = f"""
    (select json_agg({STEP} order by c.hours_before desc) from cancellation_steps c
     where c.terms_id = s.cancellation_terms_id)
"""
"""The steps to which the guest of a stay `s` agreed, the earliest first; null without terms. Read
by `policies.cancellation.steps_of`."""


class CancellationPolicy(Base):
    """What a plan refers to. `version` is that of its newest terms."""

    __tablename__ = "cancellation_policies"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    form_key: Mapped[Ref]
    version: Mapped[Version]
    created_at: Mapped[Created]


class CancellationTerms(Base):
    """What somebody agrees to by booking: never changed, only followed by the next version."""

    __tablename__ = "cancellation_terms"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "policy_id", "version"),
        belongs_to("cancellation_policies", "policy_id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    policy_id: Mapped[Ref]
    version: Mapped[int]
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    created_at: Mapped[Created]


class CancellationStep(Base):
    """From so many hours before arrival on, until the next step begins."""

    __tablename__ = "cancellation_steps"
    __table_args__ = (
        UniqueConstraint("facility_id", "terms_id", "hours_before"),
        belongs_to("cancellation_terms", "terms_id"),
        CheckConstraint("hours_before between 0 and 8760", name="hours"),
        CheckConstraint("fee_percent between 0 and 100", name="fee"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    terms_id: Mapped[Ref]
    hours_before: Mapped[int]
    fee_percent: Mapped[int]
    returns_quota: Mapped[bool]
    """Whether the visit of the month that was used comes back."""
