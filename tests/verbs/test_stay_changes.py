"""Changes within a stay: another space, other times, another price."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import stay_changes, stays
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, recorded
from tests.verbs.test_stays import HOUR, admitted, balance, create, do, paid_in_cash, stands, wanted


def move(cast: Cast, stay: Booked, seen: int, space: str | UUID) -> Outcome:
    where = cast.tokyo.spaces[space] if isinstance(space, str) else space
    return do(cast, stay_changes.move_to, stay.id, seen, where)


def change(
    cast: Cast,
    owner: Owner,
    stay: Booked,
    seen: int,
    *,
    start: Any = None,
    by: Any = HOUR,
    price: int = 0,
) -> Outcome:
    starts, ends = owner.row("select starts_at, ends_at from stays where id = %s", stay.id)
    return do(
        cast,
        stay_changes.change_times,
        stay.id,
        seen,
        starts + (start or timedelta(0)),
        ends + by,
        price,
    )


def keys(owner: Owner) -> list[tuple[str, str]]:
    return owner.rows(
        "select p.code, k.state from entry_keys k join spaces p on p.id = k.space_id"
        " order by k.created_at, k.id"
    )


def test_a_reserved_stay_moves_and_keeps_its_state(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    assert move(cast, stay, 1, "A02") == Applied(Code.STAY_MOVED, to="reserved", subject=stay.id)
    assert stands(owner, stay.id) == ("reserved", 2)
    assert recorded(owner, stay.id)[-1] == ("changed", "reserved", "reserved")
    assert owner.one("select reason from transitions order by id desc limit 1") == "A01 → A02"
    assert keys(owner) == []
    assert isinstance(create(cast, wanted(cast)), Applied)


def test_a_guest_in_house_gets_a_code_for_the_new_door(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    assert isinstance(move(cast, stay, 2, "A02"), Applied)
    assert sorted(keys(owner)) == [("A01", "revoking"), ("A02", "requested")]
    assert owner.rows("select kind from lock_commands order by no") == [
        ("set",),
        ("remove",),
        ("set",),
    ]
    assert owner.row(
        "select count(distinct pin_mark), count(distinct door_id) from entry_keys"
    ) == (2, 2)


def test_the_left_space_rests_until_its_code_is_gone(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    move(cast, stay, 2, "A02")
    following = cast.book(price=0)
    assert do(cast, stays.admit, following.id, 1) == Refused(Code.SPACE_QUARANTINED)
    other = admitted(cast, space="A03")
    assert move(cast, other, 2, "A01") == Refused(Code.SPACE_QUARANTINED)
    assert stands(owner, other.id)[0] == "admitted"


def test_nobody_in_house_moves_into_a_space_at_rest(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    do(cast, stays.depart, stay.id, 2)
    other = admitted(cast, space="A02")
    assert move(cast, other, 2, "A01") == Refused(Code.SPACE_QUARANTINED)
    assert stands(owner, other.id) == ("admitted", 2)
    assert sorted(keys(owner)) == [("A01", "revoking"), ("A02", "requested")]


def test_moves_that_are_refused(cast: Cast, owner: Owner) -> None:
    stay, there = cast.book(), cast.book(space="A02")
    owner.run("update spaces set active = false where code = 'A03'")
    assert move(cast, stay, 1, "A01") == Noop(Code.STAY_ALREADY_THERE, subject=stay.id)
    assert move(cast, stay, 1, "A02") == Refused(Code.SPACE_TAKEN)
    assert move(cast, stay, 1, "A03") == Refused(Code.SPACE_NOT_USABLE)
    assert move(cast, stay, 1, cast.osaka.spaces["S01"]) == Refused(Code.NOT_FOUND)
    assert move(cast, stay, 1, uuid4()) == Refused(Code.NOT_FOUND)
    stale = move(cast, stay, 2, "B01")
    assert isinstance(stale, Conflict)
    assert stale.code == Code.STALE_PAGE
    assert stands(owner, stay.id) == stands(owner, there.id) == ("reserved", 1)
    do(cast, stays.cancel, stay.id, 1)
    assert move(cast, stay, 2, "B01") == Refused(Code.STAY_OVER)


def test_two_stays_move_into_one_space_at_once(cast: Cast, app: Flask, owner: Owner) -> None:
    one, two = cast.book(), cast.book(space="A02")
    said = at_once(app, lambda: move(cast, one, 1, "A03"), lambda: move(cast, two, 1, "A03"))
    codes = sorted(getattr(answer, "code", repr(answer)) for answer in said)
    assert codes == [Code.SPACE_TAKEN, Code.STAY_MOVED]


def test_a_longer_stay_costs_more_and_tells_the_guest_once(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    said = change(cast, owner, stay, 1, by=24 * HOUR, price=6000)
    assert said == Applied(Code.STAY_TIMES_CHANGED, to="reserved", subject=stay.id)
    assert balance(owner, stay.id) == 12_000
    assert owner.one("select count(*) from outbox where event_type = 'stay_changed'") == 1


def test_a_shorter_stay_costs_less(cast: Cast, owner: Owner) -> None:
    stay = paid_in_cash(cast, cast.book())
    assert isinstance(change(cast, owner, stay, 1, by=-HOUR, price=-1000), Applied)
    assert balance(owner, stay.id) == -1000


def test_a_guest_in_house_keeps_the_key(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    pin = owner.one("select pin_mark from entry_keys")
    assert isinstance(change(cast, owner, stay, 2, by=2 * HOUR), Applied)
    assert keys(owner) == [("A01", "requested")]
    assert owner.one("select pin_mark from entry_keys") == pin
    assert owner.row("select s.ends_at = k.ends_at from stays s, entry_keys k") == (True,)
    assert owner.rows("select kind from lock_commands order by no") == [("set",), ("update",)]


def test_a_price_alone_touches_no_key(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    assert isinstance(change(cast, owner, stay, 2, by=timedelta(0), price=500), Applied)
    assert owner.rows("select kind from lock_commands") == [("set",)]
    assert balance(owner, stay.id) == 500


@pytest.mark.parametrize(
    ("start", "by", "price", "code"),
    [
        (timedelta(0), -19 * HOUR, 0, Code.STAY_TIMES_IMPOSSIBLE),
        (20 * HOUR, timedelta(0), 0, Code.STAY_TIMES_IMPOSSIBLE),
        (timedelta(0), timedelta(days=366), 0, Code.STAY_TIMES_IMPOSSIBLE),
        (timedelta(0), HOUR, -6001, Code.PRICE_BELOW_ZERO),
        (timedelta(0), HOUR, 10**9, Code.PRICE_BELOW_ZERO),
    ],
)
def test_impossible_changes(
    cast: Cast, owner: Owner, start: timedelta, by: timedelta, price: int, code: Code
) -> None:
    stay = cast.book()
    assert change(cast, owner, stay, 1, start=start, by=by, price=price) == Refused(code)
    assert stands(owner, stay.id) == ("reserved", 1)
    assert balance(owner, stay.id) == 6000


def test_a_guest_in_house_began_when_they_began(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    refused = Refused(Code.STAY_TIMES_IMPOSSIBLE)
    assert change(cast, owner, stay, 2, start=-HOUR) == refused
    later = clock.now() + 2 * HOUR
    clock.set_source(lambda: later)
    assert change(cast, owner, stay, 2, by=-18 * HOUR) == refused


def test_the_next_guest_is_in_the_way(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    ends = owner.one("select ends_at from stays")
    cast.book(starts_at=ends)
    assert change(cast, owner, stay, 1, by=timedelta(minutes=1), price=100) == Refused(
        Code.SPACE_TAKEN
    )
    assert (stands(owner, stay.id), balance(owner, stay.id)) == (("reserved", 1), 6000)
    assert isinstance(change(cast, owner, stay, 1, by=-HOUR), Applied)


def test_extending_and_booking_at_once_has_one_winner(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = cast.book()
    ends = owner.one("select ends_at from stays")
    starts = owner.one("select starts_at from stays")
    form = wanted(cast, starts_at=ends)
    said = at_once(
        app,
        lambda: do(cast, stay_changes.change_times, stay.id, 1, starts, ends + HOUR, 0),
        lambda: create(cast, form),
    )
    codes = [getattr(answer, "code", repr(answer)) for answer in said]
    assert codes in (
        [Code.STAY_TIMES_CHANGED, Code.SPACE_TAKEN],
        [Code.SPACE_TAKEN, Code.STAY_CREATED],
    )


def test_changes_of_nothing_of_stale_pages_and_of_others(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    assert change(cast, owner, stay, 1, by=timedelta(0)) == Noop(
        Code.STAY_TIMES_UNCHANGED, subject=stay.id
    )
    stale = change(cast, owner, stay, 9)
    assert isinstance(stale, Conflict)
    assert stale.code == Code.STALE_PAGE
    theirs = cast.book(cast.osaka)
    assert change(cast, owner, theirs, 1) == Refused(Code.NOT_FOUND)
    assert move(cast, theirs, 1, "A02") == Refused(Code.NOT_FOUND)
    do(cast, stays.cancel, stay.id, 1)
    assert change(cast, owner, stay, 2) == Refused(Code.STAY_OVER)
    assert stands(owner, theirs.id) == ("reserved", 1)


def test_a_guest_may_move_back_to_where_the_own_code_still_is(cast: Cast, owner: Owner) -> None:
    """A space rests for others until its code is gone, not for whose code it is."""
    stay = admitted(cast)
    assert isinstance(move(cast, stay, 2, "A02"), Applied)
    assert isinstance(move(cast, stay, 3, "A01"), Applied)
    assert sorted(keys(owner)) == [("A01", "requested"), ("A01", "revoking"), ("A02", "revoking")]


def test_one_yen_more_or_less_is_booked(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    for seen, price in ((1, 1), (2, -1)):
        assert isinstance(change(cast, owner, stay, seen, price=price), Applied)
    assert owner.rows("select kind, amount from ledger_lines order by id") == [
        ("charge", 6000),
        ("charge", 1),
        ("charge_reversed", -1),
    ]


def test_a_change_is_of_one_stay(cast: Cast, owner: Owner) -> None:
    stay, other = cast.book(), cast.book(space="A02")
    before = owner.row("select s.* from stays s where id = %s", other.id)
    assert isinstance(change(cast, owner, stay, 1, price=100), Applied)
    assert isinstance(move(cast, stay, 2, "A03"), Applied)
    assert owner.row("select s.* from stays s where id = %s", other.id) == before
    assert stands(owner, stay.id) == ("reserved", 3)
