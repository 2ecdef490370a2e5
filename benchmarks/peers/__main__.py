"""Ours and the peers', in turn, on one server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from benchmarks import events, outbox
from benchmarks.ground import Ground, opened, worker
from benchmarks.outbox import Swallowed
from benchmarks.pair import Figure, Work, rates
from portal import inbox
from portal.db import transaction
from sandbox import parts, setup

STAYS = 10_000
EVENTS = 100
JOBS = outbox.MESSAGES


def main() -> None:
    setup.peers()
    with opened(STAYS) as ground:
        for figure in (*_djstripe(ground), _procrastinate(ground)):
            print(figure.line(), flush=True)


def _djstripe(ground: Ground) -> Iterator[Figure]:
    house = worker(ground)
    with peer(ground, "djstripe") as other:

        def theirs(verb: str) -> Work:
            other.ask(do="give", events=events.paid(ground, EVENTS))
            return lambda: other.ask(do=verb)

        def stored() -> Work:
            told = events.paid(ground, EVENTS)
            return lambda: _store(told)

        def applied() -> Work:
            told = events.paid(ground, EVENTS)
            return lambda: (_store(told), events.drain(house))

        name = "payment event stored; floor: dj-stripe"
        yield rates(ground, name, EVENTS, stored, lambda: theirs("store"), "ms")
        name = "payment event stored, applied; floor: dj-stripe"
        yield rates(ground, name, EVENTS, applied, lambda: theirs("sync"), "ms")


def _store(told: list[dict[str, Any]]) -> None:
    """As the route stores what it has verified."""
    for one in told:
        with transaction(None, isolation="AUTOCOMMIT") as tx:
            inbox.receive(
                tx,
                "stripe",
                event_id=one["id"],
                kind=one["type"],
                created=datetime.now(UTC),
                payload=json.dumps(one).encode(),
                headers={},
            )


def _procrastinate(ground: Ground) -> Figure:
    with peer(ground, "procrastinate") as other:

        def theirs() -> Work:
            other.ask(do="give", many=JOBS)
            return lambda: other.ask(do="drain")

        name = "messages, no-op sink; floor: procrastinate's jobs"
        return rates(ground, name, JOBS, lambda: outbox.sending(ground, Swallowed()), theirs)


class Peer:
    """A process that holds a peer; `ask` returns when it has done what was asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.hear()

    def ask(self, **what: Any) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(what), file=self._process.stdin, flush=True)
        return self.hear()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer has ended with {self._process.wait()}")
        return json.loads(line)


@contextmanager
def peer(ground: Ground, name: str) -> Iterator[Peer]:
    """In a database of its own on the ground's server, as its owner: nothing guards its rows."""
    url = parts.create_database(ground.server_url, name)
    with subprocess.Popen(
        [
            str(setup.PEERS / "bin/python"),
            "-c",
            f"from benchmarks.peers.{name} import main; main()",
        ],
        cwd=setup.ROOT,
        env={**os.environ, "PEER_DATABASE": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


if __name__ == "__main__":
    main()
