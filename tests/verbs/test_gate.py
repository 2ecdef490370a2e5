"""The gate as the verbs ask it: entrances and the blocklist, with their audit rows."""

from datetime import time, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.outcome import Applied, Code, Outcome, Refused
from portal.policies.opening import ALL_DAY, Stretch
from portal.policies.register import Entry
from portal.queries import timeline
from portal.verbs import blocklist, bookings, entrances, events, registers, stay_changes, stays
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once
from tests.verbs.test_blocklist import added, ground
from tests.verbs.test_entrances import opened, terms

HOUR = timedelta(hours=1)


def do(cast: Cast, verb: Any, *args: Any, **more: Any) -> Outcome:
    with cast.transaction(more.pop("house", cast.tokyo).id) as tx:
        said: Outcome = verb(tx, cast.sato.actor, *args, **more)
    return said


def walk_in(cast: Cast, plan: str | None = "nap", space: str = "A01", **changes: Any) -> NewStay:
    now = clock.now()
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "guest": NewGuest(**cast.hanako),
        "space_id": cast.tokyo.spaces[space],
        "plan_id": cast.tokyo.plans[plan] if plan else None,
        "starts_at": now,
        "ends_at": now + 3 * HOUR,
        "price": 0,
        "source": "walk_in",
    }
    return NewStay(**{**values, **changes})


def entrance(cast: Cast, **changes: Any) -> UUID:
    """Every door of Tokyo, every plan, always open."""
    plain = {
        "doors": frozenset(cast.tokyo.doors.values()),
        "week": None,
        "capacity": None,
    }
    return opened(cast, **{**plain, **changes})


def audits(owner: Owner) -> Any:
    return owner.rows(
        "select code, rule, asks, stay_id, entrance_id, ground, statute, let_in, length(digest)"
        " from gate_audits order by id"
    )


def nothing_was_made(owner: Owner) -> bool:
    return owner.one("select count(*) from stays") == owner.one("select count(*) from guests") == 0


def test_a_house_without_entrances_is_as_it_was(cast: Cast, owner: Owner) -> None:
    assert do(cast, bookings.create, walk_in(cast)).code == Code.STAY_CREATED
    assert audits(owner) == []


def test_a_walk_in_at_an_entrance_for_reservations(cast: Cast, owner: Owner) -> None:
    """Neither made by a crafted request, nor let in where the entrance was another one then."""
    way = entrance(cast)
    made = do(cast, bookings.create, walk_in(cast))
    assert isinstance(made, Applied)
    assert made.subject is not None
    closed = terms(
        cast,
        mode="reservation_only",
        week=None,
        doors=frozenset(cast.tokyo.doors.values()),
        capacity=None,
    )
    assert do(cast, entrances.change, way, 1, closed).status == "applied"
    assert do(cast, stays.admit, made.subject, 1) == Refused(Code.WALK_IN_NOT_ALLOWED)
    said = do(cast, bookings.create, walk_in(cast, space="A02"))
    assert said == Refused(Code.WALK_IN_NOT_ALLOWED)
    assert [row[:5] for row in audits(owner)] == [
        ("WALK_IN_NOT_ALLOWED", "entrance_mode", "entry", made.subject, way),
        ("WALK_IN_NOT_ALLOWED", "entrance_mode", "booking", None, way),
    ]
    assert owner.one("select count(*) from stays") == 1
    reserved = walk_in(cast, space="A02", source="desk")
    assert do(cast, bookings.create, reserved).code == Code.STAY_CREATED


def test_a_members_only_plan_bought_by_a_crafted_walk_in(cast: Cast, owner: Owner) -> None:
    plan = cast.for_members()
    way = entrance(cast, plans=frozenset(cast.tokyo.plans.values()))
    assert do(cast, bookings.create, walk_in(cast, plan)) == Refused(Code.MEMBERS_ONLY_PLAN)
    assert [row[:5] for row in audits(owner)] == [
        ("MEMBERS_ONLY_PLAN", "membership", "booking", None, way)
    ]
    assert nothing_was_made(owner)


@pytest.mark.parametrize("source", ["walk_in", "desk", "web"])
def test_a_plan_of_another_entrance(cast: Cast, owner: Owner, source: str) -> None:
    doors = cast.tokyo.doors
    here = entrance(
        cast, doors=frozenset({doors["A01"]}), plans=frozenset({cast.tokyo.plans["night"]})
    )
    opened(cast, "side", doors=frozenset({doors["A02"]}), week=None)
    wanted = walk_in(cast, "nap", source=source)
    assert do(cast, bookings.create, wanted) == Refused(Code.PLAN_NOT_IN_CONFIG)
    assert nothing_was_made(owner)
    assert [row[:5] for row in audits(owner)] == [
        ("PLAN_NOT_IN_CONFIG", "plans_sold", "booking", None, here)
    ]
    elsewhere = walk_in(cast, "nap", "A02", source=source)
    assert do(cast, bookings.create, elsewhere).code == Code.STAY_CREATED


def test_a_plan_that_is_taken_away_holds_at_the_door(cast: Cast, owner: Owner) -> None:
    stay = cast.book(plan="nap", price=0)
    entrance(cast, plans=frozenset())
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.PLAN_NOT_IN_CONFIG)
    without = cast.book(space="A02", price=0)
    assert do(cast, stays.admit, without.id, 1).code == Code.STAY_ADMITTED


def test_a_closed_entrance_says_when_it_opens(cast: Cast, owner: Owner) -> None:
    """Closed today, all day: it opens on the next weekday that has hours."""
    stay = cast.book(plan="night", price=0)
    today = clock.local_day(clock.now(), cast.tokyo.zone)
    there = today + timedelta(days=2)
    entrance(
        cast,
        week=tuple(
            Stretch(time(10), time(2)) if day == there.weekday() else None for day in range(7)
        ),
    )
    at = {"opens_at": clock.instant_at(there, time(10), cast.tokyo.zone)}
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.ENTRANCE_CLOSED, at)
    said = do(cast, bookings.create, walk_in(cast, space="A02"))
    assert said == Refused(Code.ENTRANCE_CLOSED, at)
    later = walk_in(cast, space="A02", source="desk")
    assert do(cast, bookings.create, later).code == Code.STAY_CREATED, "a reservation is for later"


def test_opening_hours_put_nobody_out(cast: Cast, owner: Owner) -> None:
    """Who is in house when the entrance closes keeps the code, is made longer and leaves."""
    stay = cast.book(plan="night", price=0)
    way = entrance(cast)
    assert do(cast, stays.admit, stay.id, 1).status == "applied"
    today = clock.local_day(clock.now(), cast.tokyo.zone).weekday()
    week = tuple(None if day in (today, (today - 1) % 7) else ALL_DAY for day in range(7))
    shut = terms(cast, week=week, doors=frozenset(cast.tokyo.doors.values()), capacity=None)
    assert do(cast, entrances.change, way, 1, shut).status == "applied"
    assert owner.one("select state from entry_keys") == "requested"
    ends = owner.row("select starts_at, ends_at from stays")
    said = do(cast, stay_changes.change_times, stay.id, 2, ends[0], ends[1] + HOUR, 0)
    assert said.status == "applied"
    assert do(cast, stays.depart, stay.id, 3).status == "applied"
    assert audits(owner) == []


def test_e10_the_last_place_is_taken_once(cast: Cast, app: Flask, owner: Owner) -> None:
    """Of two who are settled and come in at once, one."""
    booked = [cast.book(space=space, price=0) for space in ("A01", "A02", "A03", "B01")]
    entrance(cast, capacity=2)
    said = at_once(app, *[lambda one=one: do(cast, stays.admit, one.id, 1) for one in booked])
    assert sorted(str(one.code) for one in said) == ["ENTRANCE_FULL"] * 2 + ["STAY_ADMITTED"] * 2
    assert owner.one("select count(*) from stays where state = 'admitted'") == 2
    assert [row[0] for row in audits(owner)] == ["ENTRANCE_FULL"] * 2


def test_e10_the_last_place_is_sold_once(cast: Cast, app: Flask, owner: Owner) -> None:
    entrance(cast, capacity=1)
    wanted = [walk_in(cast, space=space) for space in ("A01", "A02", "A03", "B01")]
    said = at_once(app, *[lambda one=one: do(cast, bookings.create, one) for one in wanted])
    assert sorted(str(one.code) for one in said) == ["ENTRANCE_FULL"] * 3 + ["STAY_CREATED"]
    mine = owner.one("select id from stays")
    assert do(cast, stays.admit, mine, 1).code == Code.STAY_ADMITTED, "who holds it comes in"
    assert do(cast, stays.depart, mine, 2).code == Code.STAY_DEPARTED
    assert do(cast, bookings.create, walk_in(cast, space="B01")).code == Code.STAY_CREATED


# Moves ------------------------------------------------------------------------------------------


def two_ways(cast: Cast, **there: Any) -> tuple[UUID, UUID]:
    """A01, A02 and A03 behind one entrance, B01 behind another."""
    doors = cast.tokyo.doors
    front = entrance(cast, doors=frozenset(doors[one] for one in ("A01", "A02", "A03")))
    plain: dict[str, Any] = {"week": None, "capacity": None}
    return front, opened(cast, "back", doors=frozenset({doors["B01"]}), **{**plain, **there})


def move(cast: Cast, stay: UUID, seen: int, space: str = "B01") -> Outcome:
    return do(cast, stay_changes.move_to, stay, seen, cast.tokyo.spaces[space])


def inside_now(cast: Cast, space: str = "A01", plan: str = "nap") -> UUID:
    stay = cast.book(plan=plan, price=0, space=space)
    assert do(cast, stays.admit, stay.id, 1).status == "applied"
    return stay.id


def where(owner: Owner, stay: UUID) -> Any:
    return owner.one(
        "select p.code from stays s join spaces p on p.id = s.space_id where s.id = %s", stay
    )


def test_a_guest_in_house_moves_where_the_plan_is_sold(cast: Cast, owner: Owner) -> None:
    _, back = two_ways(cast, plans=frozenset({cast.tokyo.plans["night"]}))
    nap, night = inside_now(cast), inside_now(cast, "A02", "night")
    assert move(cast, nap, 2) == Refused(Code.PLAN_NOT_IN_CONFIG)
    assert (where(owner, nap), owner.one("select version from stays where id = %s", nap)) == (
        "A01",
        2,
    )
    assert owner.one("select count(*) from lock_commands") == 2, "no code was touched"
    assert [row[:5] for row in audits(owner)] == [
        ("PLAN_NOT_IN_CONFIG", "plans_sold", "move", nap, back)
    ]
    assert move(cast, night, 2).code == Code.STAY_MOVED


def test_a_guest_in_house_moves_where_there_is_room(cast: Cast, owner: Owner) -> None:
    front, back = two_ways(cast, capacity=1)
    first, second = inside_now(cast), inside_now(cast, "A02")
    assert move(cast, first, 2).code == Code.STAY_MOVED
    doors = frozenset({cast.tokyo.doors["B01"], cast.tokyo.doors["A03"]})
    fronts = terms(
        cast,
        week=None,
        capacity=None,
        doors=frozenset({cast.tokyo.doors["A01"], cast.tokyo.doors["A02"]}),
    )
    assert do(cast, entrances.change, front, 1, fronts).status == "applied"
    wide = terms(cast, week=None, capacity=1, doors=doors)
    assert do(cast, entrances.change, back, 1, wide).status == "applied"
    assert move(cast, second, 2, "A03") == Refused(Code.ENTRANCE_FULL)
    assert audits(owner)[-1][:5] == ("ENTRANCE_FULL", "capacity", "move", second, back)
    assert where(owner, second) == "A02"
    assert move(cast, first, 3, "A03").code == Code.STAY_MOVED, "within it, nobody takes more room"


def test_within_one_entrance_nobody_takes_more_room(cast: Cast, owner: Owner) -> None:
    """Also where it holds more than it should by now."""
    front, _ = two_ways(cast)
    stay, _ = inside_now(cast), inside_now(cast, "A02")
    doors = frozenset(cast.tokyo.doors[one] for one in ("A01", "A02", "A03"))
    smaller = terms(cast, week=None, capacity=1, doors=doors)
    assert do(cast, entrances.change, front, 1, smaller).status == "applied"
    assert move(cast, stay, 2, "A03").code == Code.STAY_MOVED
    assert audits(owner) == []


def test_hours_and_plans_put_nobody_out_who_moves(cast: Cast, owner: Owner) -> None:
    """Into a space behind a closed entrance; and within one where the plan is no longer sold."""
    today = clock.local_day(clock.now(), cast.tokyo.zone).weekday()
    shut = tuple(None if day in (today, (today - 1) % 7) else ALL_DAY for day in range(7))
    front, _ = two_ways(cast, week=shut, mode="reservation_only")
    stay = inside_now(cast)
    doors = frozenset(cast.tokyo.doors[one] for one in ("A01", "A02", "A03"))
    sold_out = terms(cast, week=None, capacity=None, doors=doors, plans=frozenset())
    assert do(cast, entrances.change, front, 1, sold_out).status == "applied"
    assert move(cast, stay, 2, "A02").code == Code.STAY_MOVED
    assert move(cast, stay, 3, "B01").code == Code.STAY_MOVED
    assert move(cast, stay, 4, "A03") == Refused(Code.PLAN_NOT_IN_CONFIG), "it is another entrance"


def test_a_reservation_moves_where_it_could_be_booked(cast: Cast, owner: Owner) -> None:
    _, back = two_ways(cast, plans=frozenset({cast.tokyo.plans["night"]}), capacity=1)
    nap, night = cast.book(plan="nap"), cast.book(plan="night", space="A02")
    assert move(cast, nap.id, 1) == Refused(Code.PLAN_NOT_IN_CONFIG)
    assert audits(owner)[-1][:5] == ("PLAN_NOT_IN_CONFIG", "plans_sold", "move", nap.id, back)
    assert move(cast, night.id, 1).code == Code.STAY_MOVED
    assert owner.one("select version from stays where id = %s", nap.id) == 1


def test_a_walk_in_moves_where_walk_ins_are_let_in(cast: Cast, owner: Owner) -> None:
    _, back = two_ways(cast, mode="reservation_only")
    made = do(cast, bookings.create, walk_in(cast))
    assert isinstance(made, Applied)
    assert made.subject
    assert move(cast, made.subject, 1) == Refused(Code.WALK_IN_NOT_ALLOWED)
    assert audits(owner)[-1][:5] == (
        "WALK_IN_NOT_ALLOWED",
        "entrance_mode",
        "move",
        made.subject,
        back,
    )
    reserved = cast.book(space="A02")
    assert move(cast, reserved.id, 1).code == Code.STAY_MOVED


def test_a_walk_in_who_has_not_come_in_takes_a_place(cast: Cast, owner: Owner) -> None:
    two_ways(cast, capacity=1)
    inside = inside_now(cast, "B01")
    made = do(cast, bookings.create, walk_in(cast))
    assert isinstance(made, Applied)
    assert made.subject
    assert move(cast, made.subject, 1) == Refused(Code.ENTRANCE_FULL)
    assert do(cast, stays.depart, inside, 2).status == "applied"
    assert move(cast, made.subject, 1).code == Code.STAY_MOVED
    other = inside_now(cast, "A02")
    assert move(cast, other, 2) == Refused(Code.ENTRANCE_FULL)


def test_a_refused_move_is_no_refused_entry(cast: Cast, owner: Owner) -> None:
    """What the timeline says of the door."""
    two_ways(cast, plans=frozenset())
    stay = cast.book(plan="nap", price=0)
    assert move(cast, stay.id, 1) == Refused(Code.PLAN_NOT_IN_CONFIG)
    with cast.transaction(cast.tokyo.id) as tx:
        told = timeline.story(tx, stay.id)
        seen = timeline.load(tx, "stay", stay.id)
    assert told.refusals == []
    assert seen is not None
    assert ("gate", "PLAN_NOT_IN_CONFIG", "move") in [
        (row.kind, row.event, row.verb) for row in seen.moments
    ]


def test_e10_the_last_place_is_moved_into_once(cast: Cast, app: Flask, owner: Owner) -> None:
    """Of those in house who move at once, and one who comes in there, one gets it."""
    doors = cast.tokyo.doors
    entrance(cast, doors=frozenset({doors["A01"], doors["A02"]}))
    opened(cast, "back", week=None, capacity=1, doors=frozenset({doors["A03"], doors["B01"]}))
    first, second = inside_now(cast), inside_now(cast, "A02")
    calls = [
        lambda: move(cast, first, 2, "A03"),
        lambda: move(cast, second, 2, "B01"),
    ]
    said = at_once(app, *calls)
    assert sorted(str(getattr(one, "code", one)) for one in said) == ["ENTRANCE_FULL", "STAY_MOVED"]
    assert (
        owner.one(
            "select count(*) from stays s join spaces p on p.id = s.space_id"
            " where s.state = 'admitted' and p.code in ('A03', 'B01')"
        )
        == 1
    )


def test_two_who_change_places_wait_for_one_another(cast: Cast, app: Flask, owner: Owner) -> None:
    """Across two entrances that count: no deadlock, and each finds the other's space taken."""
    doors = cast.tokyo.doors
    entrance(cast, doors=frozenset({doors["A01"]}), capacity=5)
    opened(cast, "back", week=None, capacity=5, doors=frozenset({doors["B01"]}))
    one, two = cast.book(), cast.book(space="B01")
    said = at_once(app, *[lambda: move(cast, one.id, 1), lambda: move(cast, two.id, 1, "A01")] * 3)
    assert {getattr(answer, "code", repr(answer)) for answer in said} == {Code.SPACE_TAKEN}


# The blocklist ----------------------------------------------------------------------------------


def hanako(cast: Cast, plan: str = "nap") -> Booked:
    return cast.book(plan=plan, price=0)


def test_day_use_is_refused_on_the_houses_own_ground(cast: Cast, owner: Owner) -> None:
    stay = hanako(cast)
    entry = added(cast, name="花子 山田", ground="備品を壊した")
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.GUEST_BLOCKED)
    assert owner.one("select state from stays") == "reserved"
    said = do(cast, bookings.create, walk_in(cast, space="A02", source="desk"))
    assert said == Refused(Code.GUEST_BLOCKED)
    assert [row[:3] + row[5:] for row in audits(owner)] == [
        ("GUEST_BLOCKED", "blocklist", asks, "備品を壊した", None, False, 64)
        for asks in ("entry", "booking")
    ]
    assert do(cast, blocklist.lift, entry, 1, "和解").status == "applied"
    assert do(cast, stays.admit, stay.id, 1).code == Code.STAY_ADMITTED


@pytest.mark.parametrize("plan", ["night", None])
def test_lodging_is_refused_on_a_ground_of_the_law_alone(
    cast: Cast, owner: Owner, plan: str | None
) -> None:
    """A stay without a plan may be lodging, and counts as such."""
    stay = cast.book(plan=plan, price=0)
    added(cast, phone=cast.hanako["phone"], name="", ground="備品を壊した")
    said = do(cast, stays.admit, stay.id, 1)
    assert said.code == Code.STAY_ADMITTED_THOUGH_LISTED
    assert [row[:2] + row[5:8] for row in audits(owner)] == [
        ("GUEST_BLOCKED", "blocklist_without_ground", "備品を壊した", None, True)
    ]
    letter = owner.one("select id from dead_letters where source_kind = 'gate'")
    assert do(cast, events.dismiss, letter).status == "applied"
    other = cast.book(plan=plan, price=0, space="A02")
    lawful = ground(cast)
    added(cast, email=cast.hanako["email"], name="", refusal_ground_id=lawful, ground="賭博")
    assert do(cast, stays.admit, other.id, 1) == Refused(Code.GUEST_BLOCKED)
    assert audits(owner)[-1][5:8] == ("賭博", "賭博その他の違法行為", False)


def test_a_passport_of_the_register_is_known_at_the_door(cast: Cast, owner: Owner) -> None:
    """Written down before arrival, it refuses as one that was shown at the desk does."""
    lawful = ground(cast)
    added(cast, name="", document="AB 123-4567", refusal_ground_id=lawful)
    stay = cast.book(price=0, plan="night", guest=cast.emma)
    entry = Entry("Emma Smith", "1 High St", "emma@x.example", True, "UK", "ab1234567")
    assert isinstance(do(cast, registers.fill, stay.id, entry), Applied)
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.GUEST_BLOCKED)
    assert "1234567" not in str(owner.rows("select * from guests"))


def test_a_document_that_was_shown_is_known_again(cast: Cast, owner: Owner) -> None:
    added(cast, name="", document="TK 123-4567")
    shown = NewGuest(**cast.emma, document="tk1234567")
    said = do(cast, bookings.create, walk_in(cast, guest=shown))
    assert said == Refused(Code.GUEST_BLOCKED)
    fine = NewGuest(**cast.emma, document="TK1234568")
    assert do(cast, bookings.create, walk_in(cast, guest=fine)).status == "applied"
    assert "1234568" not in str(owner.rows("select * from guests where document_mark is not null"))


def test_another_houses_list_is_its_own(cast: Cast) -> None:
    added(cast, cast.osaka, name="山田 花子")
    assert do(cast, stays.admit, hanako(cast).id, 1).code == Code.STAY_ADMITTED


def test_an_entry_that_is_over_refuses_nobody(cast: Cast) -> None:
    now = clock.now()
    stay = hanako(cast)
    added(cast, expires_at=now + HOUR)
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.GUEST_BLOCKED)
    clock.set_source(lambda: now + HOUR)
    try:
        assert do(cast, stays.admit, stay.id, 1).code == Code.STAY_ADMITTED
    finally:
        clock.set_source(None)


def test_what_it_costs(cast: Cast, inside: Flask) -> None:
    entrance(cast, capacity=5)
    stay = hanako(cast)
    with statements() as said:
        assert do(cast, stays.admit, stay.id, 1).status == "applied"
    assert len(said) <= 8, said
    with statements() as said:
        assert do(cast, bookings.create, walk_in(cast, space="A02")).status == "applied"
    assert len(said) <= 13, said
