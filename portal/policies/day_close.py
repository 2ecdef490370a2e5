"""What a drawer should hold, and the seal under a day's close."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

SEALED = (
    "no",
    "day",
    "closed_at",
    "currency",
    "opening",
    "cash_in",
    "cash_out",
    "card_in",
    "card_out",
    "counted",
    "taken",
    "left_open",
    "reason",
    "lines",
    "lines_digest",
    "actor_kind",
    "actor_name",
)
"""What a seal is over, in this order for ever: a seal that was given is checked by the same."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the folios say of the lines that no close has. Smallest units; each at least 0."""

    opening: int
    cash_in: int
    cash_out: int
    card_in: int
    card_out: int

    @property
    def cash_moved(self) -> int:
        return self.cash_in - self.cash_out

    @property
    def expected(self) -> int:
        """What the drawer should hold. Below 0 it cannot: then something was not booked."""
        return self.opening + self.cash_moved


def seal(before: str, close: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, over the seal before ('' for the first) and what `SEALED` names."""
    told = [before, *(_plain(close[name]) for name in SEALED)]
    return hashlib.sha256(json.dumps(told, ensure_ascii=True).encode()).hexdigest()


def _plain(value: Any) -> str | int:
    match value:
        case datetime():
            return f"{value.timestamp():.6f}"
        case date():
            return value.isoformat()
        case int() | str():
            return value
    raise TypeError(f"{value!r} cannot be sealed")
