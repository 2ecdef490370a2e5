"""The gate over generated requests: total, deterministic, and monotone where it refuses."""

import re
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from portal.gates.checkin import CheckinRequest, Decision, Entrance, evaluate_checkin_request
from portal.outcome import Code
from portal.policies.blocklist import Listed, Mark
from portal.policies.opening import Stretch, closed_until
from tests.policies.test_opening import weeks
from tests.policies.test_policies import instants, requests

NOON = datetime(2026, 11, 3, 3, tzinfo=UTC)
"""12:00 in Tokyo."""
HOUR = timedelta(hours=1)
ZONES = ("Asia/Tokyo", "UTC", "America/New_York", "Pacific/Apia")

# Few values, so that people are met.
marks = some.builds(
    Mark, some.sampled_from(["name", "phone", "email", "document"]), some.sampled_from("ab")
)
entries = some.builds(
    Listed,
    some.uuids(),
    some.lists(marks, max_size=3).map(tuple),
    some.text(max_size=5),
    some.none() | some.just("第2号"),
    some.none() | instants,
)
entrances = some.builds(
    Entrance,
    week=some.none() | weeks,
    id=some.uuids(),
    mode=some.sampled_from(["reservation_only", "walk_in"]),
    zone=some.sampled_from(ZONES),
    capacity=some.none() | some.integers(1, 5),
    inside=some.integers(0, 6),
    plan_sold=some.booleans(),
)
whole = some.builds(
    replace,
    requests,
    asks=some.sampled_from(["booking", "entry", "move"]),
    in_house=some.booleans(),
    same_entrance=some.booleans(),
    walk_in=some.booleans(),
    entrance=some.none() | entrances,
    lodging=some.booleans(),
    person=some.lists(marks, max_size=4).map(tuple),
    listed=some.lists(entries, max_size=4).map(tuple),
    persons=some.integers(1, 4),
    joins=some.booleans(),
)


@settings(max_examples=500)
@given(whole)
def test_it_is_total_and_deterministic_and_names_its_ground(request: CheckinRequest) -> None:
    said = evaluate_checkin_request(request)
    assert said == evaluate_checkin_request(replace(request))
    assert said.allowed == (said.code is None) == (said.rule == "")
    assert (said.blocked is not None) == (said.code == Code.GUEST_BLOCKED)
    assert said.allowed or said.in_vain is None
    assert re.fullmatch(r"[0-9a-f]{64}", request.digest())


@settings(max_examples=1000)
@given(whole, entries, some.integers(0, 4))
def test_an_entry_more_never_lets_anybody_in(
    request: CheckinRequest, entry: Listed, place: int
) -> None:
    longer = (*request.listed[:place], entry, *request.listed[place:])
    before = evaluate_checkin_request(request)
    after = evaluate_checkin_request(replace(request, listed=longer))
    assert before.allowed or not after.allowed
    assert not before.in_vain or after.in_vain or not after.allowed, "and nobody is forgotten"


@settings(max_examples=300)
@given(whole)
def test_the_order_of_the_list_says_nothing(request: CheckinRequest) -> None:
    turned = replace(request, listed=tuple(reversed(request.listed)))
    assert evaluate_checkin_request(turned).code == evaluate_checkin_request(request).code


@settings(max_examples=500)
@given(whole)
def test_what_may_not_be_booked_may_not_come_in(request: CheckinRequest) -> None:
    """An entry asks all that a booking does."""
    booked = evaluate_checkin_request(replace(request, asks="booking"))
    entry = evaluate_checkin_request(replace(request, asks="entry"))
    assert booked.allowed or not entry.allowed


@settings(max_examples=500)
@given(whole)
def test_where_it_may_not_be_booked_it_is_not_moved(request: CheckinRequest) -> None:
    """A stay that is only reserved: by the entrance, as a booking there would be. And whoever is in
    house is never asked more than they were then."""
    nobody = replace(request, person=(), withheld=None, same_entrance=False)
    booked = evaluate_checkin_request(replace(nobody, asks="booking"))
    moved = evaluate_checkin_request(replace(nobody, asks="move", in_house=False))
    assert (moved.allowed, moved.code, moved.rule) == (booked.allowed, booked.code, booked.rule)
    inside = evaluate_checkin_request(replace(nobody, asks="move", in_house=True))
    entry = evaluate_checkin_request(replace(nobody, asks="entry"))
    assert inside.allowed or not entry.allowed


@settings(max_examples=500)
@given(whole)
def test_it_opens_exactly_when_nothing_stands_against_it(request: CheckinRequest) -> None:
    """Said once more, by hand."""
    met = [
        entry
        for entry in request.listed
        if set(entry.marks) & set(request.person)
        and (entry.expires_at is None or request.now < entry.expires_at)
    ]
    blocked = any(entry.statute or not request.lodging for entry in met)
    way = request.entrance
    shut = way is not None and closed_until(way.week, way.zone, request.now) is not None
    room = way.capacity - way.inside if way and way.capacity is not None else request.persons
    full = request.persons > room and not request.same_entrance
    unsold = way is not None and not way.plan_sold
    reserved_only = way is not None and request.walk_in and way.mode == "reservation_only"
    if request.joins:
        against = [full, request.register_missing]
        assert evaluate_checkin_request(request).allowed == (not any(against))
        return
    if request.asks == "move":
        if request.in_house:
            against = [unsold and not request.same_entrance, full]
        else:
            against = [unsold, reserved_only, request.walk_in and (shut or full)]
        assert evaluate_checkin_request(request).allowed == (not any(against))
        return
    against = [blocked, request.withheld is not None, unsold, reserved_only]
    if request.asks == "entry" or request.walk_in:
        against += [shut, full]
    if request.asks == "entry":
        opens = request.starts_at - timedelta(minutes=request.early_minutes)
        against += [
            not opens <= request.now < request.ends_at,
            not request.space_active,
            request.space_occupied,
            request.space_quarantined,
            request.register_missing,
            request.balance_due > 0,
        ]
    assert evaluate_checkin_request(request).allowed == (not any(against))


WAY = Entrance(UUID(int=7), "walk_in", None, "Asia/Tokyo", None, 0, True)
NIGHTS = {"week": (Stretch(time(13), time(2)),) * 7}
FINE = CheckinRequest(
    NOON, NOON, NOON + HOUR, 0, 0, "JPY", False, False, True, False, False, None, entrance=WAY
)
HANAKO = (Mark("name", "花子"),)
ENTRY = Listed(UUID(int=1), HANAKO, "暴れた", None, None)
LAWFUL = replace(ENTRY, id=UUID(int=2), statute="第2号")


MOVED: dict[str, Any] = {"asks": "move"}
IN_HOUSE: dict[str, Any] = {"asks": "move", "in_house": True}


def ask(way: dict[str, Any] | None = None, **facts: Any) -> Decision:
    return evaluate_checkin_request(replace(FINE, entrance=replace(WAY, **(way or {})), **facts))


@pytest.mark.parametrize(
    ("way", "facts", "code", "rule"),
    [
        ({}, {}, None, ""),
        ({"mode": "reservation_only"}, {}, None, ""),
        (
            {"mode": "reservation_only"},
            {"walk_in": True},
            Code.WALK_IN_NOT_ALLOWED,
            "entrance_mode",
        ),
        ({"plan_sold": False}, {}, Code.PLAN_NOT_IN_CONFIG, "plans_sold"),
        ({"plan_sold": False}, {"asks": "booking"}, Code.PLAN_NOT_IN_CONFIG, "plans_sold"),
        (NIGHTS, {}, Code.ENTRANCE_CLOSED, "opening_hours"),
        (NIGHTS, {"asks": "booking"}, None, ""),
        (
            NIGHTS,
            {"asks": "booking", "walk_in": True},
            Code.ENTRANCE_CLOSED,
            "opening_hours",
        ),
        ({"capacity": 3, "inside": 2}, {}, None, ""),
        ({"capacity": 3, "inside": 3}, {}, Code.ENTRANCE_FULL, "capacity"),
        ({"plan_sold": False}, IN_HOUSE, Code.PLAN_NOT_IN_CONFIG, "plans_sold"),
        ({"plan_sold": False}, {**IN_HOUSE, "same_entrance": True}, None, ""),
        (
            {"plan_sold": False, "mode": "reservation_only"},
            MOVED,
            Code.PLAN_NOT_IN_CONFIG,
            "plans_sold",
        ),
        (
            {"plan_sold": False},
            {**MOVED, "same_entrance": True},
            Code.PLAN_NOT_IN_CONFIG,
            "plans_sold",
        ),
        ({"capacity": 3, "inside": 3}, IN_HOUSE, Code.ENTRANCE_FULL, "capacity"),
        ({"capacity": 3, "inside": 3}, {**IN_HOUSE, "same_entrance": True}, None, ""),
        ({"capacity": 3, "inside": 3}, MOVED, None, ""),
        ({"capacity": 3, "inside": 3}, {**MOVED, "walk_in": True}, Code.ENTRANCE_FULL, "capacity"),
        (
            {"capacity": 3, "inside": 3},
            {**MOVED, "walk_in": True, "same_entrance": True},
            None,
            "",
        ),
        ({"mode": "reservation_only"}, {**IN_HOUSE, "walk_in": True}, None, ""),
        (
            {"mode": "reservation_only"},
            {**MOVED, "walk_in": True},
            Code.WALK_IN_NOT_ALLOWED,
            "entrance_mode",
        ),
        (NIGHTS, IN_HOUSE, None, ""),
        (NIGHTS, MOVED, None, ""),
        (NIGHTS, {**MOVED, "walk_in": True}, Code.ENTRANCE_CLOSED, "opening_hours"),
        ({}, {**IN_HOUSE, "person": HANAKO, "listed": (LAWFUL,)}, None, ""),
        ({"capacity": 3, "inside": 1}, {"persons": 2}, None, ""),
        ({"capacity": 3, "inside": 2}, {"persons": 2}, Code.ENTRANCE_FULL, "capacity"),
        ({"capacity": 3}, {"persons": 4}, Code.ENTRANCE_FULL, "capacity"),
        (
            {"capacity": 3, "inside": 2},
            {"persons": 2, "joins": True},
            Code.ENTRANCE_FULL,
            "capacity",
        ),
        ({}, {"register_missing": True, "joins": True}, Code.REGISTER_MISSING, "register"),
        ({}, {"balance_due": 1, "joins": True}, None, ""),
        (
            {},
            {"asks": "booking", "withheld": Code.MEMBERS_ONLY_PLAN},
            Code.MEMBERS_ONLY_PLAN,
            "membership",
        ),
        ({}, {"person": HANAKO, "listed": (LAWFUL,)}, Code.GUEST_BLOCKED, "blocklist"),
        ({}, {"person": HANAKO, "listed": (ENTRY, LAWFUL)}, Code.GUEST_BLOCKED, "blocklist"),
        ({}, {"person": HANAKO, "listed": (ENTRY,)}, None, ""),
        (
            {},
            {"person": HANAKO, "listed": (ENTRY,), "lodging": False},
            Code.GUEST_BLOCKED,
            "blocklist",
        ),
    ],
)
def test_the_rules_of_an_entrance(
    way: dict[str, Any], facts: dict[str, Any], code: Code | None, rule: str
) -> None:
    said = ask(way, **facts)
    assert (said.allowed, said.code, said.rule) == (code is None, code, rule)


def test_who_is_refused_lodging_without_a_ground_of_the_law_is_let_in_and_told_of() -> None:
    assert ask(person=HANAKO, listed=(ENTRY,)).in_vain == ENTRY
    assert ask(person=HANAKO, listed=(ENTRY, LAWFUL)).blocked == LAWFUL
    assert ask(person=HANAKO, listed=(ENTRY,), lodging=False).blocked == ENTRY


def test_a_refusal_by_the_list_tells_nothing_in_its_details() -> None:
    """What is told goes to whoever asks, and that may be the guest."""
    assert ask(person=HANAKO, listed=(LAWFUL,)).details == {}
