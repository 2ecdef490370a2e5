"""What keeps the house honest: received events, transition records, audits, dead letters."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from portal.db import Base
from portal.models.columns import (
    Attempts,
    Created,
    House,
    Instant,
    Key,
    Ref,
    Version,
    Words,
    belongs_to,
)


class WebhookEvent(Base):
    """The inbox. One account serves every facility: a row belongs to none until applied."""

    __tablename__ = "webhook_events"
    __table_args__ = (
        UniqueConstraint("source", "event_id"),
        CheckConstraint("source in ('stripe', 'seam')", name="source"),
        CheckConstraint("state in ('processing', 'completed')", name="state"),
        CheckConstraint("(state = 'completed') = (completed_at is not null)", name="completed_at"),
        CheckConstraint("(state = 'completed') = (outcome is not null)", name="outcome"),
        Index(
            "ix_webhook_events_due",
            "next_attempt_at",
            postgresql_where="state = 'processing'",
        ),
        Index("ix_webhook_events_completed", "completed_at"),
        Index("ix_webhook_events_request", "request_id"),
    )

    id: Mapped[Key]
    source: Mapped[Words]
    event_id: Mapped[Words]
    type: Mapped[Words]
    state: Mapped[Words]
    version: Mapped[Version]
    created: Mapped[Instant]
    """The provider's own time of the event."""
    livemode: Mapped[bool | None] = mapped_column(Boolean)
    account: Mapped[Words | None]
    api_version: Mapped[Words | None]
    payload: Mapped[bytes] = mapped_column(LargeBinary)
    """The bytes as received."""
    headers: Mapped[dict[str, Any]] = mapped_column(JSONB)
    received_at: Mapped[Created]
    claimed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    claim_token: Mapped[Ref | None]
    attempts: Mapped[Attempts]
    next_attempt_at: Mapped[Created]
    last_error: Mapped[Words | None]
    outcome: Mapped[Words | None]
    """applied, ignored, superseded, orphan, dead_letter."""
    detail: Mapped[Words | None]
    completed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    request_id: Mapped[Words]


class Transition(Base):
    """Append-only: one record for every change of a state column, and one for its creation."""

    __tablename__ = "transitions"
    __table_args__ = (
        Index("ix_transitions_subject", "machine", "subject_id", "at"),
        Index("ix_transitions_at", "facility_id", "at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[Ref | None]
    machine: Mapped[Words]
    subject_id: Mapped[Ref]
    verb: Mapped[Words]
    event: Mapped[Words]
    from_state: Mapped[Words | None]
    to_state: Mapped[Words]
    reason: Mapped[Words | None]
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words]
    at: Mapped[Instant]


class LegalTransition(Base):
    """The Python machines' pairs, as the guard trigger reads them. `from_state` '' is creation."""

    __tablename__ = "legal_transitions"
    __table_args__ = (PrimaryKeyConstraint("table_name", "from_state", "event"),)

    table_name: Mapped[Words]
    machine: Mapped[Words]
    from_state: Mapped[Words]
    event: Mapped[Words]
    to_state: Mapped[Words]


class GateAudit(Base):
    """Append-only: every refusal of the gate, with its code and the ground; and who was let in
    although the blocklist names them."""

    __tablename__ = "gate_audits"
    __table_args__ = (
        Index("ix_gate_audits_listed", "facility_id", "at", "id"),
        Index("ix_gate_audits_entrance", "facility_id", "entrance_id", "at", "id"),
        Index("ix_gate_audits_rule", "facility_id", "rule", "at", "id"),
        Index("ix_gate_audits_stay", "facility_id", "stay_id"),
        belongs_to("entrances", "entrance_id"),
        belongs_to("blocklist_entries", "blocklist_entry_id"),
        CheckConstraint("asks in ('booking', 'entry', 'move')", name="asks"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    facility_id: Mapped[House]
    stay_id: Mapped[Ref | None]
    entrance_id: Mapped[Ref | None]
    blocklist_entry_id: Mapped[Ref | None]
    asks: Mapped[Words] = mapped_column(server_default="entry")
    """Whether a stay might be made, its guest come in, or be moved there."""
    code: Mapped[Words]
    rule: Mapped[Words]
    ground: Mapped[Words | None]
    """Of an entry of the blocklist, as it stood: in the house's words."""
    statute: Mapped[Words | None]
    """And in the law's, where a ground of it was chosen."""
    let_in: Mapped[bool] = mapped_column(server_default=text("false"))
    digest: Mapped[Words]
    """SHA-256 of the gate's input: the decision can be proven without keeping the person."""
    actor_kind: Mapped[Words]
    actor_id: Mapped[Ref | None]
    actor_name: Mapped[Words]
    request_id: Mapped[Words]
    at: Mapped[Instant]


class DeadLetter(Base):
    """What cannot be done without a person. Closed by the verb that replays or drops it."""

    __tablename__ = "dead_letters"
    __table_args__ = (UniqueConstraint("source_kind", "source_id", "at"),)

    id: Mapped[Key]
    facility_id: Mapped[UUID | None]
    source_kind: Mapped[Words]
    source_id: Mapped[Ref]
    title: Mapped[Words]
    error: Mapped[Words]
    at: Mapped[Instant]
    closed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    closed_by: Mapped[Words | None]
    closed_how: Mapped[Words | None]


class ConsumedEffect(Base):
    """Consumer keys of effects that happened, kept by the transaction that marks them sent."""

    __tablename__ = "consumed_effects"
    __table_args__ = (PrimaryKeyConstraint("facility_id", "consumer_key"),)

    facility_id: Mapped[House]
    consumer_key: Mapped[Words]
    at: Mapped[Created]


class Checkpoint(Base):
    """How far a catch-up job has read a provider."""

    __tablename__ = "checkpoints"

    name: Mapped[Words] = mapped_column(primary_key=True)
    reached: Mapped[Instant]
