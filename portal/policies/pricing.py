"""What a stay costs by its plan. Integers only."""

from datetime import datetime, timedelta
from typing import Literal

from portal import clock

Unit = Literal["night", "hour", "visit"]


def units(unit: str, starts_at: datetime, ends_at: datetime, zone: str) -> int:
    """How many units are charged: nights by the facility's calendar, hours begun, or one visit."""
    if unit == "visit":
        return 1
    if unit == "hour":
        return -((starts_at - ends_at) // timedelta(hours=1))
    return max(1, clock.nights(starts_at, ends_at, zone))


def quote(unit: str, unit_price: int, starts_at: datetime, ends_at: datetime, zone: str) -> int:
    """The price in the currency's smallest unit."""
    return unit_price * units(unit, starts_at, ends_at, zone)


def deposit_open(deposit_due: int, charged: int, balance: int) -> int:
    """What of the deposit nothing received covers yet; never more than is owed, never below 0."""
    received = charged - balance
    return max(0, min(balance, deposit_due - received))
