"""Time. One clock, aware UTC; days, months and business hours are the facility's.

Nothing else in the portal reads the system's clock for a business decision. Leases are the
exception: they are compared in the database's time, by the statement that claims.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_source: Callable[[], datetime] = lambda: datetime.now(UTC)  # noqa: E731


def now() -> datetime:
    """The present instant, aware, in UTC."""
    return _source()


def set_source(source: Callable[[], datetime] | None) -> None:
    """Tests and simulations set their own clock; None restores the system's."""
    global _source
    _source = source or (lambda: datetime.now(UTC))


def local(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(ZoneInfo(zone))


def local_day(instant: datetime, zone: str) -> date:
    """The facility's calendar day on which `instant` falls."""
    return local(instant, zone).date()


def instant_at(day: date, at: time, zone: str) -> datetime:
    """The UTC instant of a wall-clock time on a day of the facility."""
    return datetime.combine(day, at, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def day_bounds(day: date, zone: str) -> tuple[datetime, datetime]:
    """[start, end) of the facility's day as UTC instants."""
    return instant_at(day, time(0), zone), instant_at(day + timedelta(days=1), time(0), zone)


def nights(starts_at: datetime, ends_at: datetime, zone: str) -> int:
    """Calendar nights between two instants in the facility's zone; 0 for a stay within one day."""
    return (local_day(ends_at, zone) - local_day(starts_at, zone)).days
