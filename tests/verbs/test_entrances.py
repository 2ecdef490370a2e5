"""Entrances: opened and changed."""

from dataclasses import replace
from datetime import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import entrances
from portal.verbs.entrances import NewEntrance, Terms
from sandbox.watch import statements
from tests.cast import Cast, HouseOf
from tests.outside import Owner, at_once


def terms(cast: Cast, **changes: Any) -> Terms:
    house: HouseOf = changes.pop("house", cast.tokyo)
    plain = Terms(
        "正面玄関",
        "Front",
        "walk_in",
        time(6),
        time(2),
        3,
        frozenset(house.plans.values()),
        frozenset({next(iter(house.doors.values()))}),
    )
    return replace(plain, **changes)


def do(cast: Cast, verb: Any, *args: Any, house: HouseOf | None = None) -> Outcome:
    with cast.transaction((house or cast.tokyo).id) as tx:
        said: Outcome = verb(tx, cast.suzuki.actor, *args)
    return said


def opened(cast: Cast, slug: str = "front", **changes: Any) -> UUID:
    house = changes.get("house", cast.tokyo)
    wanted = NewEntrance(uuid4(), slug, terms(cast, **changes))
    said = do(cast, entrances.create, wanted, house=house)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def stands(owner: Owner, entrance: UUID) -> Any:
    return owner.row(
        "select e.mode, e.opens, e.closes, e.capacity, e.version,"
        " (select count(*) from entrance_plans where entrance_id = e.id),"
        " (select count(*) from doors where entrance_id = e.id) from entrances e where id = %s",
        entrance,
    )


def test_one_form_is_one_entrance(cast: Cast, owner: Owner) -> None:
    wanted = NewEntrance(uuid4(), "front", terms(cast))
    said = do(cast, entrances.create, wanted)
    assert isinstance(said, Applied)
    assert said.subject is not None
    assert stands(owner, said.subject) == ("walk_in", time(6), time(2), 3, 1, 2, 1)
    again = do(cast, entrances.create, wanted)
    assert again == Noop(Code.ENTRANCE_ALREADY_CREATED, subject=said.subject)
    other = do(
        cast,
        entrances.create,
        replace(wanted, form_key=uuid4(), terms=terms(cast, doors=frozenset())),
    )
    assert other == Refused(Code.ENTRANCE_SLUG_TAKEN)
    assert owner.one("select length(public_name) from entrances") == 20


def test_a_change_is_recorded_with_what_it_was(cast: Cast, owner: Owner) -> None:
    entrance = opened(cast)
    night = terms(cast, opens=None, closes=None, plans=frozenset(), capacity=None)
    said = do(cast, entrances.change, entrance, 1, night)
    assert said == Applied(Code.ENTRANCE_UPDATED, to="open", subject=entrance)
    assert stands(owner, entrance) == ("walk_in", None, None, None, 2, 0, 1)
    told = owner.one(
        "select reason from transitions where event = 'changed' and machine='entrance'"
    )
    assert '"capacity": [3, null]' in told
    assert do(cast, entrances.change, entrance, 1, night).code == Code.ENTRANCE_UNCHANGED
    assert isinstance(do(cast, entrances.change, entrance, 1, terms(cast)), Conflict)
    assert do(cast, entrances.change, uuid4(), 1, night) == Refused(Code.NOT_FOUND)


def test_a_door_is_behind_one_entrance(cast: Cast, owner: Owner) -> None:
    first = opened(cast)
    said = do(cast, entrances.create, NewEntrance(uuid4(), "back", terms(cast)))
    assert said == Refused(Code.DOOR_HAS_ENTRANCE)
    second = opened(cast, "back", doors=frozenset())
    assert do(cast, entrances.change, second, 1, terms(cast)) == Refused(Code.DOOR_HAS_ENTRANCE)
    assert do(cast, entrances.change, first, 1, terms(cast, doors=frozenset())).code == (
        Code.ENTRANCE_UPDATED
    )
    assert do(cast, entrances.change, second, 1, terms(cast)).code == Code.ENTRANCE_UPDATED
    assert owner.one("select count(*) from doors where entrance_id = %s", second) == 1


def test_two_that_want_one_door_at_once(cast: Cast, app: Flask, owner: Owner) -> None:
    _ = cast.suzuki, cast.tokyo
    wanted = [NewEntrance(uuid4(), f"way-{n}", terms(cast)) for n in range(6)]
    said = at_once(app, *[lambda one=one: do(cast, entrances.create, one) for one in wanted])
    assert [one.status for one in said].count("applied") == 1
    assert {one.code for one in said} == {Code.ENTRANCE_CREATED, Code.DOOR_HAS_ENTRANCE}
    assert owner.one("select count(*) from entrances") == 1


@pytest.mark.parametrize(
    "hours", [(time(6), None), (None, time(6)), (time(6), time(6))], ids=["half", "other", "none"]
)
def test_hours_that_are_none(cast: Cast, hours: tuple[Any, Any]) -> None:
    wanted = NewEntrance(uuid4(), "front", terms(cast, opens=hours[0], closes=hours[1]))
    assert do(cast, entrances.create, wanted) == Refused(Code.ENTRANCE_HOURS_IMPOSSIBLE)


def test_what_is_another_houses_is_not_found(cast: Cast, owner: Owner) -> None:
    """A plan, a door and the entrance itself."""
    mine = opened(cast)
    for foreign in (
        {"plans": frozenset(cast.osaka.plans.values())},
        {"doors": frozenset(cast.osaka.doors.values())},
    ):
        assert do(cast, entrances.change, mine, 1, terms(cast, **foreign)) == Refused(
            Code.NOT_FOUND
        )
    theirs = terms(cast, house=cast.osaka)
    assert do(cast, entrances.change, mine, 1, theirs, house=cast.osaka) == Refused(Code.NOT_FOUND)
    assert owner.one("select version from entrances") == 1


def test_the_statements_do_not_grow_with_the_doors(cast: Cast, inside: Flask) -> None:
    _ = cast.suzuki, cast.tokyo
    with statements() as said:
        opened(cast, doors=frozenset(cast.tokyo.doors.values()))
    assert len(said) <= 11, said
