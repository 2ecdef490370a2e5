"""Billing periods of memberships that are paid at the desk. Days are the facility's.

The provider reckons those that it bills by itself, and its word counts there.
"""

import calendar
from datetime import date, datetime, time, timedelta
from typing import Literal

from portal import clock

Interval = Literal["month", "year"]

When = Literal["month_boundary", "period_end"]
"""At which end a member who leaves may leave."""

MONTHS: dict[Interval, int] = {"month": 1, "year": 12}


def nth_start(anchor: date, interval: Interval, number: int) -> date:
    """The day on which period `number` begins; 0 begins on the anchor. Each is reckoned from the
    anchor and not from the one before, so that one from the 31st comes back to the 31st."""
    if number < 0:
        raise ValueError("periods are counted from 0")
    months = anchor.year * 12 + anchor.month - 1 + MONTHS[interval] * number
    year, month = divmod(months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(anchor.day, last))


def period_at(
    anchor: date, interval: Interval, now: datetime, zone: str
) -> tuple[datetime, datetime]:
    """[start, end) of the period that holds `now`, as UTC instants; before the anchor, the first.

    Both are midnights of the facility's days."""
    today = clock.local_day(now, zone)
    months = (today.year - anchor.year) * 12 + today.month - anchor.month
    number = max(0, months // MONTHS[interval])
    if number and nth_start(anchor, interval, number) > today:
        number -= 1
    return (
        clock.instant_at(nth_start(anchor, interval, number), time(0), zone),
        clock.instant_at(nth_start(anchor, interval, number + 1), time(0), zone),
    )


def month_boundary(now: datetime, zone: str) -> datetime:
    """The end of the calendar month that holds `now`, in the facility's zone, as a UTC instant."""
    today = clock.local_day(now, zone)
    last = calendar.monthrange(today.year, today.month)[1]
    first_of_next = today.replace(day=last) + timedelta(days=1)
    return clock.instant_at(first_of_next, time(0), zone)


def leaving(
    when: When, started_at: datetime, interval: Interval, now: datetime, zone: str
) -> datetime:
    """When a membership ends that is cancelled now: with the calendar month, or with the period
    that is paid for, counted from the day on which it began."""
    if when == "month_boundary":
        return month_boundary(now, zone)
    return period_at(clock.local_day(started_at, zone), interval, now, zone)[1]
