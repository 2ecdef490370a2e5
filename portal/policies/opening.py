"""Opening hours: what an entrance says of each weekday, on its house's clocks. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from portal import clock

DAYS = 7


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `opens` until `closes`, past midnight where it closes before it opens. It belongs to the
    day on which it begins."""

    opens: time
    closes: time


ALL_DAY = Stretch(time(0), time(0))
"""From midnight to midnight: 24 hours, and on the days on which the clocks change 23 or 25."""

Day = Stretch | None
"""None: closed all day."""
Week = tuple[Day, ...]
"""Seven days, Monday first; one of them opens. An entrance without a week never closes."""

NEAR = range(-2, 2)
"""Days around today whose stretch may hold the present: the last may have gone past midnight, into
a day that its zone left out."""
AHEAD = range(2 * DAYS + 1)
"""In one week of two a weekday opens: where the clocks leave out an hour its stretch may be over
before it begins, but not twice running."""


def closed_until(week: Week | None, zone: str, now: datetime) -> datetime | None:
    """When it opens again; None while it is open. Where the clocks are set back, the hour that
    comes twice is its first; an hour that they leave out begins an hour later."""
    if week is None:
        return None
    today = clock.local_day(now, zone)
    if any(begins <= now < ends for begins, ends in _spans(week, today, NEAR, zone)):
        return None
    return min(begins for begins, _ in _spans(week, today, AHEAD, zone) if begins > now)


def week(opens: Sequence[time | None] | None, closes: Sequence[time | None] | None) -> Week | None:
    """Of an entrance's columns."""
    if opens is None or closes is None:
        return None
    days = zip(opens, closes, strict=True)
    return tuple(None if a is None or z is None else Stretch(a, z) for a, z in days)


def columns(week: Week | None) -> dict[str, list[time | None] | None]:
    """As an entrance's columns hold it."""
    if week is None:
        return {"opens": None, "closes": None}
    return {
        "opens": [day.opens if day else None for day in week],
        "closes": [day.closes if day else None for day in week],
    }


def runs(week: Week) -> Iterator[tuple[int, int, Day]]:
    """Neighbouring days that are alike, as people say them: (first, last, what they say), Monday
    is 0."""
    first = 0
    for day in range(1, DAYS + 1):
        if day == DAYS or week[day] != week[first]:
            yield first, day - 1, week[first]
            first = day


def _spans(
    week: Week, today: date, days: Iterable[int], zone: str
) -> Iterator[tuple[datetime, datetime]]:
    """[begins, ends) of the stretches that begin so many days from today. A day that the zone has
    left out has none."""
    for day in (today + timedelta(days=number) for number in days):
        stretch = week[day.weekday()]
        if stretch is None or not _is_there(day, zone):
            continue
        last = day + timedelta(days=1) if stretch.closes <= stretch.opens else day
        begins = clock.instant_at(day, stretch.opens, zone)
        ends = clock.instant_at(last, stretch.closes, zone)
        if begins < ends:
            yield begins, ends


def _is_there(day: date, zone: str) -> bool:
    """Pacific/Apia went from Thursday 29 to Saturday 31 December 2011."""
    begins, ends = clock.day_bounds(day, zone)
    return begins < ends
