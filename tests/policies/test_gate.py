"""The gate over generated requests: total, deterministic, and monotone where it refuses."""

import re
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from portal.gates.checkin import CheckinRequest, Decision, Entrance, evaluate_checkin_request
from portal.outcome import Code
from portal.policies.blocklist import Listed, Mark
from portal.policies.opening import closed_until
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
hours = some.tuples(some.times(), some.times()).filter(lambda pair: pair[0] != pair[1])
entrances = some.builds(
    lambda hours, **facts: Entrance(opens=hours[0], closes=hours[1], **facts),
    some.just((None, None)) | hours,
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
    asks=some.sampled_from(["booking", "entry"]),
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
    here = request.now.astimezone(ZoneInfo(way.zone)).time() if way else time(0)
    shut = False
    if way and way.opens and way.closes:
        within = way.opens <= here < way.closes
        shut = not (within if way.opens < way.closes else here >= way.opens or here < way.closes)
    room = way.capacity - way.inside if way and way.capacity is not None else request.persons
    full = request.persons > room
    against = [
        blocked,
        request.withheld is not None,
        way is not None and (not way.plan_sold),
        way is not None and request.walk_in and way.mode == "reservation_only",
    ]
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
    if request.joins:
        against = [full, request.register_missing]
    assert evaluate_checkin_request(request).allowed == (not any(against))


@given(some.times() | some.none(), some.times() | some.none(), some.sampled_from(ZONES), instants)
def test_it_opens_again_at_its_hour(
    opens: time | None, closes: time | None, zone: str, now: datetime
) -> None:
    until = closed_until(opens, closes, zone, now)
    if until is None:
        return
    assert now < until <= now + timedelta(hours=26)
    assert opens is not None


@pytest.mark.parametrize(
    ("local", "opens_at"),
    [
        ("01:59", None),
        ("02:00", "2026-11-03T06:00+09:00"),
        ("05:59", "2026-11-03T06:00+09:00"),
        ("06:00", None),
        ("23:59", None),
    ],
)
def test_hours_past_midnight(local: str, opens_at: str | None) -> None:
    now = datetime.fromisoformat(f"2026-11-03T{local}+09:00")
    until = closed_until(time(6), time(2), "Asia/Tokyo", now)
    assert until == (datetime.fromisoformat(opens_at) if opens_at else None)


def test_hours_of_a_day_open_again_tomorrow() -> None:
    now = datetime.fromisoformat("2026-11-03T22:00+09:00")
    until = closed_until(time(9), time(22), "Asia/Tokyo", now)
    assert until == datetime.fromisoformat("2026-11-04T09:00+09:00")


WAY = Entrance(UUID(int=7), "walk_in", None, None, "Asia/Tokyo", None, 0, True)
FINE = CheckinRequest(
    NOON, NOON, NOON + HOUR, 0, 0, "JPY", False, False, True, False, False, None, entrance=WAY
)
HANAKO = (Mark("name", "花子"),)
ENTRY = Listed(UUID(int=1), HANAKO, "暴れた", None, None)
LAWFUL = replace(ENTRY, id=UUID(int=2), statute="第2号")


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
        ({"opens": time(13), "closes": time(2)}, {}, Code.ENTRANCE_CLOSED, "opening_hours"),
        ({"opens": time(13), "closes": time(2)}, {"asks": "booking"}, None, ""),
        (
            {"opens": time(13), "closes": time(2)},
            {"asks": "booking", "walk_in": True},
            Code.ENTRANCE_CLOSED,
            "opening_hours",
        ),
        ({"capacity": 3, "inside": 2}, {}, None, ""),
        ({"capacity": 3, "inside": 3}, {}, Code.ENTRANCE_FULL, "capacity"),
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
