"""The points of a run: every statement, commit, external call and ring, before and after.

They are counted as the run comes by, so that nobody writes them down: a first run counts, the
later ones die at the n-th. The kill is the process's own SIGKILL, at the exact point.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from portal import doorbell
from portal.outcome import Applied
from tests.proofs.child import Line

WIDEST = 90


class Points:
    """Counts what is reached while it is open, and dies at point `fatal`."""

    def __init__(self, line: Line) -> None:
        self._line, self._open = line, False
        self._fatal: int | None = None
        self.passed: list[str] = []

    @contextmanager
    def counting(self, fatal: int | None) -> Iterator[None]:
        self._fatal, self.passed, self._open = fatal, [], True
        try:
            yield
        finally:
            self._open = False

    def reach(self, when: str, *what: str) -> None:
        if not self._open:
            return
        point = f"{when} {what[-1] if what else ''}"[:WIDEST]
        if len(self.passed) == self._fatal:
            self._line.say("dies", point=point)
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed.append(point)


def watch_doorbell(points: Points) -> None:
    """A ring is an external call as well."""
    for name in ("ring", "answered"):
        setattr(doorbell, name, _watched(getattr(doorbell, name), name, points))


def _watched(call: Any, name: str, points: Points) -> Any:
    def watched(kind: Any) -> Any:
        points.reach("call", f"doorbell.{name} {kind}")
        answer = call(kind)
        points.reach("called", f"doorbell.{name} {kind}")
        return answer

    return watched


class Entered:
    """Which functions of the portal's verbs and jobs a run entered, and which of them said
    Applied, as `module.name`."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.applied: set[str] = set()

    @contextmanager
    def looking(self) -> Iterator[None]:
        sys.setprofile(self._seen)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _seen(self, frame: FrameType, what: str, value: Any) -> None:
        if what not in ("call", "return"):
            return
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(("portal.verbs.", "portal.jobs.")):
            return
        name = f"{module}.{frame.f_code.co_qualname}"
        self.functions.add(name)
        if what == "return" and isinstance(value, Applied):
            self.applied.add(name)
