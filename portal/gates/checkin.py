"""The gate: one pure and total decision for desk, kiosk, guest's page and any crafted request."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from portal.money import Money
from portal.outcome import Code


@dataclass(frozen=True, slots=True)
class CheckinRequest:
    """The facts the gate decides on. Amounts in the currency's smallest unit; instants aware."""

    now: datetime
    starts_at: datetime
    ends_at: datetime
    early_minutes: int
    balance_due: int
    currency: str
    payment_processing: bool
    payment_unknown: bool
    space_active: bool
    space_quarantined: bool
    space_occupied: bool
    withheld: Code | None
    """Why the membership that the stay needs does not give it; None where it gives, or none is
    needed."""
    register_missing: bool = False
    """The house lets nobody of lodging in without the register of guests, and it is not filled."""

    def digest(self) -> str:
        """SHA-256 over the facts, for the audit row."""
        return hashlib.sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    code: Code | None = None
    rule: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def evaluate_checkin_request(request: CheckinRequest) -> Decision:
    """Allowed, or refused with the first rule that fires: time, membership, space, money."""
    opens_at = request.starts_at - timedelta(minutes=request.early_minutes)
    if request.now < opens_at:
        return _refused(Code.STAY_NOT_YET_OPEN, "window", opens_at=opens_at)
    if request.now >= request.ends_at:
        return _refused(Code.STAY_WINDOW_OVER, "window", ended_at=request.ends_at)
    if request.withheld is not None:
        return _refused(request.withheld, "membership")
    if not request.space_active:
        return _refused(Code.SPACE_NOT_USABLE, "space")
    if request.space_occupied:
        return _refused(Code.SPACE_TAKEN, "space")
    if request.space_quarantined:
        return _refused(Code.SPACE_QUARANTINED, "space")
    if request.register_missing:
        return _refused(Code.REGISTER_MISSING, "register")
    return _money(request)


def _money(request: CheckinRequest) -> Decision:
    if request.balance_due <= 0:
        return Decision(allowed=True)
    if request.payment_unknown:
        return _refused(Code.PAYMENT_UNKNOWN, "settled")
    if request.payment_processing:
        return _refused(Code.PAYMENT_PENDING, "settled")
    due = Money(request.balance_due, request.currency)
    return _refused(Code.BALANCE_DUE, "settled", amount=due)


def _refused(code: Code, rule: str, **details: Any) -> Decision:
    return Decision(allowed=False, code=code, rule=rule, details=details)
