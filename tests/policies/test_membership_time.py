"""Which word is later, which days a period has, and until when a membership gives."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from time import tzset
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from portal import clock
from portal.machines.membership import State
from portal.outcome import Code
from portal.policies import periods
from portal.policies.forward_only import LATENCY, order
from portal.policies.membership_benefits import Membership, withheld
from portal.policies.membership_quota import month_of_use

TOKYO = "Asia/Tokyo"
NOON = datetime(2026, 11, 30, 3, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("known", "heard", "told"),
    [
        (None, NOON, "later"),
        (NOON, NOON + SECOND, "later"),
        (NOON, NOON, "undecided"),
        # An answer of noon may have been read before what happened a second earlier.
        (NOON, NOON - SECOND, "undecided"),
        (NOON, NOON - LATENCY, "undecided"),
        (NOON, NOON - LATENCY - SECOND, "earlier"),
    ],
)
def test_the_later_word(known: datetime | None, heard: datetime, told: str) -> None:
    assert order(known, heard) == told


@pytest.mark.parametrize(
    ("anchor", "interval", "starts"),
    [
        (
            date(2026, 1, 31),
            "month",
            ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"],
        ),
        (date(2028, 1, 31), "month", ["2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"]),
        (
            date(2028, 2, 29),
            "year",
            ["2028-02-29", "2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29"],
        ),
        (date(2026, 11, 30), "month", ["2026-11-30", "2026-12-30", "2027-01-30", "2027-02-28"]),
    ],
)
def test_e4_the_31st_comes_back(
    anchor: date, interval: periods.Interval, starts: list[str]
) -> None:
    told = [periods.nth_start(anchor, interval, n).isoformat() for n in range(len(starts))]
    assert told == starts


def test_periods_are_counted_from_0() -> None:
    with pytest.raises(ValueError, match="from 0"):
        periods.nth_start(date(2026, 1, 31), "month", -1)


@given(
    anchor=some.dates(date(2020, 1, 1), date(2040, 12, 31)),
    days=some.integers(0, 5_000),
    minute=some.integers(0, 1_439),
    interval=some.sampled_from(["month", "year"]),
    zone=some.sampled_from([TOKYO, "UTC", "America/Los_Angeles", "Europe/London"]),
)
def test_periods_leave_no_gap_and_hold_the_moment(
    anchor: date, days: int, minute: int, interval: periods.Interval, zone: str
) -> None:
    at = clock.instant_at(anchor + timedelta(days=days), time(minute // 60, minute % 60), zone)
    start, end = periods.period_at(anchor, interval, at, zone)
    assert start <= at < end
    assert periods.period_at(anchor, interval, end, zone)[0] == end
    assert periods.period_at(anchor, interval, start, zone) == (start, end)
    local = clock.local(start, zone)
    assert (local.hour, local.minute) == (0, 0)
    assert clock.local_day(start, zone) >= anchor


def test_before_the_anchor_the_first_period_counts() -> None:
    early = clock.instant_at(date(2026, 10, 1), time(9), TOKYO)
    start, _ = periods.period_at(date(2026, 11, 30), "month", early, TOKYO)
    assert clock.local_day(start, TOKYO) == date(2026, 11, 30)


@pytest.mark.parametrize(
    ("now", "zone", "ends"),
    [
        # Half a second before the Japanese month is over, while it is still the 31st in UTC.
        ("2026-10-31T14:59:59+00:00", TOKYO, "2026-10-31T15:00:00+00:00"),
        ("2026-10-31T15:00:00+00:00", TOKYO, "2026-11-30T15:00:00+00:00"),
        ("2026-12-15T00:00:00+00:00", TOKYO, "2026-12-31T15:00:00+00:00"),
        ("2028-02-01T00:00:00+00:00", "UTC", "2028-03-01T00:00:00+00:00"),
        # The clocks go forward within the month.
        ("2027-03-01T12:00:00+00:00", "America/Los_Angeles", "2027-04-01T07:00:00+00:00"),
    ],
)
def test_the_month_boundary_is_the_facilitys(now: str, zone: str, ends: str) -> None:
    assert periods.month_boundary(datetime.fromisoformat(now), zone) == datetime.fromisoformat(ends)


# --- benefits

ENDS = NOON + timedelta(days=20)


def held(state: State, **more: Any) -> Membership:
    return replace(Membership(state, None, paused=False, while_past_due=False), **more)


def test_only_a_running_membership_gives() -> None:
    giving = {state for state in get_args(State) if withheld(held(state), NOON) is None}
    assert giving == {"active", "scheduled_to_end"}
    assert withheld(None, NOON) is Code.MEMBERS_ONLY_PLAN


def test_the_house_decides_about_an_overdue_payment() -> None:
    assert withheld(held("past_due"), NOON) is Code.MEMBERS_ONLY_PLAN
    assert withheld(held("past_due", while_past_due=True), NOON) is None
    assert withheld(held("ended", while_past_due=True), NOON) is Code.MEMBERS_ONLY_PLAN


def test_d2_it_gives_until_its_end_and_not_after() -> None:
    ending = held("scheduled_to_end", ends_at=ENDS)
    assert withheld(ending, ENDS - SECOND) is None
    assert withheld(ending, ENDS) is Code.MEMBERS_ONLY_PLAN


def test_d7_a_pause_suspends_and_is_told_as_such() -> None:
    assert withheld(held("active", paused=True), NOON) is Code.MEMBERSHIP_PAUSED
    assert withheld(held("past_due", paused=True), NOON) is Code.MEMBERS_ONLY_PLAN


# --- the month of use


@pytest.mark.parametrize(
    ("at", "zone", "month"),
    [
        ("2026-10-31T14:59:59+00:00", TOKYO, date(2026, 10, 1)),
        ("2026-10-31T15:00:00+00:00", TOKYO, date(2026, 11, 1)),
        # The same moment is another month elsewhere.
        ("2026-10-31T15:00:00+00:00", "UTC", date(2026, 10, 1)),
        ("2026-11-01T06:59:59+00:00", "America/Los_Angeles", date(2026, 10, 1)),
        ("2026-11-01T07:00:00+00:00", "America/Los_Angeles", date(2026, 11, 1)),
        ("2026-12-31T15:00:00+00:00", TOKYO, date(2027, 1, 1)),
        ("2028-02-29T14:59:59+00:00", TOKYO, date(2028, 2, 1)),
    ],
)
def test_e1_a_visit_counts_in_the_houses_month(
    monkeypatch: pytest.MonkeyPatch, at: str, zone: str, month: date
) -> None:
    for machines in ("UTC", "America/Los_Angeles", TOKYO):
        monkeypatch.setenv("TZ", machines)
        tzset()
        assert month_of_use(datetime.fromisoformat(at), zone) == month
    monkeypatch.undo()
    tzset()


def test_e2_one_day_decides_and_it_is_the_day_of_use() -> None:
    """Booked on either side of midnight, used in November: the moment of booking is not asked."""
    booked = [datetime(2026, 10, 31, 14, 59, tzinfo=UTC), datetime(2026, 10, 31, 15, 1, tzinfo=UTC)]
    used = datetime(2026, 11, 7, 9, tzinfo=UTC)
    assert {month_of_use(used, TOKYO) for _ in booked} == {date(2026, 11, 1)}
    assert [month_of_use(at, TOKYO).month for at in booked] == [10, 11]


@given(
    at=some.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=some.just(UTC)),
    zone=some.sampled_from([TOKYO, "UTC", "America/Los_Angeles", "Pacific/Kiritimati"]),
)
def test_every_moment_of_a_month_counts_in_it(at: datetime, zone: str) -> None:
    month = month_of_use(at, zone)
    assert month.day == 1
    assert clock.instant_at(month, time(0), zone) <= at < periods.month_boundary(at, zone)
