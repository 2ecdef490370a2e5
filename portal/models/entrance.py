"""Where guests come in: a way into the house with its hours, its doors and what is sold there."""

from datetime import time

from sqlalchemy import CheckConstraint, PrimaryKeyConstraint, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Version, Words, belongs_to

MODES = ("reservation_only", "walk_in")


class Entrance(Base):
    """A door without an entrance knows no hours, no capacity and no choice of plans."""

    __tablename__ = "entrances"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "slug"),
        UniqueConstraint("facility_id", "form_key"),
        CheckConstraint("mode in ('reservation_only', 'walk_in')", name="mode"),
        CheckConstraint("(opens is null) = (closes is null) and opens <> closes", name="hours"),
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
    opens: Mapped[time | None]
    closes: Mapped[time | None]
    """Every day from then to then on the house's clocks, past midnight where it closes before it
    opens; neither where it never closes."""
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
