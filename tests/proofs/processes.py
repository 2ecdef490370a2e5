"""The proof's hand on its child processes; see `child.py` for what they are."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sandbox import parts
from sandbox.process import Part, start
from tests.outside import Owner

PATIENCE = 60
"""Seconds for anything a child is asked to do. On a busy machine most of them are waiting."""


class Child:
    """One real process: a worker, or (after `serve`) a portal."""

    def __init__(self, path: Path, mode: str) -> None:
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.settimeout(PATIENCE)
        self._wire.connect(str(path))
        self._reading = self._wire.makefile("r")
        self.faults: list[str | None] = []
        """The SQLSTATE of each error that PostgreSQL has answered it with; see `tell`."""
        self._send({"mode": mode})
        self.pid = int(self.expect("ready")["pid"])

    def stand(self, point: str) -> None:
        """From now on it stops at this point."""
        self._send({"order": "stand", "point": point})

    def stopped(self) -> None:
        """Wait until it stands at its point."""
        self.expect("at")

    def go(self, *, again: bool = False) -> None:
        self._send({"order": "go", "again": again})

    def serve(self) -> str:
        self._send({"order": "serve"})
        return str(self.expect("serving")["url"])

    def begin(self, kind: str) -> None:
        self._send({"order": "drain", "kind": kind})

    def done(self) -> int:
        return int(self.expect("done")["count"])

    def work(self, kind: str) -> int:
        self.begin(kind)
        return self.done()

    def tell(self) -> list[str | None]:
        """Its faults until now."""
        self._send({"order": "tell"})
        self.expect("told")
        return self.faults

    def kill(self) -> None:
        """kill -9, and wait until it is gone: its end of the line closes with it."""
        os.kill(self.pid, signal.SIGKILL)
        while self._reading.readline():
            pass

    def close(self) -> None:
        """A child whose line is cut leaves; whatever it held is rolled back by PostgreSQL."""
        with suppress(ProcessLookupError, ValueError):  # it is gone
            self.kill()
        self._reading.close()
        self._wire.close()

    def last_words(self) -> dict[str, Any]:
        """What it says next, whatever that is but a fault; nothing when it is gone."""
        while told := self._reading.readline():
            answer: dict[str, Any] = json.loads(told)
            if answer["said"] != "fault":
                return answer
        return {}

    def expect(self, word: str) -> dict[str, Any]:
        while told := self._reading.readline():
            answer: dict[str, Any] = json.loads(told)
            if answer["said"] == word:
                return answer
            if answer["said"] != "fault":
                raise AssertionError(f"waited for {word!r}, and heard {answer}")
            self.faults.append(answer["sqlstate"])
        raise AssertionError(f"waited for {word!r}, and the process is gone")

    def _send(self, order: dict[str, Any]) -> None:
        self._wire.sendall(json.dumps(order).encode() + b"\n")


class Nursery:
    """Starts children. They are gone when it is closed, whatever they were doing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._children: list[Child] = []

    def child(self, mode: str = "queued") -> Child:
        made = Child(self._path, mode)
        self._children.append(made)
        return made

    def close(self) -> None:
        for one in self._children:
            one.close()


def mother(
    path: Path, log: Path, env: Mapping[str, str], child: str = "tests.proofs.child"
) -> Part:
    """The process that the children are forked from, of the kind that the module `child` makes."""
    return start(
        "children",
        [sys.executable, "-m", child, str(path)],
        log=log,
        env=env,
        ready=lambda part: "ready" in part.said(),
    ).wait()


@pytest.fixture(scope="module")
def forks(place: dict[str, str], folder: Path) -> Iterator[Path]:
    """Where children are asked for."""
    path = folder / f"children-{uuid4().hex[:8]}.sock"
    made: Part = mother(path, folder / "children.log", place)
    yield path
    made.kill()


@pytest.fixture(scope="module")
def portal_url(place: dict[str, str], folder: Path) -> Iterator[str]:
    """The portal as it is run, on the production server."""
    part = parts.portal(place, threads=4, log=folder / "portal.log")
    yield part.url
    part.kill()


@pytest.fixture
def nursery(owner: Owner, forks: Path) -> Iterator[Nursery]:
    made = Nursery(forks)
    yield made
    made.close()
