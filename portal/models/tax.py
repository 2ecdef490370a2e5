"""Consumption tax, whose rates are the law's and no house's, and each house's lodging tax."""

from datetime import date

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    Identity,
    Index,
    SmallInteger,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Words, belongs_to


class ConsumptionTaxRate(Base):
    __tablename__ = "consumption_tax_rates"
    __table_args__ = (
        CheckConstraint("tax_class in ('standard', 'reduced')", name="tax_class"),
        CheckConstraint("percent between 0 and 99", name="percent"),
    )

    tax_class: Mapped[str] = mapped_column(Text, primary_key=True)
    valid_from: Mapped[date] = mapped_column(Date, primary_key=True)
    percent: Mapped[int] = mapped_column(SmallInteger)


class LodgingTaxTable(Base):
    """What a night costs in lodging tax from a day on. Of two for one day, the later one holds."""

    __tablename__ = "lodging_tax_tables"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        Index("ix_lodging_tax_tables_valid", "facility_id", "valid_from", "no"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    valid_from: Mapped[date] = mapped_column(Date)
    form_key: Mapped[Ref]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    made_at: Mapped[Created]
    no: Mapped[int] = mapped_column(BigInteger, Identity(always=True))


class LodgingTaxBand(Base):
    """`amount` for a person and a night whose price without consumption tax is from `min_price` to
    `max_price`, both included; null for whatever is more. Smallest unit."""

    __tablename__ = "lodging_tax_bands"
    __table_args__ = (
        belongs_to("lodging_tax_tables", "table_id"),
        CheckConstraint("0 <= min_price and min_price <= max_price", name="prices"),
        CheckConstraint("amount >= 0", name="amount"),
    )

    facility_id: Mapped[House] = mapped_column(primary_key=True)
    table_id: Mapped[Ref] = mapped_column(primary_key=True)
    min_price: Mapped[int] = mapped_column(primary_key=True)
    max_price: Mapped[int | None]
    amount: Mapped[int]
