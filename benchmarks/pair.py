"""Ours and the floor, in turn, several times; the ratio is taken pair by pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from sqlalchemy import event

from portal.db import db

ROUNDS = 5

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians of the rounds. `ratio` is ours to the floor, above 1 where ours is the better."""

    name: str
    ours: float
    floor: float
    ratio: float
    unit: str
    statements: float | None = None
    """SQL statements of ours for each unit of work."""

    def record(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "name"}


def rates(name: str, count: int, ours: Callable[[], Work], floor: Callable[[], Work]) -> Figure:
    """How many a second. `ours` and `floor` make the work of one round, unmeasured; what they
    return does it. Which of them goes first changes with the round."""
    seen: list[tuple[float, float]] = []
    ours()()  # a first time of each is nobody's: caches fill, plans are made
    floor()()
    said = 0
    for turn in range(ROUNDS):
        with counted() as statements:
            first = ours() if turn % 2 else None
        did_floor = _rate(count, floor()) if first is None else None
        with counted() as statements:
            did_ours = _rate(count, first or ours())
        said = len(statements)
        seen.append((did_ours, did_floor or _rate(count, floor())))
    return Figure(
        name,
        median(one for one, _ in seen),
        median(other for _, other in seen),
        median(one / other for one, other in seen),
        "a second",
        said / count,
    )


def _rate(count: int, work: Work) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that the portal says meanwhile, in this process."""
    said: list[str] = []

    def keep(_: Any, __: Any, statement: str, *___: Any) -> None:
        said.append(statement)

    event.listen(db.engine, "before_cursor_execute", keep)
    try:
        yield said
    finally:
        event.remove(db.engine, "before_cursor_execute", keep)
