"""What a verb says: Applied, Noop, Conflict or Refused, each with a stable code.

Exceptions are for faults. The words for a code stand in `wording.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

Status = Literal["applied", "noop", "conflict", "refused"]


class Code(StrEnum):
    """Every code that a verb may answer. The subject is the prefix; the rest is its present state
    or the named reason."""

    # stays
    STAY_CREATED = "STAY_CREATED"
    STAY_ALREADY_CREATED = "STAY_ALREADY_CREATED"
    STAY_ADMITTED = "STAY_ADMITTED"
    STAY_ALREADY_ADMITTED = "STAY_ALREADY_ADMITTED"
    STAY_DEPARTED = "STAY_DEPARTED"
    STAY_ALREADY_DEPARTED = "STAY_ALREADY_DEPARTED"
    STAY_CANCELLED = "STAY_CANCELLED"
    STAY_ALREADY_CANCELLED = "STAY_ALREADY_CANCELLED"
    STAY_NO_SHOW = "STAY_NO_SHOW"
    STAY_ALREADY_NO_SHOW = "STAY_ALREADY_NO_SHOW"
    STAY_REINSTATED = "STAY_REINSTATED"
    STAY_ALREADY_RESERVED = "STAY_ALREADY_RESERVED"
    STAY_MOVED = "STAY_MOVED"
    STAY_ALREADY_THERE = "STAY_ALREADY_THERE"
    STAY_TIMES_CHANGED = "STAY_TIMES_CHANGED"
    STAY_TIMES_UNCHANGED = "STAY_TIMES_UNCHANGED"
    STAY_STATE_CHANGED = "STAY_STATE_CHANGED"
    STAY_NOT_YET_OPEN = "STAY_NOT_YET_OPEN"
    STAY_WINDOW_OVER = "STAY_WINDOW_OVER"
    STAY_NOT_YET_LATE = "STAY_NOT_YET_LATE"
    STAY_NOT_IN_HOUSE = "STAY_NOT_IN_HOUSE"
    STAY_TIMES_IMPOSSIBLE = "STAY_TIMES_IMPOSSIBLE"
    STAY_OVER = "STAY_OVER"
    DEPOSIT_EXCEEDS_PRICE = "DEPOSIT_EXCEEDS_PRICE"
    FEE_EXCEEDS_PRICE = "FEE_EXCEEDS_PRICE"
    PRICE_BELOW_ZERO = "PRICE_BELOW_ZERO"
    SPACE_TAKEN = "SPACE_TAKEN"
    SPACE_QUARANTINED = "SPACE_QUARANTINED"
    SPACE_NOT_USABLE = "SPACE_NOT_USABLE"

    # guests
    GUEST_LANGUAGE_CHOSEN = "GUEST_LANGUAGE_CHOSEN"
    GUEST_LANGUAGE_KEPT = "GUEST_LANGUAGE_KEPT"

    # money
    PAYMENT_OPENED = "PAYMENT_OPENED"
    PAYMENT_ATTEMPT_OPEN = "PAYMENT_ATTEMPT_OPEN"
    PAYMENT_PENDING = "PAYMENT_PENDING"
    PAYMENT_UNKNOWN = "PAYMENT_UNKNOWN"
    PAYMENT_RESOLVED = "PAYMENT_RESOLVED"
    PAYMENT_STILL_UNKNOWN = "PAYMENT_STILL_UNKNOWN"
    PAYMENT_NOT_THERE = "PAYMENT_NOT_THERE"
    PAYMENT_STATE_CHANGED = "PAYMENT_STATE_CHANGED"
    PAYMENT_RECORDED = "PAYMENT_RECORDED"
    PAYMENT_ALREADY_RECORDED = "PAYMENT_ALREADY_RECORDED"
    CASH_TAKEN = "CASH_TAKEN"
    CASH_ALREADY_BOOKED = "CASH_ALREADY_BOOKED"
    CASH_RETURNED = "CASH_RETURNED"
    CASH_EXCEEDS_DUE = "CASH_EXCEEDS_DUE"
    CASH_EXCEEDS_OWED = "CASH_EXCEEDS_OWED"
    NOTHING_DUE = "NOTHING_DUE"
    BALANCE_DUE = "BALANCE_DUE"
    AMOUNT_MISMATCH = "AMOUNT_MISMATCH"
    AMOUNT_BELOW_MINIMUM = "AMOUNT_BELOW_MINIMUM"
    NOTHING_TO_REFUND = "NOTHING_TO_REFUND"
    REFUND_EXCEEDS_PAID = "REFUND_EXCEEDS_PAID"
    REFUND_PENDING = "REFUND_PENDING"
    REFUND_UNAVAILABLE = "REFUND_UNAVAILABLE"
    REFUND_UNKNOWN = "REFUND_UNKNOWN"
    REFUND_FAILED = "REFUND_FAILED"
    REFUND_SENT = "REFUND_SENT"
    REFUND_ALREADY_ASKED = "REFUND_ALREADY_ASKED"
    REFUND_RECORDED = "REFUND_RECORDED"
    REFUND_STATE_CHANGED = "REFUND_STATE_CHANGED"
    BILLING_UNAVAILABLE = "BILLING_UNAVAILABLE"

    # keys
    KEY_ISSUED = "KEY_ISSUED"
    KEY_ALREADY_ISSUED = "KEY_ALREADY_ISSUED"
    KEY_NOT_CONFIRMED = "KEY_NOT_CONFIRMED"
    KEY_REVOKE_ASKED = "KEY_REVOKE_ASKED"
    KEY_REVOKED = "KEY_REVOKED"
    KEY_FAILED = "KEY_FAILED"
    KEY_MISSING = "KEY_MISSING"
    KEY_ORDERED = "KEY_ORDERED"
    KEY_STATE_CHANGED = "KEY_STATE_CHANGED"
    LOCK_UNAVAILABLE = "LOCK_UNAVAILABLE"
    LOCK_ASKED_AGAIN = "LOCK_ASKED_AGAIN"
    LOCK_NOT_STUCK = "LOCK_NOT_STUCK"
    LOCK_ANSWERED = "LOCK_ANSWERED"
    LOCK_NOT_THERE = "LOCK_NOT_THERE"

    # messages and machinery
    MESSAGE_REQUEUED = "MESSAGE_REQUEUED"
    MESSAGE_DROPPED = "MESSAGE_DROPPED"
    MESSAGE_RECORDED = "MESSAGE_RECORDED"
    MESSAGE_NOT_WAITING = "MESSAGE_NOT_WAITING"
    EVENT_REPLAYED = "EVENT_REPLAYED"
    EVENT_ALREADY_HANDLED = "EVENT_ALREADY_HANDLED"
    EVENT_DISMISSED = "EVENT_DISMISSED"
    CHANNEL_UNAVAILABLE = "CHANNEL_UNAVAILABLE"

    # gate
    WALK_IN_NOT_ALLOWED = "WALK_IN_NOT_ALLOWED"
    MEMBERS_ONLY_PLAN = "MEMBERS_ONLY_PLAN"
    PLAN_NOT_IN_CONFIG = "PLAN_NOT_IN_CONFIG"
    GUEST_BLOCKED = "GUEST_BLOCKED"

    # everyone
    NOT_FOUND = "NOT_FOUND"
    NOT_PERMITTED = "NOT_PERMITTED"
    STALE_PAGE = "STALE_PAGE"
    FORM_EXPIRED = "FORM_EXPIRED"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a row is now, since when and by whom: what a conflict tells the person."""

    machine: str
    state: str
    version: int
    since: datetime | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    code: Code
    to: str
    subject: UUID | None = None
    status: Literal["applied"] = "applied"


@dataclass(frozen=True, slots=True)
class Noop:
    code: Code
    subject: UUID | None = None
    status: Literal["noop"] = "noop"


@dataclass(frozen=True, slots=True)
class Conflict:
    code: Code
    current: Standing
    status: Literal["conflict"] = "conflict"


@dataclass(frozen=True, slots=True)
class Refused:
    """`details` fills the placeholders of the code's message: amounts as Money, instants aware."""

    code: Code
    details: Mapping[str, Any] = field(default_factory=dict)
    status: Literal["refused"] = "refused"


Outcome = Applied | Noop | Conflict | Refused
