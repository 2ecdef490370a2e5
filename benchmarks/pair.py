"""Ours and the floor, in turn, several times; the ratio is taken pair by pair."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from benchmarks.ground import Ground
from sandbox.watch import statements

ROUNDS = 5

Unit = Literal["a second", "ms"]
Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians of the rounds. `ratio` is of speeds, ours to the floor's: above 1 ours is faster."""

    name: str
    ours: float
    floor: float
    ratio: float
    unit: Unit
    statements: float | None = None
    """SQL statements of ours for each unit of work."""

    def record(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "name"}

    def line(self) -> str:
        said = "" if self.statements is None else f"{self.statements:.2f} statements"
        return (
            f"{self.name:<54} ours {self.ours:>8.1f}  floor {self.floor:>8.1f} {self.unit:<9}"
            f" ratio {self.ratio:.2f}  {said}"
        )


def rates(
    ground: Ground,
    name: str,
    count: int,
    ours: Callable[[], Work],
    floor: Callable[[], Work],
    unit: Unit = "a second",
) -> Figure:
    """`ours` and `floor` make the work of one round, unmeasured; what they return does it. Which
    goes first changes with the round."""
    ours()()  # the first time is nobody's: caches fill, plans are made
    floor()()
    ground.owner.execute("analyze")  # as a server does within a minute of the first rows
    pairs: list[tuple[float, float]] = []
    for turn in range(ROUNDS):
        order = (ours, floor) if turn % 2 else (floor, ours)
        took = {make: _seconds(make()) for make in order}
        pairs.append((took[ours], took[floor]))
    with statements() as said:
        ours()()
    return Figure(
        name,
        median(_shown(seconds, count, unit) for seconds, _ in pairs),
        median(_shown(seconds, count, unit) for _, seconds in pairs),
        median(theirs / mine for mine, theirs in pairs),
        unit,
        len(said) / count,
    )


def _seconds(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _shown(seconds: float, count: int, unit: Unit) -> float:
    return count / seconds if unit == "a second" else seconds * 1000 / count
