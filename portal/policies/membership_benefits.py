"""Whether a membership gives what it promises, at a moment."""

from dataclasses import dataclass
from datetime import datetime

from portal.machines.membership import State
from portal.outcome import Code


@dataclass(frozen=True, slots=True)
class Membership:
    """`while_past_due`: the house goes on giving while a payment is overdue."""

    state: State
    ends_at: datetime | None
    paused: bool
    while_past_due: bool


def withheld(membership: Membership | None, at: datetime) -> Code | None:
    """Why it gives nothing at `at`; None where it gives. An end that has passed counts as over,
    though the sweep has not come by."""
    if membership is None:
        return Code.MEMBERS_ONLY_PLAN
    if membership.ends_at is not None and at >= membership.ends_at:
        return Code.MEMBERS_ONLY_PLAN
    if membership.state not in _giving(membership):
        return Code.MEMBERS_ONLY_PLAN
    return Code.MEMBERSHIP_PAUSED if membership.paused else None


def _giving(membership: Membership) -> tuple[State, ...]:
    if membership.while_past_due:
        return ("active", "scheduled_to_end", "past_due")
    return ("active", "scheduled_to_end")
