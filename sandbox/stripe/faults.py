"""Failures on order: the next N calls that match a method and a path go wrong in a named way."""

import re
import threading
from dataclasses import asdict, dataclass
from typing import Any

MODES = (
    "do_then_drop",
    "error_500_before",
    "error_500_after",
    "stall",
    "refuse",
    "rate_limit",
)


@dataclass(slots=True)
class Fault:
    """`times` None means until cleared. `seconds` and `when` belong to stall: before the work,
    after it, or instead of it; in that case the line is cut in the end.

    `stored` says whether a 500 is kept under its idempotency key; None takes the rule of the
    mode: kept after the work was done, not kept before it was begun.
    """

    mode: str
    method: str = ".*"
    path: str = ".*"
    times: int | None = 1
    seconds: float = 1.0
    when: str = "before"
    stored: bool | None = None
    retry_after: float | None = None
    hits: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}")
        if self.when not in ("before", "after", "instead"):
            raise ValueError("when must be before, after or instead")
        re.compile(self.path)
        re.compile(self.method)

    def matches(self, method: str, path: str) -> bool:
        return bool(re.fullmatch(self.method, method) and re.search(self.path, path))


class Faults:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []
        self.down = False

    def add(self, wanted: dict[str, Any]) -> None:
        """Raises TypeError or ValueError on a fault that makes no sense."""
        fault = Fault(**{**wanted, "hits": 0})
        with self._lock:
            self._waiting.append(fault)

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this call, if one is due; counts it off."""
        with self._lock:
            for fault in self._waiting:
                if fault.times != 0 and fault.matches(method, path):
                    fault.hits += 1
                    fault.times = None if fault.times is None else fault.times - 1
                    return fault
        return None

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()
            self.down = False

    def as_rows(self) -> list[dict[str, Any]]:
        with self._lock:
            return [asdict(fault) for fault in self._waiting]
