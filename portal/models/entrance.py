"""Where guests come in: a way into the house with its hours, its doors and what is sold there."""

from datetime import time

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    PrimaryKeyConstraint,
    Time,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Version, Words, belongs_to

MODES = ("reservation_only", "walk_in")
STRETCHES = " and ".join(
    f"(opens[{day}] <> closes[{day}] or opens[{day}] = '00:00')" for day in range(1, 8)
)
"""None is empty: only midnight is both an end and a beginning."""


class Entrance(Base):
    """A door without an entrance knows no hours, no capacity and no choice of plans."""

    __tablename__ = "entrances"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "slug"),
        UniqueConstraint("facility_id", "form_key"),
        CheckConstraint("mode in ('reservation_only', 'walk_in')", name="mode"),
        CheckConstraint("(opens is null) = (closes is null)", name="hours"),
        CheckConstraint(
            "opens is null or array_dims(opens) is not distinct from '[1:7]'"
            " and array_dims(closes) is not distinct from '[1:7]'"
            " and array_positions(opens, null) = array_positions(closes, null)"
            " and cardinality(array_positions(opens, null)) < 7",
            name="week",
        ),
        CheckConstraint(STRETCHES, name="stretches"),
        CheckConstraint("capacity > 0", name="capacity"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    slug: Mapped[Words]
    """What the house calls it in its own addresses."""
    public_name: Mapped[Words] = mapped_column(
        unique=True, server_default=text("substr(replace(gen_random_uuid()::text, '-', ''), 1, 20)")
    )
    """In the kiosk's address: drawn by us, so that nobody guesses it or learns of another's."""
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    mode: Mapped[Words]
    opens: Mapped[list[time | None] | None] = mapped_column(ARRAY(Time))
    closes: Mapped[list[time | None] | None] = mapped_column(ARRAY(Time))
    """Of each weekday, Monday first: `policies.opening.week`. Neither where it never closes."""
    capacity: Mapped[int | None]
    """Guests in house behind its doors at once; null for as many as the spaces take."""
    form_key: Mapped[Ref]
    version: Mapped[Version]
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


class EntrancePlan(Base):
    """This plan is sold at this entrance."""

    __tablename__ = "entrance_plans"
    __table_args__ = (
        PrimaryKeyConstraint("entrance_id", "plan_id"),
        belongs_to("entrances", "entrance_id"),
        belongs_to("plans", "plan_id"),
    )

    facility_id: Mapped[House]
    entrance_id: Mapped[Ref]
    plan_id: Mapped[Ref]
