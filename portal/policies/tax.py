"""Consumption tax within prices, and what a document states of money that came. Integers only."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REGISTRATION = re.compile(r"T[1-9][0-9]{12}")


@dataclass(frozen=True, slots=True)
class Part:
    """`amount` contains the tax, in the smallest unit; below 0 for what goes back. `rate` in
    percent; 0 for what is not taxed."""

    item: str
    rate: int
    amount: int


@dataclass(frozen=True, slots=True)
class RateTotal:
    """Everything of one rate on one document, and the tax that is in it."""

    rate: int
    amount: int
    tax: int


def totals(parts: Iterable[Part]) -> tuple[RateTotal, ...]:
    """By rate, the highest first. The tax is rounded once for each rate of a document and never by
    the line: https://www.nta.go.jp/taxes/shiraberu/taxanswer/shohi/6371.htm"""
    by_rate: defaultdict[int, int] = defaultdict(int)
    for part in parts:
        by_rate[part.rate] += part.amount
    return tuple(
        RateTotal(rate, amount, tax_within(amount, rate))
        for rate, amount in sorted(by_rate.items(), reverse=True)
    )


def tax_within(amount: int, rate: int) -> int:
    """Of an amount that contains it; what is less than one unit is dropped, towards zero."""
    tax = abs(amount) * rate // (100 + rate)
    return tax if amount >= 0 else -tax


def parts_of(charges: Iterable[Part]) -> list[Part]:
    """What is charged in the end, a part for each item and rate, in one order whatever the order of
    the lines. Of an item that was reversed by more than was charged, the rest lowers the others."""
    sums: defaultdict[tuple[str, int], int] = defaultdict(int)
    for part in charges:
        sums[part.item, part.rate] += part.amount
    owing = -sum(amount for amount in sums.values() if amount < 0)
    kept = []
    for (item, rate), amount in sorted(sums.items(), key=_order):
        taken = min(max(amount, 0), owing)
        owing -= taken
        if amount > taken:
            kept.append(Part(item, rate, amount - taken))
    return kept


def stated(charges: Iterable[Part], received: int, before: Sequence[Part] = ()) -> list[Part]:
    """The parts of a document that states what has been `received` since those `before`: money
    fills the charges in their order, and what earlier documents have stated is taken off. Where
    money went back, the parts are what went back, below 0. Their sum is `received` in all less what
    was stated before.

    Raises ValueError where more was received than is charged: nobody knows yet what it is for.
    """
    parts, left = [], received
    for part in parts_of(charges):
        filled = min(part.amount, left)
        left -= filled
        parts.append(Part(part.item, part.rate, filled))
    if left:
        raise ValueError(f"{left} of the money received is charged for nothing")
    sums: defaultdict[tuple[str, int], int] = defaultdict(int)
    for part in parts:
        sums[part.item, part.rate] += part.amount
    for part in before:
        sums[part.item, part.rate] -= part.amount
    return [
        Part(item, rate, amount)
        for (item, rate), amount in sorted(sums.items(), key=_order)
        if amount
    ]


def is_registration(number: str) -> bool:
    """An issuer of qualified invoices: T and 13 figures, the first of which is 9 less the rest of
    the others' weighted sum by 9 (https://www.houjin-bangou.nta.go.jp/documents/checkdigit.pdf)."""
    if not REGISTRATION.fullmatch(number):
        return False
    check, base = int(number[1]), number[2:]
    weighted = sum(
        int(figure) * (1 if place % 2 == 0 else 2) for place, figure in enumerate(reversed(base))
    )
    return check == 9 - weighted % 9


def _order(sums: tuple[tuple[str, int], int]) -> tuple[int, str]:
    """What is taxed before what is not: money fills the price first, then the lodging tax."""
    (item, rate), _ = sums
    return -rate, item
