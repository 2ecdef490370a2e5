"""A house, its doors, its spaces and what it sells."""

from datetime import datetime, time

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Version, Words, belongs_to


class Facility(Base):
    __tablename__ = "facilities"
    __table_args__ = (
        CheckConstraint("default_locale in ('ja', 'en')", name="locale"),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency"),
        CheckConstraint(
            "early_minutes >= 0 and key_lead_minutes >= 0 and key_lag_minutes >= 0"
            " and key_alarm_minutes >= 0",
            name="minutes",
        ),
        CheckConstraint("tax_number ~ '^T[1-9][0-9]{12}$'", name="tax_number"),
        CheckConstraint("deposit_hours between 1 and 8784", name="deposit_hours"),
    )

    id: Mapped[Key]
    slug: Mapped[Words] = mapped_column(unique=True)
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    kind: Mapped[Words]
    time_zone: Mapped[Words]
    default_locale: Mapped[Words] = mapped_column(server_default="ja")
    currency: Mapped[Words] = mapped_column(server_default="JPY")
    phone: Mapped[Words | None]
    email: Mapped[Words | None]
    address_ja: Mapped[Words] = mapped_column(server_default="")
    address_en: Mapped[Words] = mapped_column(server_default="")
    check_in_from: Mapped[time] = mapped_column(server_default="15:00")
    check_out_by: Mapped[time] = mapped_column(server_default="10:00")
    early_minutes: Mapped[int] = mapped_column(server_default=text("0"))
    """How long before the stay begins the gate already opens."""
    key_lead_minutes: Mapped[int] = mapped_column(server_default=text("0"))
    key_lag_minutes: Mapped[int] = mapped_column(server_default=text("0"))
    """Room for a lock's own clock: widens the window on the lock only, never the stay."""
    key_alarm_minutes: Mapped[int] = mapped_column(server_default=text("15"))
    """How long an ordered key may stay unconfirmed before staff are told."""
    benefits_while_past_due: Mapped[bool] = mapped_column(server_default=text("false"))
    """Members keep what their membership gives while a payment of theirs is overdue."""
    register_required: Mapped[bool] = mapped_column(server_default=text("false"))
    """A guest of lodging is let in once the register of guests is complete."""
    deposit_hours: Mapped[int | None]
    """How long a booking holds its space for a deposit that is asked for; null: without end."""
    issuer_name: Mapped[Words] = mapped_column(server_default="")
    """Who issues its receipts, where that is not its own name."""
    tax_number: Mapped[Words | None]
    """Of the issuer of qualified invoices; null where it is not registered."""
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


class Door(Base):
    """A lock that the controller knows as `device_id`."""

    __tablename__ = "doors"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "device_id"),
        belongs_to("entrances", "entrance_id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    no: Mapped[int] = mapped_column(BigInteger, Identity(always=True), unique=True)
    """The door as a number, for the exclusion constraint on codes."""
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    device_id: Mapped[Words]
    online: Mapped[bool | None]
    battery: Mapped[int | None] = mapped_column(SmallInteger)
    """In percent; null where the lock does not tell."""
    asked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """When the controller last said how the lock is; `online` and `battery` are of then."""
    entrance_id: Mapped[Ref | None]
    """The way in that leads to it; null for a door that stands under no rule of an entrance."""
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


class Space(Base):
    """What one stay occupies: a capsule, a room, a desk, a locker."""

    __tablename__ = "spaces"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
        UniqueConstraint("no", "id"),
        belongs_to("doors", "door_id"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    no: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    """The space as a number, for the exclusion constraint on stays."""
    code: Mapped[Words]
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    door_id: Mapped[Ref]
    active: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en


class Plan(Base):
    """What a stay is sold as. Its price and tax are the next booking's: a stay keeps its own."""

    __tablename__ = "plans"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "code"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("cancellation_policies", "cancellation_policy_id"),
        CheckConstraint("unit in ('night', 'hour', 'visit')", name="unit"),
        CheckConstraint("kind in ('lodging', 'day_use')", name="kind"),
        CheckConstraint("unit_price >= 0 and deposit >= 0", name="amounts"),
        CheckConstraint("tax_class in ('standard', 'reduced', 'untaxed')", name="tax_class"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    code: Mapped[Words]
    name_ja: Mapped[Words]
    name_en: Mapped[Words]
    kind: Mapped[Words]
    unit: Mapped[Words]
    unit_price: Mapped[int]
    deposit: Mapped[int] = mapped_column(server_default=text("0"))
    """Asked before arrival, in the currency's smallest unit."""
    tax_class: Mapped[Words] = mapped_column(server_default="standard")
    """Which rate of consumption tax its price contains, by `consumption_tax_rates` of the day."""
    members_only: Mapped[bool] = mapped_column(server_default=text("false"))
    """Booked and entered only with a membership that gives."""
    cancellation_policy_id: Mapped[Ref | None]
    """Null: the desk decides what a cancellation costs."""
    active: Mapped[bool] = mapped_column(server_default=text("true"))
    """Sold; whoever has booked it comes in all the same."""
    form_key: Mapped[Ref | None]
    version: Mapped[Version]
    created_at: Mapped[Created]

    def name(self, locale: str) -> str:
        return self.name_ja if locale == "ja" else self.name_en
