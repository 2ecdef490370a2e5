"""What the far side holds otherwise than we do."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Created, House, Key, Ref, Words, belongs_to


class Divergence(Base):
    """One difference, from when it was first seen until it healed: one open row a subject."""

    __tablename__ = "divergences"
    __table_args__ = (
        belongs_to("payments", "payment_id"),
        belongs_to("entry_keys", "key_id"),
        belongs_to("doors", "door_id"),
        belongs_to("outbox", "message_id"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint(
            "kind in ('payment_not_here', 'payment_not_there', 'payment_differs',"
            " 'refund_not_here', 'refund_not_there', 'refund_differs', 'dispute_differs',"
            " 'code_stray', 'code_missing', 'code_differs', 'code_pin_differs',"
            " 'message_not_here', 'message_not_there',"
            " 'subscription_not_here', 'subscription_not_there', 'subscription_differs')",
            name="kind",
        ),
        CheckConstraint("(healed_at is null) = (healed_by is null)", name="healed"),
        CheckConstraint("not let_be or healed_at is not null", name="let_be"),
        CheckConstraint("not let_be or kind not like 'code%'", name="code_never_let_be"),
        Index(
            "uq_divergences_open",
            "facility_id",
            "kind",
            "subject",
            unique=True,
            postgresql_where=text("healed_at is null"),
        ),
        Index("ix_divergences_subject", "facility_id", "kind", "subject"),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    kind: Mapped[Words]
    subject: Mapped[Words]
    """Our row's id, or the far side's own where we hold no row."""
    payment_id: Mapped[Ref | None]
    key_id: Mapped[Ref | None]
    door_id: Mapped[Ref | None]
    message_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    ours: Mapped[Words] = mapped_column(server_default="")
    theirs: Mapped[Words] = mapped_column(server_default="")
    first_seen: Mapped[Created]
    last_seen: Mapped[Created]
    healed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    healed_by: Mapped[Words | None]
    """'agreement' when it was no longer seen, else the person whose verb ended it."""
    let_be: Mapped[bool] = mapped_column(server_default=text("false"))
    """A person has looked: the same difference, word for word, is not raised again."""
