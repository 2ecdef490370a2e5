"""What a tablet at an entrance takes for a proof, and how long a stay is that is booked there."""

from datetime import datetime, time, timedelta

from portal import clock
from portal.policies.blocklist import name_keys
from portal.policies.folding import digits, fold

LAST_DIGITS = 4
SHORT = timedelta(hours=3)
"""A visit, which is paid once."""
LEAST_NIGHT = timedelta(hours=5)
"""Whoever comes so shortly before the house's check-out pays for the night after."""


def proves(said: str, names: tuple[str, ...], phone: str | None) -> bool:
    """Whether whoever has the code also knows whose stay it is: the last four figures of the
    telephone, or the name, or one part of it, in any of its writings."""
    figures = digits(said)
    if phone and figures and fold(said) == fold(figures):
        return len(figures) >= LAST_DIGITS and digits(phone).endswith(figures.removeprefix("0"))
    if name_keys(said) & {key for name in names for key in name_keys(name)}:
        return True
    parts = {fold(part) for name in names for part in name.split()}
    return bool(fold(said)) and fold(said) in parts


def period(
    unit: str, hours: int, check_out_by: time, zone: str, now: datetime
) -> tuple[datetime, datetime]:
    """[from, to) of a stay by a plan's unit that begins now."""
    if unit == "hour":
        return now, now + timedelta(hours=hours)
    if unit == "visit":
        return now, now + SHORT
    day = clock.local_day(now, zone)
    today = clock.instant_at(day, check_out_by, zone)
    if today - now >= LEAST_NIGHT:
        return now, today
    return now, clock.instant_at(day + timedelta(days=1), check_out_by, zone)
