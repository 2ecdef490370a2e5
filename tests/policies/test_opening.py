"""Opening hours by weekday, against a second reading of them: minute by minute on plain clocks, and
by what must hold wherever clocks are set forward and back."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from portal.policies import opening
from portal.policies.opening import ALL_DAY, Day, Stretch, Week, closed_until

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PLAIN = ("Asia/Tokyo", "UTC", "Asia/Kathmandu")
"""Whose clocks are never set."""
ZONES = (*PLAIN, "America/New_York", "Europe/London", "Pacific/Apia", "Australia/Lord_Howe",
         "America/Nuuk", "Africa/Cairo", "America/Havana", "Africa/Casablanca")  # fmt: skip

minutes = some.integers(0, 1439).map(lambda at: time(at // 60, at % 60))
nooks = minutes | some.sampled_from(
    [time(0), time(1, 30), time(2), time(2, 30), time(3), time(23, 30)]
)
"""With the hours at which clocks are set."""
stretches = some.builds(Stretch, nooks, nooks).filter(lambda one: one.opens != one.closes)
days = some.none() | some.just(ALL_DAY) | stretches
weeks = some.lists(days, min_size=7, max_size=7).filter(any).map(tuple)
instants = some.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=some.just(UTC)).map(
    lambda at: at.replace(fold=0)
)
# The nights on which clocks are set somewhere, and the day that Apia left out.
set_at = some.sampled_from(
    [datetime(2026, 3, 8), datetime(2026, 3, 29), datetime(2026, 11, 1), datetime(2026, 10, 25),
     datetime(2026, 4, 24), datetime(2026, 2, 15), datetime(2011, 12, 30)]
)  # fmt: skip
nights = some.builds(
    lambda day, minutes: (day + minutes * MINUTE).replace(tzinfo=UTC),
    set_at,
    some.integers(-2000, 2000),
)
moments = instants | nights


def open_minutes(week: Week) -> set[int]:
    """The minutes of a week in which it is open; the week goes round."""
    found: set[int] = set()
    for day, stretch in enumerate(week):
        if stretch is None:
            continue
        begins = stretch.opens.hour * 60 + stretch.opens.minute
        ends = stretch.closes.hour * 60 + stretch.closes.minute
        ends += 1440 if ends <= begins else 0
        found |= {(day * 1440 + minute) % 10_080 for minute in range(begins, ends)}
    return found


@settings(max_examples=400, deadline=None)
@given(weeks, some.sampled_from(PLAIN), instants)
def test_minute_by_minute(week: Week, zone: str, now: datetime) -> None:
    """Said once more, by walking from now to the first minute that is open."""
    here = now.astimezone(ZoneInfo(zone))
    at = here.weekday() * 1440 + here.hour * 60 + here.minute
    is_open = open_minutes(week)
    wait = next(step for step in range(10_081) if (at + step) % 10_080 in is_open)
    wanted = here.replace(second=0, microsecond=0) + wait * MINUTE if wait else None
    assert closed_until(week, zone, now) == wanted


@settings(max_examples=600, deadline=None)
@given(weeks, some.sampled_from(ZONES), moments, some.integers(0, 999))
def test_it_opens_when_it_says_and_not_before(
    week: Week, zone: str, now: datetime, part: int
) -> None:
    """Wherever clocks are set: what is told is later, within two weeks, is open, and every moment
    until then is closed until the same."""
    until = closed_until(week, zone, now)
    if until is None:
        return
    assert until.utcoffset() == timedelta(0)
    assert now < until < now + 15 * DAY
    assert closed_until(week, zone, until) is None
    assert closed_until(week, zone, now + (until - now) * part // 1000) == until
    assert closed_until(week, zone, until - timedelta(microseconds=1)) == until


@settings(max_examples=300, deadline=None)
@given(weeks, some.integers(0, 6), some.sampled_from(ZONES), moments)
def test_a_day_more_never_closes(week: Week, day: int, zone: str, now: datetime) -> None:
    longer = (*week[:day], ALL_DAY, *week[day + 1 :]) if week[day] is None else week
    before, after = closed_until(week, zone, now), closed_until(longer, zone, now)
    assert after is None or (before is not None and after <= before)


@given(some.sampled_from(ZONES), moments)
def test_what_is_open_all_days_never_closes(zone: str, now: datetime) -> None:
    assert closed_until((ALL_DAY,) * 7, zone, now) is None
    assert closed_until(None, zone, now) is None


@given(weeks)
def test_the_columns_hold_the_week(week: Week) -> None:
    held = opening.columns(week)
    assert opening.week(held["opens"], held["closes"]) == week
    assert opening.week(**opening.columns(None)) is None


@given(weeks)
def test_runs_are_the_week_and_never_two_alike(week: Week) -> None:
    told = list(opening.runs(week))
    again = [day for first, last, day in told for _ in range(first, last + 1)]
    assert tuple(again) == week
    assert [first for first, _, _ in told][1:] == [last + 1 for _, last, _ in told][:-1]
    assert all(one[2] != next_one[2] for one, next_one in zip(told, told[1:], strict=False))


TEN = Stretch(time(10), time(23))
LATE = Stretch(time(22), time(5))
EARLY = Stretch(time(0), time(3))


def week(**named: Day) -> Week:
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    return tuple(named.get(day, named.get("rest")) for day in days)


@pytest.mark.parametrize(
    ("of", "local", "opens_at"),
    [
        # Every day alike: 2026-11-03 is a Tuesday.
        (week(rest=Stretch(time(6), time(2))), "2026-11-03T01:59", None),
        (week(rest=Stretch(time(6), time(2))), "2026-11-03T02:00", "2026-11-03T06:00"),
        (week(rest=Stretch(time(6), time(2))), "2026-11-03T06:00", None),
        (week(rest=Stretch(time(9), time(22))), "2026-11-03T22:00", "2026-11-04T09:00"),
        # A closed day is skipped, and so are several.
        (week(rest=TEN, wed=None), "2026-11-03T23:00", "2026-11-05T10:00"),
        (week(mon=TEN), "2026-11-03T00:00", "2026-11-09T10:00"),
        (week(mon=TEN), "2026-11-09T09:59", "2026-11-09T10:00"),
        (week(mon=TEN), "2026-11-09T23:00", "2026-11-16T10:00"),
        # Past midnight into a closed day: it belongs to the day on which it begins.
        (week(tue=LATE), "2026-11-04T04:59", None),
        (week(tue=LATE), "2026-11-04T05:00", "2026-11-10T22:00"),
        (week(tue=LATE), "2026-11-03T04:59", "2026-11-03T22:00"),
        (week(sun=LATE, rest=None), "2026-11-09T03:00", None),
        # Adjoining: one ends where the next begins, no moment between them.
        (week(tue=Stretch(time(10), time(0)), wed=EARLY), "2026-11-04T00:00", None),
        (week(tue=LATE, wed=Stretch(time(5), time(9))), "2026-11-04T05:00", None),
        (week(tue=ALL_DAY), "2026-11-03T23:59", None),
        (week(tue=ALL_DAY), "2026-11-04T00:00", "2026-11-10T00:00"),
        (week(tue=ALL_DAY), "2026-11-02T23:59", "2026-11-03T00:00"),
        # One stretch within another that began the day before.
        (week(tue=Stretch(time(20), time(12)), wed=TEN), "2026-11-04T12:00", None),
    ],
)  # fmt: skip
def test_of_a_week_in_tokyo(of: Week, local: str, opens_at: str | None) -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    until = closed_until(of, "Asia/Tokyo", datetime.fromisoformat(local).replace(tzinfo=tokyo))
    wanted = datetime.fromisoformat(opens_at).replace(tzinfo=tokyo) if opens_at else None
    assert until == wanted


NEW_YORK = "America/New_York"


def at(utc: str) -> datetime:
    return datetime.fromisoformat(utc).replace(tzinfo=UTC)


def test_an_hour_that_the_clocks_leave_out() -> None:
    """On Sunday 8 March 2026 New York has no 02:00 to 03:00."""
    beginning_in_it = week(sun=Stretch(time(2, 30), time(6)))
    assert closed_until(beginning_in_it, NEW_YORK, at("2026-03-08T07:29")) == at("2026-03-08T07:30")
    whole_within = week(sun=Stretch(time(2, 10), time(2, 50)))
    last_week = at("2026-03-01T09:00")
    assert closed_until(whole_within, NEW_YORK, last_week) == at("2026-03-08T07:10")
    over_before_it_begins = week(sun=Stretch(time(2, 30), time(3, 15)))
    assert closed_until(over_before_it_begins, NEW_YORK, last_week) == at("2026-03-15T06:30")


def test_an_hour_that_comes_twice_is_its_first() -> None:
    """On Sunday 1 November 2026 New York has 01:00 to 02:00 twice."""
    of = week(sat=Stretch(time(20), time(1, 30)), sun=TEN)
    assert closed_until(of, NEW_YORK, at("2026-11-01T05:29")) is None
    assert closed_until(of, NEW_YORK, at("2026-11-01T05:30")) == at("2026-11-01T15:00")
    assert closed_until(of, NEW_YORK, at("2026-11-01T06:10")) == at("2026-11-01T15:00")
    assert closed_until(week(sun=ALL_DAY), NEW_YORK, at("2026-11-02T04:59")) is None, "25 hours"


def test_a_day_that_a_zone_left_out_has_no_hours() -> None:
    """Apia had no Friday 30 December 2011; what began on the Thursday lasts as long as it says."""
    friday = week(fri=TEN)
    before = datetime(2011, 12, 29, 20, tzinfo=ZoneInfo("Pacific/Apia"))
    opens = datetime(2012, 1, 6, 10, tzinfo=ZoneInfo("Pacific/Apia"))
    assert closed_until(friday, "Pacific/Apia", before) == opens
    late = datetime(2011, 12, 31, 1, tzinfo=ZoneInfo("Pacific/Apia"))
    assert date(2011, 12, 31) == late.date()
    assert closed_until(week(thu=Stretch(time(22), time(2))), "Pacific/Apia", late) is None
