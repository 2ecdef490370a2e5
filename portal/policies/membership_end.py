"""What an end that is asked for means: the reasons by the states, literally.

One table for every caller: the member's page, the staff page, a rejection, a plan that is retired,
the sweeps and the provider's word. What has to happen at the provider first is named as its leg;
who bills at the desk has none.
"""

from dataclasses import dataclass
from typing import Literal, TypedDict

from portal.machines.machine import IllegalTransitionError
from portal.machines.membership import State
from portal.outcome import Code

Reason = Literal[
    "self_cancel",
    "force_cancel",
    "application_rejected",
    "plan_retired",
    "checkout_expired",
    "provider_ended",
    "end_reached",
]

Leg = Literal["abandon_checkout", "set_end", "end_now"]
"""At the provider, before anything of ours moves: give up the open checkout, no further period, or
over at once."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The event to move by, and what the provider must have done before."""

    event: Literal["ended", "end_scheduled"]
    leg: Leg | None = None


@dataclass(frozen=True, slots=True)
class Calm:
    """Nothing to do."""

    code: Code


@dataclass(frozen=True, slots=True)
class Denied:
    code: Code


Cell = Ends | Calm | Denied


class Row(TypedDict):
    """One cell a state: a state without its cell does not type-check."""

    applying: Cell | None
    checkout: Cell
    active: Cell
    past_due: Cell
    scheduled_to_end: Cell
    ended: Cell


class Table(TypedDict):
    self_cancel: Row
    force_cancel: Row
    application_rejected: Row
    plan_retired: Row
    checkout_expired: Row
    provider_ended: Row
    end_reached: Row


NOW = Ends("ended")
SCHEDULED = Ends("end_scheduled", "set_end")
STOPPED = Ends("ended", "end_now")
ABANDONED = Ends("ended", "abandon_checkout")
OVER = Calm(Code.MEMBERSHIP_ALREADY_ENDED)
SET = Calm(Code.MEMBERSHIP_ALREADY_SCHEDULED)
MOVED_ON = Calm(Code.MEMBERSHIP_STATE_CHANGED)
UNDECIDED = Denied(Code.APPLICATION_UNDER_REVIEW)
PAYING = Denied(Code.CHECKOUT_IN_PROGRESS)
DECIDED = Denied(Code.NOT_AN_APPLICATION)

TABLE: Table = {
    "self_cancel": {
        "applying": NOW,
        "checkout": ABANDONED,
        "active": SCHEDULED,
        "past_due": SCHEDULED,
        "scheduled_to_end": SET,
        "ended": OVER,
    },
    "force_cancel": {
        "applying": UNDECIDED,
        "checkout": PAYING,
        "active": STOPPED,
        "past_due": STOPPED,
        "scheduled_to_end": STOPPED,
        "ended": OVER,
    },
    "application_rejected": {
        "applying": NOW,
        "checkout": PAYING,
        "active": DECIDED,
        "past_due": DECIDED,
        "scheduled_to_end": DECIDED,
        "ended": OVER,
    },
    "plan_retired": {
        "applying": NOW,
        "checkout": PAYING,
        "active": SCHEDULED,
        "past_due": SCHEDULED,
        "scheduled_to_end": SET,
        "ended": OVER,
    },
    "checkout_expired": {
        "applying": UNDECIDED,
        "checkout": ABANDONED,
        "active": MOVED_ON,
        "past_due": MOVED_ON,
        "scheduled_to_end": MOVED_ON,
        "ended": OVER,
    },
    # The provider's own word, so there is nothing left to ask of it.
    "provider_ended": {
        "applying": None,
        "checkout": NOW,
        "active": NOW,
        "past_due": NOW,
        "scheduled_to_end": NOW,
        "ended": OVER,
    },
    # By our clock; the provider's may be behind, and then it would charge once more.
    "end_reached": {
        "applying": None,
        "checkout": STOPPED,
        "active": STOPPED,
        "past_due": STOPPED,
        "scheduled_to_end": STOPPED,
        "ended": OVER,
    },
}


def resolve(reason: Reason, state: State) -> Cell:
    """The cell. An application has no subscription and no end, so nothing can end there: asking
    is a bug of ours, and loud."""
    cell = TABLE[reason][state]
    if cell is None:
        raise IllegalTransitionError(f"membership: {reason} cannot be of one that is {state}")
    return cell
