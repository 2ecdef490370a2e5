"""Whether a code opened its door at a moment, from the key's own records. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Answer = Literal[
    "absent",
    "unconfirmed",
    "refused",
    "early",
    "open",
    "late",
    "missing",
    "removing",
    "removed",
]

OPEN: tuple[Answer, ...] = ("open",)
UNSURE: tuple[Answer, ...] = ("unconfirmed", "removing")
"""The lock's word was outstanding: it may have had the code, and nobody can say."""

_SHUT_BY_STATE: dict[str, Answer] = {
    "failed": "refused",
    "missing": "missing",
    "revoked": "removed",
}


_OVER = ("revoking", "revoked", "failed")
"""From then on a change of the stay concerns the key no more."""


@dataclass(frozen=True, slots=True)
class Step:
    """The key came into `state` at `at`."""

    at: datetime
    state: str
    by: str


@dataclass(frozen=True, slots=True)
class Retimed:
    """At `at` the end moved from `before` to `after`; both on the lock, its lag included."""

    at: datetime
    before: datetime
    after: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """At `at` the stay's own end moved from `before` to `after`."""

    at: datetime
    before: datetime
    after: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """`step` is the last change before the moment; `ends_at` the end that held then."""

    answer: Answer
    step: Step | None
    starts_at: datetime
    ends_at: datetime


def door_at(
    moment: datetime,
    steps: Sequence[Step],
    starts_at: datetime,
    ends_at: datetime,
    retimed: Sequence[Retimed] = (),
) -> Verdict:
    """`steps` and `retimed` in order. `ends_at` is the key's end as it is now."""
    last = next((step for step in reversed(steps) if step.at <= moment), None)
    end = _end_then(moment, ends_at, retimed)
    return Verdict(_answer(moment, last, starts_at, end), last, starts_at, end)


def retimings(
    steps: Sequence[Step], ends_at: datetime, changes: Sequence[Change]
) -> tuple[Retimed, ...]:
    """What the stay's changes did to a key: those of its life alone, each with what the lock adds
    to the stay's end. `ends_at` is the key's end as it is now."""
    if not steps:
        return ()
    over = next((step.at for step in steps if step.state in _OVER), None)
    lived = [
        change
        for change in changes
        if steps[0].at <= change.at and (over is None or change.at < over)
    ]
    if not lived:
        return ()
    lag = ends_at - lived[-1].after
    return tuple(Retimed(one.at, one.before + lag, one.after + lag) for one in lived)


def _end_then(moment: datetime, ends_at: datetime, retimed: Sequence[Retimed]) -> datetime:
    """What the first change after the moment moved away from, else the present end."""
    later = next((change for change in retimed if change.at > moment), None)
    return later.before if later else ends_at


def _answer(moment: datetime, last: Step | None, starts_at: datetime, end: datetime) -> Answer:
    if last is None:
        return "absent"
    if last.state in _SHUT_BY_STATE:
        return _SHUT_BY_STATE[last.state]
    # A lock keeps the window by itself, whatever it has or has not told us.
    if moment < starts_at:
        return "early"
    if moment >= end:
        return "late"
    if last.state == "issued":
        return "open"
    return "removing" if last.state == "revoking" else "unconfirmed"
