"""The visits that a membership gives in a calendar month. Each figure is the sum of its lines:
`granted` of those of that kind, `used` of all others."""

from datetime import date

from sqlalchemy import BigInteger, CheckConstraint, Date, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Key, Ref, Words, belongs_to

HELD = """
    (select q.month from quota_lines l join quota_months q on q.id = l.month_id
     where l.stay_id = s.id group by q.month having sum(l.amount) < 0)
"""
"""The month of which a stay `s` holds a visit; null where it holds none."""


class QuotaMonth(Base):
    """The counter of one membership and month: taken from by an update that counts, never read
    first."""

    __tablename__ = "quota_months"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "membership_id", "month"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("used between 0 and granted", name="used"),
        CheckConstraint("extract(day from month) = 1", name="month"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    membership_id: Mapped[Ref]
    month: Mapped[date] = mapped_column(Date)
    """Its first day, on the house's calendar."""
    granted: Mapped[int]
    used: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[Created]


class QuotaLine(Base):
    """`amount` is the effect on what is left."""

    __tablename__ = "quota_lines"
    __table_args__ = (
        belongs_to("quota_months", "month_id"),
        belongs_to("stays", "stay_id"),
        CheckConstraint(
            "kind in ('granted', 'taken', 'returned', 'moved_here', 'moved_away')", name="kind"
        ),
        CheckConstraint(
            "case when kind = 'granted' then amount <> 0"
            " when kind in ('taken', 'moved_here') then amount = -1 else amount = 1 end",
            name="amount",
        ),
        CheckConstraint("(kind = 'granted') = (stay_id is null)", name="stay"),
        Index("ix_quota_lines_month", "facility_id", "month_id", "id"),
        Index(
            "ix_quota_lines_stay",
            "facility_id",
            "stay_id",
            postgresql_where=text("stay_id is not null"),
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    month_id: Mapped[Ref]
    kind: Mapped[Words]
    amount: Mapped[int]
    stay_id: Mapped[Ref | None]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    at: Mapped[Instant]
    written_at: Mapped[Created]
