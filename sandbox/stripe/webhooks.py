"""Webhook deliveries: one thread sends what is due, in order, and tries again until a 2xx."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.stripe import lists, signing
from sandbox.stripe.world import Obj, World

_TIMEOUT = 30


@dataclass(slots=True)
class Endpoint:
    url: str
    secret: str
    enabled_events: list[str] = field(default_factory=lambda: ["*"])
    account: str | None = None

    def wants(self, event_type: str) -> bool:
        return any(lists.matches(pattern, event_type) for pattern in self.enabled_events)


@dataclass(slots=True, eq=False)
class Delivery:
    """One event on its way to one endpoint. `status` is the last HTTP status, 0 for none."""

    number: int
    event_id: str
    event_type: str
    endpoint: Endpoint
    body: bytes
    due: float
    attempts: int = 0
    status: int | None = None
    answer: str = ""
    state: str = "waiting"

    def as_row(self) -> Obj:
        return {
            "number": self.number,
            "event": self.event_id,
            "type": self.event_type,
            "url": self.endpoint.url,
            "attempts": self.attempts,
            "status": self.status,
            "answer": self.answer,
            "state": self.state,
        }


@dataclass(slots=True)
class Settings:
    """`retry_delays` are real seconds: Stripe's hours, made short. `sign_with` is `clock` (the
    stand-in's) or `wall`. `duplicate` sends every event that many times more."""

    duplicate: int = 0
    delay: float = 0.0
    retry_delays: list[float] = field(default_factory=lambda: [0.5, 1, 2, 4, 8, 16, 32, 64])
    sign_with: str = "clock"


class Webhooks:
    def __init__(self, world: World, endpoints: list[Endpoint] | None = None) -> None:
        self._world = world
        self._given = endpoints or []
        self._wake = threading.Condition()
        self.reset()
        world.on_event = self.enqueue
        threading.Thread(target=self._run, name="webhooks", daemon=True).start()

    def reset(self) -> None:
        """Back to the endpoints of the command line, nothing queued."""
        with self._wake:
            self.endpoints = list(self._given)
            self.settings = Settings()
            self.deliveries: list[Delivery] = []
            self._waiting: list[Delivery] = []
            self._sending = 0
            self.paused = False

    # --- queueing

    def enqueue(self, event: Obj) -> None:
        for endpoint in self.endpoints:
            if endpoint.wants(event["type"]):
                body = encode(event, endpoint)
                for _ in range(1 + self.settings.duplicate):
                    self.queue(event["id"], event["type"], endpoint, body)

    def queue(self, event_id: str, event_type: str, endpoint: Endpoint, body: bytes) -> Delivery:
        with self._wake:
            delivery = self._new(event_id, event_type, endpoint, body)
            self._wake.notify_all()
        return delivery

    def _new(self, event_id: str, event_type: str, endpoint: Endpoint, body: bytes) -> Delivery:
        due = time.monotonic() + self.settings.delay
        number = len(self.deliveries) + 1
        delivery = Delivery(number, event_id, event_type, endpoint, body, due)
        self.deliveries.append(delivery)
        self._waiting.append(delivery)
        return delivery

    # --- what the control door turns

    def pause(self, paused: bool) -> None:
        with self._wake:
            self.paused = paused
            self._wake.notify_all()

    def reverse(self) -> int:
        """Turn the waiting queue round, so that the newest goes first. Returns its length."""
        with self._wake:
            self._waiting.reverse()
            return len(self._waiting)

    def flush(self, timeout: float, once: bool = False) -> list[Delivery]:
        """Send all that waits, without delays, even while paused. `once` leaves retries be."""
        deadline = time.monotonic() + timeout
        sent: list[Delivery] = []
        while time.monotonic() < deadline:
            delivery = self._take(everything=True, but_not=sent if once else [])
            if delivery is not None:
                self._send(delivery)
                sent.append(delivery)
            elif not self._sending:
                break
            else:
                time.sleep(0.01)
        return sent

    def send_now(
        self, endpoint: Endpoint, body: bytes, times: int = 1, concurrent: bool = False
    ) -> list[tuple[int, str]]:
        """Outside the queue, at once; `concurrent` starts them all together."""
        answers: list[tuple[int, str]] = []

        def once() -> None:
            answers.append(self.post(endpoint, body))

        threads = [threading.Thread(target=once, daemon=True) for _ in range(times)]
        for thread in threads:
            thread.start()
            if not concurrent:
                thread.join()
        for thread in threads:
            thread.join()
        return answers

    # --- the sending thread

    def _run(self) -> None:
        while True:
            delivery = self._take(everything=False)
            if delivery is not None:
                self._send(delivery)
                continue
            with self._wake:
                self._wake.wait(timeout=0.1)

    def _take(self, everything: bool, but_not: Sequence[Delivery] = ()) -> Delivery | None:
        """Claim the next delivery. `everything` looks past pause and delay."""
        with self._wake:
            if self.paused and not everything:
                return None
            for delivery in self._waiting:
                due = everything or delivery.due <= time.monotonic()
                if due and delivery not in but_not:
                    self._waiting.remove(delivery)
                    self._sending += 1
                    delivery.state = "sending"
                    return delivery
        return None

    def _send(self, delivery: Delivery) -> None:
        status, answer = self.post(delivery.endpoint, delivery.body)
        with self._wake:
            self._sending = max(0, self._sending - 1)
            delivery.attempts += 1
            delivery.status, delivery.answer = status, answer
            self._settle(delivery)

    def _settle(self, delivery: Delivery) -> None:
        delays = self.settings.retry_delays
        if delivery.status is not None and 200 <= delivery.status < 300:
            delivery.state = "delivered"
        elif delivery.attempts > len(delays):
            delivery.state = "given_up"
        elif delivery in self.deliveries:
            # Gone from the list means that a reset came while it was on its way.
            delivery.state = "waiting"
            delivery.due = time.monotonic() + delays[delivery.attempts - 1]
            self._waiting.append(delivery)

    def post(
        self, endpoint: Endpoint, body: bytes, headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """(HTTP status, start of the answer); status 0 when nobody answered."""
        moment = self._world.now() if self.settings.sign_with == "clock" else int(time.time())
        signature = signing.header(body, endpoint.secret, moment)
        return _post(
            endpoint.url,
            body,
            {
                "Content-Type": "application/json; charset=utf-8",
                "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
                "Stripe-Signature": signature,
                **(headers or {}),
            },
        )


def encode(event: Obj, endpoint: Endpoint) -> bytes:
    """Stripe's own layout: two spaces, raw UTF-8. A connected account is named when there is."""
    shown: dict[str, Any] = dict(event)
    if endpoint.account:
        shown["account"] = endpoint.account
    return json.dumps(shown, indent=2, ensure_ascii=False).encode()


def _post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Redirects are not followed: to Stripe a 3xx is a failure."""
    parts = urlsplit(url)
    make: Callable[..., http.client.HTTPConnection] = (
        http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    )
    connection = make(parts.hostname, parts.port, timeout=_TIMEOUT)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target or "/", body, headers)
        response = connection.getresponse()
        return response.status, response.read(500).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, type(error).__name__
    finally:
        connection.close()
