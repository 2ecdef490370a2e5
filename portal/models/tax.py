"""Consumption tax: the rates by their day, which are the law's and no house's."""

from datetime import date

from sqlalchemy import CheckConstraint, Date, SmallInteger, Text
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base


class ConsumptionTaxRate(Base):
    __tablename__ = "consumption_tax_rates"
    __table_args__ = (
        CheckConstraint("tax_class in ('standard', 'reduced')", name="tax_class"),
        CheckConstraint("percent between 0 and 99", name="percent"),
    )

    tax_class: Mapped[str] = mapped_column(Text, primary_key=True)
    valid_from: Mapped[date] = mapped_column(Date, primary_key=True)
    percent: Mapped[int] = mapped_column(SmallInteger)
