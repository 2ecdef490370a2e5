"""Door keys and the commands that carry them to a lock."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    Identity,
    Index,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP, TSTZRANGE, ExcludeConstraint
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


class EntryKey(Base):
    """A code on a door for a stay. The code is sealed; `pin_mark` tells equal codes apart."""

    __tablename__ = "entry_keys"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        belongs_to("stays", "stay_id"),
        belongs_to("doors", "door_id"),
        belongs_to("spaces", "space_id"),
        CheckConstraint(
            "state in ('requested', 'issued', 'missing', 'revoking', 'revoked', 'failed')",
            name="state",
        ),
        CheckConstraint("ends_at > starts_at", name="times"),
        CheckConstraint(
            "state not in ('issued', 'missing') or issued_at is not null", name="issued_at"
        ),
        CheckConstraint("(state = 'revoked') = (revoked_at is not null)", name="revoked_at"),
        # One code means one guest on one door at one time.
        ExcludeConstraint(
            (literal_column("int8range(door_no, door_no, '[]')"), "&&"),
            (literal_column("int8range(pin_mark, pin_mark, '[]')"), "&&"),
            (literal_column("on_lock"), "&&"),
            where=text("state not in ('revoked', 'failed')"),
            using="gist",
            name="ex_entry_keys_code",
        ),
        Index(
            "uq_entry_keys_one_live",
            "stay_id",
            "door_id",
            unique=True,
            postgresql_where=text("state in ('requested', 'issued', 'missing')"),
        ),
        Index("ix_entry_keys_stay", "facility_id", "stay_id"),
        Index(
            "ix_entry_keys_space",
            "facility_id",
            "space_id",
            postgresql_where=text("state not in ('revoked', 'failed')"),
        ),
        Index(
            "ix_entry_keys_to_poll",
            "next_poll_at",
            postgresql_where=text("state in ('requested', 'issued', 'missing', 'revoking')"),
        ),
    )

    id: Mapped[Key]
    facility_id: Mapped[House]
    stay_id: Mapped[Ref]
    space_id: Mapped[Ref]
    door_id: Mapped[Ref]
    door_no: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[Words]
    version: Mapped[Version]
    pin_sealed: Mapped[Words]
    pin_mark: Mapped[int] = mapped_column(BigInteger)
    starts_at: Mapped[Instant]
    ends_at: Mapped[Instant]
    on_lock: Mapped[Any] = mapped_column(
        TSTZRANGE, Computed("tstzrange(starts_at, ends_at, '[)')", persisted=True), deferred=True
    )
    code_name: Mapped[Words] = mapped_column(unique=True)
    """The code's own name on the device, by which it is found again."""
    provider_code_id: Mapped[Words | None] = mapped_column(unique=True)
    observed: Mapped[Words | None]
    """What the controller last said of it, in its own word."""
    observed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    next_poll_at: Mapped[Created]
    failure: Mapped[Words | None]
    issued_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    revoked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    created_at: Mapped[Created]


class LockCommand(Base):
    """Work for a lock: done, waiting, or dead and waiting for a person."""

    __tablename__ = "lock_commands"
    __table_args__ = (
        UniqueConstraint("facility_id", "id"),
        belongs_to("entry_keys", "key_id"),
        CheckConstraint("kind in ('set', 'update', 'remove')", name="kind"),
        CheckConstraint("done_at is null or dead_at is null", name="one_end"),
        Index(
            "ix_lock_commands_due",
            "next_attempt_at",
            postgresql_where=text("done_at is null and dead_at is null"),
        ),
        Index("ix_lock_commands_key", "facility_id", "key_id"),
    )

    id: Mapped[Key]
    no: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    """The order in which they were asked: commands for one key run one after another."""
    facility_id: Mapped[House]
    key_id: Mapped[Ref]
    kind: Mapped[Words]
    idempotency_key: Mapped[Words] = mapped_column(unique=True)
    claimed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    claim_token: Mapped[Ref | None]
    attempts: Mapped[Attempts]
    next_attempt_at: Mapped[Created]
    unknown_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    """Since when the last answer is lost; null once the far side was read."""
    done_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    dead_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    result: Mapped[Words | None]
    last_error: Mapped[Words | None]
    request_id: Mapped[Words] = mapped_column(server_default="")
    created_at: Mapped[Created]
