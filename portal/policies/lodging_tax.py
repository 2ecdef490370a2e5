"""Lodging tax: for each person and night by the price of the night, from the day's own table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from portal import clock
from portal.policies.tax import tax_within

Fault = Literal["empty", "order", "overlap", "gap", "end"]


@dataclass(frozen=True, slots=True)
class Band:
    """`amount` for a price without consumption tax from `least` to `most`, both included; None for
    whatever is more. Smallest unit."""

    least: int
    most: int | None
    amount: int


@dataclass(frozen=True, slots=True)
class Table:
    """What holds from a day on, until the next table's day. Below its lowest band nothing is
    taxed."""

    valid_from: date
    bands: tuple[Band, ...]


def nights(starts_at: datetime, ends_at: datetime, zone: str) -> list[date]:
    """The days on which the nights of a stay begin, by the facility's calendar. Who comes after
    midnight and leaves in the morning has stayed for the one night that is charged."""
    first = clock.local_day(starts_at, zone)
    count = max(1, clock.nights(starts_at, ends_at, zone))
    return [first + timedelta(days=number) for number in range(count)]


def due(
    tables: Iterable[Table], taxed: Sequence[date], price: int, rate: int, persons: int = 1
) -> int:
    """What is owed for these nights. `price` is that of the whole stay with consumption tax at
    `rate` percent; each night and person has an even share of it, without that tax, which is
    rounded as a receipt would state it."""
    if not taxed:
        return 0
    share = (price - tax_within(price, rate)) // (len(taxed) * persons)
    known = sorted(tables, key=lambda table: table.valid_from)
    return persons * sum(_of_night(known, night, share) for night in taxed)


def fault(bands: Sequence[Band]) -> tuple[Fault, int] | None:
    """What is wrong with a table that somebody wrote, and at which price. From its lowest price on
    it says of each price one amount."""
    if not bands:
        return "empty", 0
    ordered = sorted(bands, key=lambda band: band.least)
    for band in ordered:
        if band.most is not None and band.most < band.least:
            return "order", band.least
    for band, following in zip(ordered, ordered[1:], strict=False):
        if band.most is None or band.most >= following.least:
            return "overlap", following.least
        if band.most + 1 < following.least:
            return "gap", band.most + 1
    last = ordered[-1]
    return None if last.most is None else ("end", last.most + 1)


def _of_night(known: Sequence[Table], night: date, share: int) -> int:
    held = [table for table in known if table.valid_from <= night]
    if not held:
        return 0
    for band in held[-1].bands:
        if band.least <= share and (band.most is None or share <= band.most):
            return band.amount
    return 0
