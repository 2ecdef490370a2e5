"""The webhook route, served, beside a bare Flask route that stores the same row; and the whole way
of an event, from HTTP to completed."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from benchmarks import events
from benchmarks.ground import Ground
from benchmarks.pair import Figure, Work, rates
from sandbox import parts
from sandbox.process import Part, answers, says_where, start

EVENTS = 300
SECRET = "whsec_bench"
PATIENCE = 120


def measure(ground: Ground) -> list[Figure]:
    portal, bare = parts.portal(ground.env, threads=4), _bare(ground)
    one = OneAtATime(ground)
    try:
        received = rates(
            ground,
            "webhook events received",
            EVENTS,
            lambda: _posting(ground, portal.url),
            lambda: _posting(ground, bare.url),
        )
        ground.owner.execute("delete from webhook_events where state = 'processing'")
        # Mail that other measures left would hold up events: a worker drains what it begins.
        ground.owner.execute("delete from outbox where sent_at is null")
        whole = rates(
            ground,
            "webhook events, HTTP to completed",
            EVENTS,
            lambda: one.to_the_end(portal.url, lambda: parts.worker(ground.env)),
            lambda: one.to_the_end(bare.url, lambda: _loop(ground)),
        )
    finally:
        one.rest()
        portal.kill()
        bare.kill()
    return [replace(figure, statements=None) for figure in (received, whole)]


@dataclass
class OneAtATime:
    """Of two that do the same work, one lives while it is measured."""

    ground: Ground
    alive: Part | None = None

    def rest(self) -> None:
        if self.alive is not None:
            self.alive.kill()
            self.alive = None

    def to_the_end(self, url: str, begin: Callable[[], Part]) -> Work:
        """Post while a process beside us applies, and wait until all of it is completed. It has
        applied one event before the measure begins: then it has come up."""
        self.rest()
        self.alive = begin()
        events.stored(self.ground, events.paid(self.ground, 1))
        self._completed()
        post = _posting(self.ground, url)

        def work() -> None:
            post()
            self._completed()

        return work

    def _completed(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.ground.owner.execute(_WAITING).fetchone():
            part = self.alive
            if part is None or not part.running or time.monotonic() > end:
                raise RuntimeError(f"nobody applies\n{part.last_lines() if part else ''}")
            time.sleep(0.01)


def _bare(ground: Ground) -> Part:
    argv = [sys.executable, "-m", "gunicorn", "benchmarks.bare:app", "--bind", "127.0.0.1:0"]
    part = start(
        "bare",
        [*argv, "--workers", "1", "--threads", "4", "--worker-class", "gthread"],
        log=ground.folder / "bare.log",
        env={"BARE_DATABASE": ground.app_url},
        ready=lambda part: says_where(part) and answers(f"{part.url}/healthz"),
    )
    return part.wait()


def _loop(ground: Ground) -> Part:
    return start(
        "loop",
        [sys.executable, "-m", "benchmarks.events"],
        log=ground.folder / "loop.log",
        env={"BARE_DATABASE": ground.app_url},
        ready=lambda part: part.running,
    ).wait()


def _posting(ground: Ground, url: str) -> Work:
    """So many deliveries, one after the other over one connection."""
    bodies = [json.dumps(one).encode() for one in events.paid(ground, EVENTS)]
    return lambda: _post_all(url, bodies)


def _post_all(url: str, bodies: list[bytes]) -> None:
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)) as wire:
        for raw in bodies:
            headers = {"Content-Type": "application/json", "Stripe-Signature": _signature(raw)}
            wire.request("POST", "/webhooks/stripe", raw, headers)
            answer = wire.getresponse()
            said = answer.read()
            if (answer.status, said) != (200, b"received"):
                raise RuntimeError(f"{answer.status} {said!r}")


def _signature(raw: bytes) -> str:
    now = int(time.time())
    digest = hmac.new(SECRET.encode(), f"{now}.".encode() + raw, hashlib.sha256).hexdigest()
    return f"t={now},v1={digest}"


_WAITING = "select 1 from webhook_events where state = 'processing' limit 1"
