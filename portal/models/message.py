"""The outbox: a message is a row written with the change."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, SmallInteger, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import Attempts, Created, House, Key, Ref, Words, belongs_to


class Message(Base):
    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        UniqueConstraint("facility_id", "dedupe_key"),
        belongs_to("stays", "stay_id"),
        belongs_to("memberships", "membership_id"),
        CheckConstraint("num_nonnulls(stay_id, membership_id) <= 1", name="subject"),
        CheckConstraint("channel in ('email', 'line')", name="channel"),
        CheckConstraint("locale in ('ja', 'en')", name="locale"),
        CheckConstraint(
            "num_nonnulls(sent_at, suppressed_at, withdrawn_at, dropped_at) <= 1", name="one_end"
        ),
        Index(
            "ix_outbox_due",
            "priority",
            "next_attempt_at",
            postgresql_where=text(
                "sent_at is null and suppressed_at is null and withdrawn_at is null"
                " and dropped_at is null and dead_at is null and unknown_at is null"
            ),
        ),
        Index("ix_outbox_stay", "facility_id", "stay_id"),
        Index(
            "ix_outbox_membership",
            "facility_id",
            "membership_id",
            postgresql_where=text("membership_id is not null"),
        ),
        Index(
            "ix_outbox_mailed",
            "facility_id",
            "sent_at",
            "id",
            postgresql_where=text("channel = 'email' and sent_at is not null"),
        ),
    )

    id: Mapped[Key]
    """Also the channel's retry key, where it has one, and the local part of the Message-ID."""
    facility_id: Mapped[House]
    stay_id: Mapped[Ref | None]
    membership_id: Mapped[Ref | None]
    dedupe_key: Mapped[Words]
    """Names the fact, not only the subject: `entry_key_issued:<key id>`."""
    consumer_key: Mapped[Words]
    """Event id and effect where an event caused it, else the dedupe key."""
    event_type: Mapped[Words]
    channel: Mapped[Words]
    recipient: Mapped[Words]
    locale: Mapped[Words]
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)
    priority: Mapped[int] = mapped_column(SmallInteger)
    """0 door keys, 1 receipts, 2 the rest."""
    not_before: Mapped[Created]
    claimed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    claim_token: Mapped[Ref | None]
    sending_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    sent_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    suppressed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    withdrawn_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    dropped_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    unknown_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """A sender died, or lost the answer, after it began to transmit on a channel without a retry
    key. A person resends or drops it."""
    dead_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    attempts: Mapped[Attempts]
    next_attempt_at: Mapped[Created]
    last_error: Mapped[Words | None]
    request_id: Mapped[Words] = mapped_column(server_default="")
    created_at: Mapped[Created]
