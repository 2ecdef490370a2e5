"""What a cancellation costs and gives back, by the steps that were agreed to. Total: each instant,
before, at and after arrival, lies in exactly one step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

LATEST = 0
"""A step of this many hours begins at arrival; so does what a no-show costs."""

EARLIEST = 8760
MOST_STEPS = 6


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """From `hours_before` arrival on, until the next step begins; the last one has no end."""

    hours_before: int
    fee_percent: int
    returns_quota: bool


@dataclass(frozen=True, slots=True)
class Consequence:
    """Amounts in the smallest unit, fee + refund == price. `step` None: before the first one, when
    nothing is kept. `until`: when the next step begins, None where none follows."""

    step: Step | None
    fee: int
    refund: int
    returns_quota: bool
    until: datetime | None


def consequence(
    steps: Sequence[Step], price: int, starts_at: datetime, now: datetime
) -> Consequence:
    """What cancelling at `now` means for a stay of this price that begins at `starts_at`. The fee
    is rounded down once, and the rest goes back. Negative prices are a fault of the caller."""
    if price < 0:
        raise ValueError("a price below zero")
    ordered = in_order(steps)
    begun = [step for step in ordered if begins(step, starts_at) <= now]
    ahead = ordered[len(begun) :]
    step = begun[-1] if begun else None
    fee = price * step.fee_percent // 100 if step else 0
    return Consequence(
        step=step,
        fee=fee,
        refund=price - fee,
        returns_quota=step.returns_quota if step else True,
        until=begins(ahead[0], starts_at) if ahead else None,
    )


def visit_returns(steps: Sequence[Step], starts_at: datetime, now: datetime) -> bool:
    """Whether the visit of a member's month comes back: by the terms; without any, before
    arrival."""
    if not steps:
        return now < starts_at
    return consequence(steps, 0, starts_at, now).returns_quota


def schedule(
    steps: Sequence[Step], price: int, starts_at: datetime
) -> Sequence[tuple[datetime | None, Consequence]]:
    """Every step with the instant at which it begins, in order; first the time before them all,
    which has no beginning."""
    begun = [begins(step, starts_at) for step in in_order(steps)]
    if not begun:
        return []
    before = consequence(steps, price, starts_at, begun[0] - timedelta.resolution)
    return [(None, before), *((at, consequence(steps, price, starts_at, at)) for at in begun)]


def steps_of(told: Iterable[Sequence[Any]] | None) -> list[Step]:
    """From [hours, percent, returns] each, as the database tells them; empty without terms."""
    return [Step(*one) for one in told or ()]


def in_order(steps: Sequence[Step]) -> Sequence[Step]:
    """As time passes them: the earliest first."""
    return sorted(steps, key=lambda step: -step.hours_before)


def begins(step: Step, starts_at: datetime) -> datetime:
    return starts_at - timedelta(hours=step.hours_before)


def sound(steps: Sequence[Step]) -> bool:
    """Whether steps can be agreed to: some, no two that begin at once, each within its bounds."""
    hours = [step.hours_before for step in steps]
    return (
        0 < len(steps) <= MOST_STEPS
        and len(set(hours)) == len(hours)
        and all(LATEST <= hour <= EARLIEST for hour in hours)
        and all(0 <= step.fee_percent <= 100 for step in steps)
    )
