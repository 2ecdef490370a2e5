"""The folio: append-only lines. `amount` is the effect on what the guest owes, so the balance due
is the plain sum."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Instant, Ref, Words, belongs_to


class LedgerLine(Base):
    __tablename__ = "ledger_lines"
    __table_args__ = (
        PrimaryKeyConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "form_key"),
        belongs_to("stays", "stay_id"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("num_nonnulls(stay_id, membership_id) = 1", name="folio"),
        belongs_to("payments", "payment_id"),
        belongs_to("refunds", "refund_id"),
        CheckConstraint(
            "kind in ('charge', 'charge_reversed', 'fee', 'deposit', 'payment', 'cash',"
            " 'cash_returned', 'refund', 'refund_reversed', 'chargeback', 'chargeback_reversed')",
            name="kind",
        ),
        CheckConstraint(
            "case when kind in ('charge', 'fee', 'cash_returned', 'refund', 'chargeback')"
            " then amount > 0 else amount < 0 end",
            name="sign",
        ),
        CheckConstraint(
            "(kind in ('deposit', 'payment')) = (payment_id is not null and refund_id is null)",
            name="payment",
        ),
        CheckConstraint(
            "(kind in ('refund', 'refund_reversed')) = (refund_id is not null)", name="refund"
        ),
        belongs_to("disputes", "dispute_id"),
        CheckConstraint(
            "(kind in ('chargeback', 'chargeback_reversed')) = (dispute_id is not null)",
            name="dispute",
        ),
        Index(
            "uq_ledger_lines_dispute",
            "dispute_id",
            "kind",
            unique=True,
            postgresql_where=text("dispute_id is not null"),
        ),
        CheckConstraint(
            "tax_rate is null or kind in ('charge', 'charge_reversed', 'fee')"
            " and tax_rate between 0 and 99",
            name="tax_rate",
        ),
        CheckConstraint(
            "item = '' or item in ('lodging_tax', 'ticket_book')"
            " and kind in ('charge', 'charge_reversed')",
            name="item",
        ),
        Index(
            "uq_ledger_lines_payment",
            "payment_id",
            unique=True,
            postgresql_where=text("kind in ('deposit', 'payment')"),
        ),
        Index(
            "uq_ledger_lines_refund",
            "refund_id",
            "kind",
            unique=True,
            postgresql_where=text("refund_id is not null"),
        ),
        Index("ix_ledger_lines_stay", "facility_id", "stay_id", "id"),
        Index(
            "ix_ledger_lines_membership",
            "facility_id",
            "membership_id",
            "id",
            postgresql_where=text("membership_id is not null"),
        ),
        Index("ix_ledger_lines_at", "facility_id", "at", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    facility_id: Mapped[House]
    stay_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    kind: Mapped[Words]
    amount: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[Words]
    payment_id: Mapped[Ref | None]
    refund_id: Mapped[Ref | None]
    dispute_id: Mapped[Ref | None]
    form_key: Mapped[Ref | None]
    """Of the form that asked for it, where a person did: the same form books one line."""
    memo: Mapped[Words] = mapped_column(server_default="")
    tax_rate: Mapped[int | None] = mapped_column(SmallInteger)
    """In percent, of the consumption tax that a charge or fee contains; 0 for none."""
    item: Mapped[Words] = mapped_column(server_default="")
    """What is charged for, where it is not the price itself."""
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words] = mapped_column(server_default="")
    at: Mapped[Instant]
    written_at: Mapped[Created]
