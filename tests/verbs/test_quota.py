"""The visits of a membership's month: taken, returned, moved, and never one too many."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.outcome import Applied, Code, Outcome, Refused
from portal.policies.membership_quota import month_of_use
from portal.queries import quota as shown
from portal.verbs import bookings, membership_moves, quota, stay_changes, stays
from portal.verbs.bookings import NewStay
from portal.verbs.desk import Desk
from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import GUEST, Cast, HouseOf, Joined
from tests.outside import Owner, at_once

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)
NOVEMBER, DECEMBER = date(2026, 11, 1), date(2026, 12, 1)
SPACES = tuple(f"Q{n:02}" for n in range(12))


@pytest.fixture(autouse=True)
def now(inside: Flask) -> Iterator[None]:
    clock.set_source(lambda: NOW)
    yield
    clock.set_source(None)


@pytest.fixture
def house(cast: Cast) -> HouseOf:
    """Tokyo, with a space for everybody who comes at once."""
    cast.__dict__["tokyo"] = cast.open_house(
        "haneda-capsule", "羽田カプセルホテル", "Haneda Capsule Hotel", spaces=SPACES
    )
    cast.for_members()
    return cast.tokyo


@pytest.fixture
def member(cast: Cast, house: HouseOf) -> Joined:
    """Two visits a month."""
    return cast.join(cast.offer("twice", "月二回", "Twice a month", quota=2))


def form(cast: Cast, member: Joined, starts_at: datetime, space: int = 0, **more: Any) -> NewStay:
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "guest": None,
        "membership_id": member.id,
        "space_id": cast.tokyo.spaces[SPACES[space]],
        "plan_id": cast.tokyo.plans["members-0"],
        "starts_at": starts_at,
        "ends_at": starts_at + 2 * HOUR,
        "price": 0,
    }
    return NewStay(**{**values, **more})


def create(cast: Cast, wanted: NewStay) -> Outcome:
    with cast.transaction(cast.tokyo.id) as tx:
        return bookings.create(tx, cast.sato.actor, wanted)


def booked(cast: Cast, member: Joined, starts_at: datetime, space: int = 0, **more: Any) -> UUID:
    said = create(cast, form(cast, member, starts_at, space, **more))
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def do(cast: Cast, verb: Any, *args: Any, **more: Any) -> Outcome:
    with cast.transaction(cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.sato.actor, *args, **more)
        return said


def move(cast: Cast, stay: UUID, seen: int, starts_at: datetime) -> Outcome:
    return do(cast, stay_changes.change_times, stay, seen, starts_at, starts_at + 2 * HOUR, 0)


def used(owner: Owner) -> dict[date, tuple[int, int]]:
    """Month → granted and used; and every figure is the sum of its lines."""
    apart = owner.rows(
        "select q.id from quota_months q left join quota_lines l on l.month_id = q.id"
        " group by q.id, q.granted, q.used having"
        " coalesce(sum(l.amount) filter (where l.kind = 'granted'), 0) <> q.granted"
        " or -coalesce(sum(l.amount) filter (where l.kind <> 'granted'), 0) <> q.used"
    )
    assert apart == []
    return {
        month: (granted, count)
        for month, granted, count in owner.rows("select month, granted, used from quota_months")
    }


def lines(owner: Owner) -> list[tuple[str, int]]:
    return owner.rows("select kind, amount from quota_lines order by id")


# Taking -----------------------------------------------------------------------------------------


def test_a_visit_is_taken_with_the_booking_and_accounted_for(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    stay = booked(cast, member, NOW + DAY)
    assert used(owner) == {NOVEMBER: (2, 1)}
    assert owner.rows("select kind, amount, stay_id, actor_name, at from quota_lines") == [
        ("granted", 2, None, cast.sato.name, NOW),
        ("taken", -1, stay, cast.sato.name, NOW),
    ]


def test_without_a_quota_nothing_is_counted(cast: Cast, house: HouseOf, owner: Owner) -> None:
    member = cast.join()
    for space in range(5):
        booked(cast, member, NOW + DAY, space)
    assert used(owner) == {}


def test_what_costs_money_beside_the_membership_takes_none(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    booked(cast, member, NOW + DAY, price=500)
    assert used(owner) == {}


def test_the_third_of_two_is_refused_and_nothing_of_it_stays(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    booked(cast, member, NOW + DAY)
    booked(cast, member, NOW + 2 * DAY)
    said = create(cast, form(cast, member, NOW + 3 * DAY))
    assert said == Refused(Code.QUOTA_EXHAUSTED, {"day": date(2026, 11, 13), "count": 2})
    assert owner.one("select count(*) from stays") == 2
    assert used(owner) == {NOVEMBER: (2, 2)}
    assert isinstance(create(cast, form(cast, member, NOW + 25 * DAY)), Applied)


def test_h1_one_form_takes_one(cast: Cast, app: Flask, member: Joined, owner: Owner) -> None:
    wanted = form(cast, member, NOW + DAY)
    _ = cast.sato
    said = at_once(app, *[lambda: create(cast, wanted)] * 6)
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.STAY_CREATED: 1, Code.STAY_ALREADY_CREATED: 5}
    assert used(owner) == {NOVEMBER: (2, 1)}


def test_e10_ten_at_once_for_the_last_visit_are_one(
    cast: Cast, app: Flask, member: Joined, owner: Owner
) -> None:
    booked(cast, member, NOW + DAY, 11)
    wanted = [form(cast, member, NOW + DAY, space) for space in range(10)]
    _ = cast.sato
    said = at_once(app, *[partial(create, cast, one) for one in wanted])
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.STAY_CREATED: 1, Code.QUOTA_EXHAUSTED: 9}
    assert used(owner) == {NOVEMBER: (2, 2)}
    assert owner.one("select count(*) from stays") == 2


def test_e10_the_first_ten_at_once_open_one_month(
    cast: Cast, app: Flask, member: Joined, owner: Owner
) -> None:
    wanted = [form(cast, member, NOW + DAY, space) for space in range(10)]
    _ = cast.sato
    said = at_once(app, *[partial(create, cast, one) for one in wanted])
    codes = Counter(getattr(one, "code", repr(one)) for one in said)
    assert codes == {Code.STAY_CREATED: 2, Code.QUOTA_EXHAUSTED: 8}
    assert Counter(lines(owner)) == {("granted", 2): 1, ("taken", -1): 2}


def test_e2_the_day_of_use_decides_and_never_the_day_of_booking(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    """Two booked at 23:59 on October 31, two at 00:01 on November 1, all for November."""
    said = []
    for minutes, days in ((-1, 5), (-1, 6), (1, 7), (1, 8)):
        at = datetime(2026, 10, 31, 15, tzinfo=UTC) + timedelta(minutes=minutes)
        clock.set_source(partial(datetime.fromtimestamp, at.timestamp(), UTC))
        starts = datetime(2026, 11, days, 3, tzinfo=UTC)
        said.append(create(cast, form(cast, member, starts)).code)
    assert said == [Code.STAY_CREATED] * 2 + [Code.QUOTA_EXHAUSTED] * 2
    assert used(owner) == {NOVEMBER: (2, 2)}
    clock.set_source(lambda: NOW)
    with cast.transaction(cast.tokyo.id) as tx:
        page = shown.months(tx, member.id, 2, NOVEMBER)
    assert [(one.first, one.used, one.left) for one in page] == [(NOVEMBER, 2, 0), (DECEMBER, 0, 2)]


@pytest.mark.parametrize(
    ("starts", "month"),
    [
        (datetime(2026, 11, 30, 14, 59, 59, tzinfo=UTC), NOVEMBER),
        (datetime(2026, 11, 30, 15, tzinfo=UTC), DECEMBER),
    ],
)
def test_e2_the_month_is_the_houses(
    cast: Cast, member: Joined, owner: Owner, starts: datetime, month: date
) -> None:
    booked(cast, member, starts)
    assert used(owner) == {month: (2, 1)}


def test_the_database_itself_refuses_one_too_many(cast: Cast, member: Joined, owner: Owner) -> None:
    booked(cast, member, NOW + DAY)
    for wrong in ("used = 3", "used = -1", "granted = 0"):
        with pytest.raises(psycopg.errors.CheckViolation):
            owner.run(f"update quota_months set {wrong}")


# Returning --------------------------------------------------------------------------------------


def test_without_terms_it_comes_back_before_arrival_only(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    early, late = booked(cast, member, NOW + DAY), booked(cast, member, NOW + 2 * DAY)
    do(cast, stays.cancel, early, 1)
    assert used(owner) == {NOVEMBER: (2, 1)}
    clock.set_source(lambda: NOW + 2 * DAY)
    do(cast, stays.cancel, late, 1)
    assert used(owner) == {NOVEMBER: (2, 1)}
    assert [kind for kind, _ in lines(owner)] == ["granted", "taken", "taken", "returned"]


@pytest.mark.parametrize(("hours", "left"), [(49, 1), (48, 1), (47, 0), (0, 0)])
def test_by_the_terms_it_comes_back_or_it_does_not(
    cast: Cast, member: Joined, owner: Owner, hours: int, left: int
) -> None:
    cast.policy((72, 0, True), (47, 0, False), plan="members-0")
    stay = booked(cast, member, NOW + 96 * HOUR)
    clock.set_source(lambda: NOW + (96 - hours) * HOUR)
    do(cast, stays.cancel, stay, 1)
    assert used(owner) == {NOVEMBER: (2, 1 - left)}


def test_a_guest_cancels_as_told_and_a_late_one_mints_nothing(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    cast.policy((24, 0, False), plan="members-0")
    stay = booked(cast, member, NOW + 25 * HOUR)
    clock.set_source(lambda: NOW + 2 * HOUR)
    with cast.transaction(cast.tokyo.id) as tx:
        said = stays.cancel_as_agreed(tx, GUEST, stay, 1, 0, returns=True)
    assert said.code == Code.CANCELLATION_CHANGED, "the page said that it comes back"
    with cast.transaction(cast.tokyo.id) as tx:
        stays.cancel_as_agreed(tx, GUEST, stay, 1, 0, returns=False)
    assert used(owner) == {NOVEMBER: (2, 1)}


def test_h1_two_cancellations_return_one(
    cast: Cast, app: Flask, member: Joined, owner: Owner
) -> None:
    stay = booked(cast, member, NOW + DAY)
    said = at_once(app, *[lambda: do(cast, stays.cancel, stay, 1)] * 6)
    assert Counter(getattr(one, "code", repr(one)) for one in said) == {
        Code.STAY_CANCELLED: 1,
        Code.STAY_ALREADY_CANCELLED: 5,
    }
    assert used(owner) == {NOVEMBER: (2, 0)}


def test_a_no_show_keeps_it_used_and_so_it_is_when_reserved_again(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    stay = booked(cast, member, NOW + HOUR)
    clock.set_source(lambda: NOW + HOUR)
    do(cast, stays.mark_no_show, stay, 1)
    do(cast, stays.reinstate, stay, 2)
    assert used(owner) == {NOVEMBER: (2, 1)}
    do(cast, stays.mark_no_show, stay, 3)
    do(cast, stays.cancel, stay, 4)
    assert used(owner) == {NOVEMBER: (2, 1)}
    assert len(lines(owner)) == 2


def test_the_end_of_the_membership_returns_by_the_same_rule(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    cast.policy((48, 0, False), plan="members-0")
    booked(cast, member, NOW + DAY)
    booked(cast, member, NOW + 3 * DAY)
    nobody: Any = None  # whoever is paid at the desk concerns no provider
    desk = Desk(cast.tokyo.id, nobody, nobody, nobody, "http://here.example")
    end_membership(desk, cast.sato.actor, member.id, Ending("force_cancel", note="x"))
    assert owner.rows("select distinct state from stays") == [("cancelled",)]
    assert used(owner) == {NOVEMBER: (2, 1)}


# Moving -----------------------------------------------------------------------------------------


def test_other_times_in_the_same_month_change_nothing(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    stay = booked(cast, member, NOW + DAY)
    assert isinstance(move(cast, stay, 1, NOW + 2 * DAY), Applied)
    assert len(lines(owner)) == 2


def test_another_month_is_another_months_visit(cast: Cast, member: Joined, owner: Owner) -> None:
    stay = booked(cast, member, NOW + DAY)
    assert isinstance(move(cast, stay, 1, NOW + 25 * DAY), Applied)
    assert used(owner) == {NOVEMBER: (2, 0), DECEMBER: (2, 1)}
    assert lines(owner)[-2:] == [("moved_here", -1), ("moved_away", 1)]
    do(cast, stays.cancel, stay, 2)
    assert used(owner) == {NOVEMBER: (2, 0), DECEMBER: (2, 0)}


def test_a_month_without_a_visit_left_takes_no_stay_of_another(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    booked(cast, member, NOW + 25 * DAY)
    booked(cast, member, NOW + 26 * DAY)
    stay = booked(cast, member, NOW + DAY)
    said = move(cast, stay, 1, NOW + 27 * DAY)
    assert said == Refused(Code.QUOTA_EXHAUSTED, {"day": date(2026, 12, 7), "count": 2})
    assert owner.row("select starts_at, version from stays where id = %s", stay) == (NOW + DAY, 1)
    assert used(owner) == {NOVEMBER: (2, 1), DECEMBER: (2, 2)}


def test_a_taken_space_moves_no_visit(cast: Cast, member: Joined, owner: Owner) -> None:
    booked(cast, member, NOW + 25 * DAY)
    stay = booked(cast, member, NOW + DAY)
    assert move(cast, stay, 1, NOW + 25 * DAY) == Refused(Code.SPACE_TAKEN)
    assert used(owner) == {NOVEMBER: (2, 1), DECEMBER: (2, 1)}


def test_two_that_change_months_at_once(
    cast: Cast, app: Flask, member: Joined, owner: Owner
) -> None:
    here, there = booked(cast, member, NOW + DAY), booked(cast, member, NOW + 25 * DAY, 1)
    said = at_once(
        app,
        lambda: move(cast, here, 1, NOW + 26 * DAY),
        lambda: move(cast, there, 1, NOW + 2 * DAY),
    )
    assert [type(one) for one in said] == [Applied, Applied]
    assert used(owner) == {NOVEMBER: (2, 1), DECEMBER: (2, 1)}


# Another number of visits -----------------------------------------------------------------------


def regrant(cast: Cast, member: Joined, wanted: int | None) -> None:
    with cast.transaction(cast.tokyo.id) as tx:
        tx.run("update memberships set monthly_quota = :q where id = :id", q=wanted, id=member.id)
        held = membership_moves.held(tx, member.id)
        assert held is not None
        quota.regrant(tx, cast.sato.actor, held, wanted)


@pytest.mark.parametrize(("wanted", "granted"), [(5, 5), (2, 2), (1, 1), (None, 2)])
def test_another_plan_gives_another_number_from_this_month_on(
    cast: Cast, member: Joined, owner: Owner, wanted: int | None, granted: int
) -> None:
    booked(cast, member, NOW + DAY)
    regrant(cast, member, wanted)
    assert used(owner) == {NOVEMBER: (granted, 1)}


def test_fewer_than_are_used_take_nothing_back(cast: Cast, member: Joined, owner: Owner) -> None:
    first = booked(cast, member, NOW + DAY)
    booked(cast, member, NOW + 2 * DAY)
    regrant(cast, member, 1)
    assert used(owner) == {NOVEMBER: (2, 2)}
    assert create(cast, form(cast, member, NOW + 3 * DAY)).code == Code.QUOTA_EXHAUSTED
    do(cast, stays.cancel, first, 1)
    assert used(owner) == {NOVEMBER: (1, 1)}
    assert create(cast, form(cast, member, NOW + 3 * DAY)).code == Code.QUOTA_EXHAUSTED


def test_a_change_of_the_plan_leaves_whoever_has_joined(
    cast: Cast, member: Joined, owner: Owner
) -> None:
    owner.run("update membership_plans set monthly_quota = 1")
    booked(cast, member, NOW + DAY)
    booked(cast, member, NOW + 2 * DAY)
    assert used(owner) == {NOVEMBER: (2, 2)}


# The whole --------------------------------------------------------------------------------------

acts = st.lists(
    st.tuples(st.sampled_from(["book", "cancel", "move", "late", "regrant"]), st.integers(0, 60)),
    min_size=1,
    max_size=14,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts)
def test_whatever_is_done_the_figures_are_their_lines_and_each_stay_holds_one(
    cast: Cast, house: HouseOf, owner: Owner, wanted: list[tuple[str, int]]
) -> None:
    clock.set_source(lambda: NOW)
    plan = cast.offer(uuid4().hex, "月二回", "Twice", quota=2)
    member = cast.join(plan, {**cast.emma, "email": f"{uuid4()}@guest.example"})
    made: list[UUID] = []
    for act, number in wanted:
        at = NOW + number * DAY + HOUR
        stay = made[number % len(made)] if made else None
        version = owner.one("select version from stays where id = %s", stay) if stay else 0
        if act == "book":
            said = create(cast, form(cast, member, at, len(made) % 12))
            made += [said.subject] if isinstance(said, Applied) and said.subject else []
        elif act == "regrant":
            regrant(cast, member, number % 4 + 1)
        elif stay and act == "move":
            move(cast, stay, version, at)
        elif stay:
            begins = owner.one("select starts_at from stays where id = %s", stay)
            then = begins if act == "late" else NOW
            clock.set_source(partial(datetime.fromtimestamp, then.timestamp(), UTC))
            do(cast, stays.cancel, stay, version)
            clock.set_source(lambda: NOW)
        used(owner)
    for stay in made:
        state, begins, month = owner.row(
            "select s.state, s.starts_at, (select q.month from quota_lines l"
            " join quota_months q on q.id = l.month_id where l.stay_id = s.id"
            " group by q.month having sum(l.amount) < 0) from stays s where id = %s",
            stay,
        )
        assert month is not None or state == "cancelled"
        assert month in (None, month_of_use(begins, "Asia/Tokyo"))


def test_what_it_costs_in_statements(cast: Cast, member: Joined) -> None:
    wanted = form(cast, member, NOW + DAY)
    with statements() as said:
        made = create(cast, wanted)
    assert 0 < len(said) <= 13, said
    assert isinstance(made, Applied)
    with statements() as said:
        do(cast, stays.cancel, made.subject, 1)
    assert 0 < len(said) <= 10, said
