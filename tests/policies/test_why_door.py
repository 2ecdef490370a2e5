"""Why a door was open or shut: what is derived later from records equals what held at the time."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import get_args
from uuid import UUID

import pytest

from portal.gates.checkin import CheckinRequest, Entrance, evaluate_checkin_request
from portal.outcome import Code
from portal.policies import door_code
from portal.policies.door_at import Change, Step
from portal.policies.opening import ALL_DAY, Stretch
from portal.policies.why_door import Answer, KeyOf, Refusal, Story, why
from tests.figures import Figure

HISTORIES = 10_000
BEGAN = datetime(2026, 6, 1, 6, tzinfo=UTC)
DOORS = (UUID(int=1), UUID(int=2))
MINUTE = timedelta(minutes=1)
LAG = 5 * MINUTE
WAY = Entrance(
    UUID(int=9),
    "walk_in",
    (*(Stretch(time(15), time(2)),) * 5, None, ALL_DAY),
    "Asia/Tokyo",
    None,
    0,
    plan_sold=True,
)
"""Shut for some hours of each weekday and on Saturdays: who comes then is refused."""
NEVER = {"early", "no_key"}
"""Who is let in has a code that begins no later; both are told of all the same."""


@dataclass
class Key:
    """A code as the lock and we have it now; beside it what is written down."""

    door: UUID
    starts_at: datetime
    ends_at: datetime
    state: str
    steps: list[Step] = field(default_factory=list)

    def becomes(self, state: str, at: datetime) -> None:
        self.state = state
        self.steps.append(Step(at, state, "somebody"))

    def now(self, at: datetime) -> Answer:
        """As whoever stands at the door finds it."""
        if self.state == "failed":
            return "refused"
        if self.state == "missing":
            return "missing"
        if self.state == "revoked":
            return "removed"
        if not self.starts_at <= at < self.ends_at:
            return "early" if at < self.starts_at else "late"
        return {"requested": "unconfirmed", "issued": "open", "revoking": "removing"}[self.state]  # type: ignore[return-value]


class House:
    """One stay lived through, with nothing but its present; and the records that it leaves."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.at = BEGAN
        self.state = ""
        self.door = chance.choice(DOORS)
        self.starts_at = BEGAN + chance.randrange(0, 200) * MINUTE
        self.ends_at = self.starts_at + chance.randrange(30, 600) * MINUTE
        self.keys: list[Key] = []
        self.refused: str | None = None
        self.stay: list[Step] = []
        self.changes: list[Change] = []
        self.refusals: list[Refusal] = []

    # What happens, each as its verb does it ------------------------------------------------------

    def acts(self) -> list[str]:
        """What may happen now."""
        if not self.state:
            return ["book"]
        found = {
            "reserved": ["enter", "enter", "cancel", "no_show", "retime"],
            "admitted": ["depart", "retime", "move", "reissue"],
            "no_show": ["reinstate", "cancel"],
        }.get(self.state, [])
        for key in self.keys:
            found += {
                "requested": ["confirm", "confirm", "refuse"],
                "issued": ["vanish"],
                "missing": ["confirm"],
                "revoking": ["remove"],
            }.get(key.state, [])
        return found

    def act(self, name: str) -> None:
        getattr(self, name)()

    def stands(self, state: str) -> None:
        self.state = state
        self.stay.append(Step(self.at, state, "somebody"))

    def book(self) -> None:
        self.stands("reserved")

    def enter(self) -> None:
        said = evaluate_checkin_request(
            CheckinRequest(
                now=self.at,
                starts_at=self.starts_at,
                ends_at=self.ends_at,
                early_minutes=self.chance.choice((0, 30)),
                balance_due=self.chance.choice((0, 0, 500)),
                currency="JPY",
                payment_processing=False,
                payment_unknown=self.chance.random() < 0.1,
                space_active=True,
                space_quarantined=self.chance.random() < 0.1,
                space_occupied=False,
                withheld=None,
                entrance=WAY,
            )
        )
        if said.code is None:
            self.refused = None
            self.stands("admitted")
            self.order()
        else:
            self.refused = said.code
            self.refusals.append(Refusal(self.at, said.code, ""))

    def order(self) -> None:
        key = Key(self.door, min(self.at, self.starts_at), self.ends_at + LAG, "")
        key.becomes("requested", self.at)
        self.keys.append(key)

    def revoke(self) -> None:
        for key in self.keys:
            if key.state in ("requested", "issued", "missing"):
                key.becomes("revoking", self.at)

    def depart(self) -> None:
        self.stands("departed")
        self.revoke()

    def cancel(self) -> None:
        self.refused = None
        self.stands("cancelled")

    def no_show(self) -> None:
        self.refused = None
        self.stands("no_show")

    def reinstate(self) -> None:
        self.stands("reserved")

    def retime(self) -> None:
        later = self.ends_at + self.chance.choice((-60, -20, 30, 400)) * MINUTE
        if later <= max(self.starts_at, self.at):
            return
        self.changes.append(Change(self.at, self.ends_at, later))
        self.ends_at = later
        for key in self.keys:
            if key.state in ("requested", "issued", "missing"):
                key.ends_at = later + LAG

    def move(self) -> None:
        self.door = next(door for door in DOORS if door != self.door)
        self.revoke()
        self.order()

    def reissue(self) -> None:
        self.revoke()
        self.order()

    def _of(self, *states: str) -> Key:
        return self.chance.choice([key for key in self.keys if key.state in states])

    def confirm(self) -> None:
        self._of("requested", "missing").becomes("issued", self.at)

    def refuse(self) -> None:
        self._of("requested").becomes("failed", self.at)

    def vanish(self) -> None:
        self._of("issued").becomes("missing", self.at)

    def remove(self) -> None:
        self._of("revoking").becomes("revoked", self.at)

    # What holds now ------------------------------------------------------------------------------

    def answer(self, door: UUID, at: datetime) -> Answer:
        """Why the door opens or does not, by nothing but the present."""
        if not self.state:
            return "not_booked"
        here = [key.now(at) for key in self.keys if key.door == door]
        for certain in (("open",), ("unconfirmed", "removing")):
            if found := [one for one in reversed(here) if one in certain]:
                return found[0]
        if here:
            return here[-1]
        if self.state == "reserved":
            return "refused_entry" if self.refused else "not_checked_in"
        if self.state == "admitted" and self.keys:
            return "elsewhere"
        said: dict[str, Answer] = {
            "admitted": "no_key",
            "no_show": "no_show",
            "cancelled": "cancelled",
            "departed": "left",
        }
        return said[self.state]

    def guest_sees(self, at: datetime) -> door_code.Face:
        """The guest's own page, which knows the newest key."""
        key = self.keys[-1] if self.keys else None
        window = (key.starts_at, key.ends_at) if key else (None, None)
        return door_code.face(self.state, key.state if key else None, *window, at)

    def records(self) -> Story:
        keys = [KeyOf(k.door, k.starts_at, k.ends_at, tuple(k.steps)) for k in self.keys]
        return Story(tuple(self.stay), keys, tuple(self.changes), tuple(self.refusals))


@dataclass(frozen=True)
class Seen:
    """What held at a moment."""

    at: datetime
    door: UUID
    answer: Answer
    refused: str | None
    shown: bool


def live(seed: int) -> tuple[House, list[Seen]]:
    """A history, and what was seen of it as it was lived: before, between and at its acts."""
    house, seen = House(random.Random(seed)), []
    for _ in range(house.chance.randrange(2, 16)):
        for look in (house.at, house.at + house.chance.randrange(1, 600) * timedelta(seconds=1)):
            for door in DOORS:
                answer = house.answer(door, look)
                refused = house.refused if answer == "refused_entry" else None
                newest = bool(house.keys) and house.keys[-1].door == door
                shown = newest and house.state != "" and house.guest_sees(look) == "shown"
                seen.append(Seen(look, door, answer, refused, shown))
        house.at += house.chance.randrange(10, 120) * MINUTE
        if not (acts := house.acts()):
            break
        house.act(house.chance.choice(acts))
    return house, seen


@pytest.mark.proof
def test_the_records_say_what_held(figure: Figure) -> None:
    """Of 10,000 histories each answer, and the refusal in it, is what it was when it was lived; and
    whatever code the guest's page showed, opened."""
    met: Counter[str] = Counter()
    codes: set[str] = set()
    for seed in range(HISTORIES):
        house, seen = live(seed)
        records = house.records()
        for one in seen:
            found = why(one.at, one.door, records)
            assert found.answer == one.answer, (seed, one)
            assert (found.refusal.code if found.refusal else None) == one.refused, (seed, one)
            assert found.answer == "open" or not one.shown, (seed, one)
            met[one.answer] += 1
            codes |= {one.refused} if one.refused else set()
    assert set(met) == set(get_args(Answer)) - NEVER
    assert Code.ENTRANCE_CLOSED in codes
    figure("why a door was open or shut", histories=HISTORIES, moments=met.total())


def test_a_key_that_was_over_is_not_moved_by_a_later_change() -> None:
    """A stay that moved to another door and was then made longer: the first door's code had the end
    that held while it lived."""
    hour = timedelta(hours=1)
    ends = BEGAN + 10 * hour
    first = KeyOf(
        DOORS[0],
        BEGAN,
        ends,
        tuple(
            Step(BEGAN + at * hour, state, "x")
            for at, state in ((0, "requested"), (1, "issued"), (2, "revoking"))
        ),
    )
    longer = Change(BEGAN + 3 * hour, ends, ends + 24 * hour)
    story = Story((Step(BEGAN, "reserved", "x"), Step(BEGAN, "admitted", "x")), [first], (longer,))
    assert why(BEGAN + 1.5 * hour, DOORS[0], story).answer == "open"
    assert why(BEGAN + 2.5 * hour, DOORS[0], story).answer == "removing"
    assert why(ends, DOORS[0], story).answer == "late"
    assert why(ends, DOORS[0], replace(story, keys=[])).answer == "no_key"
