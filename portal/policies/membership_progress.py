"""What the provider's word on a subscription means for the membership that it bills."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from portal.machines.membership import State

Event = Literal[
    "first_payment_landed",
    "payment_overdue",
    "payment_recovered",
    "end_scheduled",
    "resumed",
]

OVER = ("canceled", "incomplete_expired")
RUNNING = ("active", "trialing")
BEHIND = ("past_due", "unpaid")


@dataclass(frozen=True, slots=True)
class Word:
    """What a subscription is, as far as our states depend on it."""

    status: str
    ends_at: datetime | None
    """None while it goes on."""


def events(state: State, word: Word) -> tuple[Event, ...]:
    """The events to move by, in their order. That it is over moves by `end_membership` instead: see
    `is_over`. Of a membership that has ended nothing follows, whatever is said of its subscription.
    """
    if state in ("applying", "ended") or word.status in OVER:
        return ()
    if state == "checkout":
        return _from_checkout(word)
    if state == "scheduled_to_end":
        # One that is behind as well is behind again once the end is taken back.
        if word.ends_at is not None:
            return ()
        return ("resumed", "payment_overdue") if word.status in BEHIND else ("resumed",)
    if word.ends_at is not None:
        return ("end_scheduled",)
    if state == "active" and word.status in BEHIND:
        return ("payment_overdue",)
    if state == "past_due" and word.status in RUNNING:
        return ("payment_recovered",)
    return ()


def _from_checkout(word: Word) -> tuple[Event, ...]:
    """Behind already means that a first payment did land: the word on it was overtaken."""
    if word.status not in (*RUNNING, *BEHIND):
        return ()
    if word.ends_at is not None:
        return ("first_payment_landed", "end_scheduled")
    if word.status in BEHIND:
        return ("first_payment_landed", "payment_overdue")
    return ("first_payment_landed",)


def is_over(state: State, word: Word) -> bool:
    """Whether `end_membership` is to be asked, by reason of the provider's word."""
    return word.status in OVER and state not in ("applying", "ended")
