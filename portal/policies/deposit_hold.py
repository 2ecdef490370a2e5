"""How long a booking holds its space for a deposit that has not come. Every instant is the
database's, so that no process's clock ends a booking early."""

from datetime import datetime, timedelta

SOONEST_REMINDER = timedelta(hours=1)
"""A reminder is sent so long before the deadline at the least: a shorter wait needs none, the mail
of the booking has just said it."""


def deadline(hours: int | None, booked_at: datetime, starts_at: datetime) -> datetime | None:
    """`hours` after the booking, at arrival at the latest. None, held without end: where the house
    has no limit, and of a stay that begins as it is booked, whose guest is there."""
    if hours is None or starts_at <= booked_at:
        return None
    return min(booked_at + timedelta(hours=hours), starts_at)


def moved(deposit_by: datetime | None, starts_at: datetime, now: datetime) -> datetime | None:
    """The deadline once the stay begins at another time: never after arrival, and none where it
    has begun by that."""
    if deposit_by is None or starts_at <= now:
        return None
    return min(deposit_by, starts_at)


def reminder(asked_at: datetime, deposit_by: datetime) -> datetime | None:
    """When the guest is reminded: once a quarter of the time is left."""
    left = (deposit_by - asked_at) / 4
    return deposit_by - left if left >= SOONEST_REMINDER else None


def is_awaited(state: str, to_come: int) -> bool:
    """Whether a deadline means anything: of a stay that is reserved, while a part of its deposit
    has never come. One that came and was given back waits for a person, and ends by no clock."""
    return state == "reserved" and to_come > 0


def is_missed(state: str, to_come: int, deposit_by: datetime | None, now: datetime) -> bool:
    """Awaited, and the deadline has come."""
    return is_awaited(state, to_come) and deposit_by is not None and deposit_by <= now
