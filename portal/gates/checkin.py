"""The gate: one pure and total decision for desk, kiosk, guest's page and any crafted request."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from portal.money import Money
from portal.outcome import Code
from portal.policies import blocklist, opening
from portal.policies.blocklist import Listed, Mark
from portal.policies.opening import Week

Asks = Literal["booking", "entry", "move"]
"""Whether a stay may be made, its guest may come in now, or the stay may have another space."""


RuleName = Literal[
    "entrance_mode", "plans_sold", "blocklist", "opening_hours", "capacity", "window", "membership",
    "space", "register", "settled",
]  # fmt: skip
"""What an audit row calls the rule that fired."""


@dataclass(frozen=True, slots=True)
class Entrance:
    """The way in that leads to the stay's door, or to the one that it would have. `week`: None
    where it never closes. `inside`: persons behind its doors, of other stays than this one.
    `plan_sold`: the stay's plan is sold there, or it has none."""

    id: UUID
    mode: str
    week: Week | None
    zone: str
    capacity: int | None
    inside: int
    plan_sold: bool


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
    asks: Asks = "entry"
    walk_in: bool = False
    entrance: Entrance | None = None
    """None for a door that no entrance leads to."""
    lodging: bool = True
    """Only a plan of day use is none: the law then asks for no ground of a refusal."""
    person: tuple[Mark, ...] = ()
    listed: tuple[Listed, ...] = ()
    """Entries of the blocklist that may mean the person."""
    in_house: bool = False
    """Of a move: its guest is in already."""
    same_entrance: bool = False
    """Of a move: the stay is behind that entrance already, and takes no more room."""
    register_missing: bool = False
    """The house lets nobody of lodging in without the register of guests, and it is not filled."""
    persons: int = 1
    """Who come, or are to be when more join."""
    joins: bool = False
    """More persons for a stay whose guest has been let in, or stands at the entrance."""

    def digest(self) -> str:
        """SHA-256 over the facts, for the audit row."""
        return hashlib.sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Decision:
    """`blocked`: the entry of the blocklist that refuses. `in_vain`: one that names the person
    without the ground that the law asks for; they are let in, and staff are told."""

    allowed: bool
    code: Code | None = None
    rule: RuleName | Literal[""] = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    blocked: Listed | None = None
    in_vain: Listed | None = None


def evaluate_checkin_request(request: CheckinRequest) -> Decision:
    """Allowed, or refused with the first rule that fires: entrance, plan, blocklist, hours, room;
    and for an entry time, membership, space, the register, money. A move asks what depends on the
    space: of a stay that is only reserved what booking it there would ask of the entrance, of a
    guest in house whether another entrance sells the plan and has room."""
    for rule in _rules(request):
        if refusal := rule(request):
            return refusal
    return Decision(allowed=True, in_vain=next(iter(_hits(request)), None))


def _rules(request: CheckinRequest) -> "tuple[Rule, ...]":
    if request.joins:
        return JOINING
    if request.asks == "entry":
        return ENTRY
    if request.asks == "move":
        return _of_move(request)
    return WALK_IN if request.walk_in else BOOKING


def _of_move(request: CheckinRequest) -> "tuple[Rule, ...]":
    """Hours put nobody out who is in, and neither does a plan that is no longer sold where they
    are."""
    if request.in_house:
        return () if request.same_entrance else MOVE_IN_HOUSE
    return MOVE_OF_WALK_IN if request.walk_in else MOVE_OF_RESERVATION


def _mode(request: CheckinRequest) -> Decision | None:
    way = request.entrance
    if way and way.mode == "reservation_only" and request.walk_in:
        return _refused(Code.WALK_IN_NOT_ALLOWED, "entrance_mode")
    return None


def _plan(request: CheckinRequest) -> Decision | None:
    if request.entrance and not request.entrance.plan_sold:
        return _refused(Code.PLAN_NOT_IN_CONFIG, "plans_sold")
    return None


def _membership(request: CheckinRequest) -> Decision | None:
    return _refused(request.withheld, "membership") if request.withheld else None


def _blocklist(request: CheckinRequest) -> Decision | None:
    """Lodging is refused on a ground of the law alone; the entries that have one come first."""
    entry = next(iter(_hits(request)), None)
    if entry is None or (request.lodging and entry.statute is None):
        return None
    return Decision(False, Code.GUEST_BLOCKED, "blocklist", blocked=entry)


def _hits(request: CheckinRequest) -> tuple[Listed, ...]:
    return blocklist.hits(request.person, request.listed, request.now)


def _hours(request: CheckinRequest) -> Decision | None:
    way = request.entrance
    opens_at = way and opening.closed_until(way.week, way.zone, request.now)
    if opens_at:
        return _refused(Code.ENTRANCE_CLOSED, "opening_hours", opens_at=opens_at)
    return None


def _room(request: CheckinRequest) -> Decision | None:
    way = request.entrance
    if request.same_entrance:
        return None
    if way and way.capacity is not None and way.inside + request.persons > way.capacity:
        return _refused(Code.ENTRANCE_FULL, "capacity")
    return None


def _window(request: CheckinRequest) -> Decision | None:
    opens_at = request.starts_at - timedelta(minutes=request.early_minutes)
    if request.now < opens_at:
        return _refused(Code.STAY_NOT_YET_OPEN, "window", opens_at=opens_at)
    if request.now >= request.ends_at:
        return _refused(Code.STAY_WINDOW_OVER, "window", ended_at=request.ends_at)
    return None


def _space(request: CheckinRequest) -> Decision | None:
    if not request.space_active:
        return _refused(Code.SPACE_NOT_USABLE, "space")
    if request.space_occupied:
        return _refused(Code.SPACE_TAKEN, "space")
    if request.space_quarantined:
        return _refused(Code.SPACE_QUARANTINED, "space")
    return None


def _register(request: CheckinRequest) -> Decision | None:
    return _refused(Code.REGISTER_MISSING, "register") if request.register_missing else None


def _money(request: CheckinRequest) -> Decision | None:
    if request.balance_due <= 0:
        return None
    if request.payment_unknown:
        return _refused(Code.PAYMENT_UNKNOWN, "settled")
    if request.payment_processing:
        return _refused(Code.PAYMENT_PENDING, "settled")
    due = Money(request.balance_due, request.currency)
    return _refused(Code.BALANCE_DUE, "settled", amount=due)


Rule = Callable[[CheckinRequest], Decision | None]
BOOKING: tuple[Rule, ...] = (_mode, _plan, _membership, _blocklist)
WALK_IN: tuple[Rule, ...] = (*BOOKING, _hours, _room)
"""Whoever books without a reservation stands at the entrance now."""
MOVE_IN_HOUSE: tuple[Rule, ...] = (_plan, _room)
MOVE_OF_RESERVATION: tuple[Rule, ...] = (_mode, _plan)
MOVE_OF_WALK_IN: tuple[Rule, ...] = (*MOVE_OF_RESERVATION, _hours, _room)
JOINING: tuple[Rule, ...] = (_room, _register)
"""Of a stay that all else was asked of."""
ENTRY: tuple[Rule, ...] = (
    _mode,
    _plan,
    _blocklist,
    _hours,
    _room,
    _window,
    _membership,
    _space,
    _register,
    _money,
)


def _refused(code: Code, rule: RuleName, **details: Any) -> Decision:
    return Decision(allowed=False, code=code, rule=rule, details=details)
