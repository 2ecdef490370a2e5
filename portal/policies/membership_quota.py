"""In which month a visit counts."""

from datetime import date, datetime

from portal import clock


def month_of_use(at: datetime, zone: str) -> date:
    """The first day of the calendar month in which a visit at `at` is used, by the house's days:
    whenever it was booked, and whatever zone the machine thinks in."""
    return clock.local_day(at, zone).replace(day=1)
