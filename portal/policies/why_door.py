"""Why a door was open or shut for a guest at a moment, from what is stored of their stay. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from portal.policies import door_at
from portal.policies.door_at import Change, Step, Verdict

Answer = Literal[
    "not_booked",
    "refused_entry",
    "not_checked_in",
    "no_show",
    "cancelled",
    "left",
    "elsewhere",
    "no_key",
    # What became of a key of this door, as `door_at` says it.
    "unconfirmed",
    "refused",
    "early",
    "open",
    "late",
    "missing",
    "removing",
    "removed",
]

_WITHOUT_A_KEY: dict[str, Answer] = {
    "reserved": "not_checked_in",
    "no_show": "no_show",
    "cancelled": "cancelled",
    "departed": "left",
    "admitted": "no_key",
}


@dataclass(frozen=True, slots=True)
class KeyOf:
    """A key of the stay: its door, its window as it is now, and what became of it, in order."""

    door_id: UUID
    starts_at: datetime
    ends_at: datetime
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The gate refused an entry."""

    at: datetime
    code: str
    ground: str


@dataclass(frozen=True, slots=True)
class Story:
    """All that is stored, each in order: the states of the stay, its keys, the changes of its end,
    the gate's refusals."""

    stay: Sequence[Step]
    keys: Sequence[KeyOf]
    changes: Sequence[Change] = ()
    refusals: Sequence[Refusal] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """`stay`: how the stay stood. `verdict`: of the key that decides. `refusal`: the last one
    before the guest was let in, or since the stay was reserved."""

    answer: Answer
    stay: Step | None = None
    verdict: Verdict | None = None
    refusal: Refusal | None = None


def why(moment: datetime, door_id: UUID, story: Story) -> Why:
    """One code that certainly opened makes the door open; one that may have, uncertain; else the
    newest code of this door says why not, and without one the stay does."""
    stood = _last(story.stay, moment)
    if stood is None:
        return Why("not_booked")
    keys = [key for key in story.keys if key.steps and key.steps[0].at <= moment]
    here = [_verdict(moment, key, story) for key in keys if key.door_id == door_id]
    if here:
        decides = next(
            (
                one
                for certain in (door_at.OPEN, door_at.UNSURE)
                for one in reversed(here)
                if one.answer in certain
            ),
            here[-1],
        )
        return Why(_of_a_key(decides.answer), stood, decides)
    refusal = _refusal(moment, stood, story)
    if refusal:
        return Why("refused_entry", stood, refusal=refusal)
    if stood.state == "admitted" and keys:
        return Why("elsewhere", stood)
    return Why(_WITHOUT_A_KEY[stood.state], stood)


def _last(steps: Sequence[Step], moment: datetime) -> Step | None:
    return next((step for step in reversed(steps) if step.at <= moment), None)


def _verdict(moment: datetime, key: KeyOf, story: Story) -> Verdict:
    retimed = door_at.retimings(key.steps, key.ends_at, story.changes)
    return door_at.door_at(moment, key.steps, key.starts_at, key.ends_at, retimed)


def _of_a_key(answer: door_at.Answer) -> Answer:
    if answer == "absent":
        raise ValueError("a key that did not exist yet decides nothing")
    return answer


def _refusal(moment: datetime, stood: Step, story: Story) -> Refusal | None:
    """The last since the stay came to be reserved; none once it was something else."""
    if stood.state != "reserved":
        return None
    asked = [one for one in story.refusals if stood.at <= one.at <= moment]
    return asked[-1] if asked else None
