"""Entrances: opened and changed."""

import json
from dataclasses import replace
from datetime import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import IntegrityError

from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.opening import ALL_DAY, Stretch, week
from portal.verbs import entrances
from portal.verbs.entrances import NewEntrance, Terms
from sandbox.watch import statements
from tests.cast import Cast, HouseOf
from tests.outside import Owner, at_once

DAILY = (Stretch(time(6), time(2)),) * 7
WEEK = (*(Stretch(time(10), time(23)),) * 5, ALL_DAY, None)


def terms(cast: Cast, **changes: Any) -> Terms:
    house: HouseOf = changes.pop("house", cast.tokyo)
    plain = Terms(
        "正面玄関",
        "Front",
        "walk_in",
        DAILY,
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
    assert stands(owner, said.subject) == ("walk_in", [time(6)] * 7, [time(2)] * 7, 3, 1, 2, 1)
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
    night = terms(cast, week=None, plans=frozenset(), capacity=None)
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


def test_a_week_is_kept_as_it_is_and_its_change_recorded(cast: Cast, owner: Owner) -> None:
    entrance = opened(cast)
    said = do(cast, entrances.change, entrance, 1, terms(cast, week=WEEK))
    assert said.code == Code.ENTRANCE_UPDATED
    assert stands(owner, entrance)[1:3] == (
        [time(10)] * 5 + [time(0), None],
        [time(23)] * 5 + [time(0), None],
    )
    with cast.transaction(cast.tokyo.id) as tx:
        row = tx.row("select opens, closes from entrances")
    assert row is not None
    assert week(row.opens, row.closes) == WEEK
    told = json.loads(
        owner.one("select reason from transitions where event = 'changed' and machine = 'entrance'")
    )
    assert told["opens"] == [["06:00:00"] * 7, ["10:00:00"] * 5 + ["00:00:00", None]]
    assert told["closes"] == [["02:00:00"] * 7, ["23:00:00"] * 5 + ["00:00:00", None]]
    again = do(cast, entrances.change, entrance, 2, terms(cast, week=WEEK))
    assert again == Noop(Code.ENTRANCE_UNCHANGED, subject=entrance)


NONE_AT_SIX = (Stretch(time(6), time(6)), *DAILY[1:])


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (NONE_AT_SIX, Code.ENTRANCE_HOURS_IMPOSSIBLE),
        (DAILY[1:], Code.ENTRANCE_HOURS_IMPOSSIBLE),
        ((None,) * 7, Code.ENTRANCE_NEVER_OPENS),
    ],
    ids=["empty", "six days", "never"],
)
def test_hours_that_are_none(cast: Cast, owner: Owner, wrong: Any, code: Code) -> None:
    wanted = NewEntrance(uuid4(), "front", terms(cast, week=wrong))
    assert do(cast, entrances.create, wanted) == Refused(code)
    entrance = opened(cast)
    assert do(cast, entrances.change, entrance, 1, terms(cast, week=wrong)) == Refused(code)
    assert stands(owner, entrance)[1] == [time(6)] * 7


SIX, TWO = "'06:00'::time", "'02:00'::time"


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        (f"array_fill({SIX}, array[7])", "null"),
        ("null", f"array_fill({TWO}, array[7])"),
        (f"array_fill({SIX}, array[6])", f"array_fill({TWO}, array[6])"),
        (f"array_fill({SIX}, array[8])", f"array_fill({TWO}, array[8])"),
        (f"array_fill({SIX}, array[7], array[0])", f"array_fill({TWO}, array[7], array[0])"),
        (f"array_fill({SIX}, array[7, 1])", f"array_fill({TWO}, array[7, 1])"),
        ("'{}'", "'{}'"),
        ("array_fill(null::time, array[7])", "array_fill(null::time, array[7])"),
        (
            f"array_fill({SIX}, array[6]) || null::time",
            f"null::time || array_fill({TWO}, array[6])",
        ),
        (f"array_fill({SIX}, array[7])", f"array_fill({TWO}, array[6]) || {SIX}"),
        (f"array_fill({SIX}, array[7])", f"{SIX} || array_fill({TWO}, array[6])"),
    ],
)
def test_the_schema_holds_no_week_that_is_none(
    cast: Cast, owner: Owner, opens: str, closes: str
) -> None:
    """As the app itself would write it."""
    opened(cast)
    with (
        pytest.raises(IntegrityError, match="ck_entrances_"),
        cast.transaction(cast.tokyo.id) as tx,
    ):
        tx.run(f"update entrances set opens = {opens}, closes = {closes}")
    with cast.transaction(cast.tokyo.id) as tx:
        tx.run(
            f"update entrances set opens = array_fill({SIX}, array[6]) || '00:00'::time,"
            f" closes = array_fill({TWO}, array[6]) || '00:00'::time"
        )


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
