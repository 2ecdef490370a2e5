"""Signed webhooks as Seam sends them: Svix headers, the event as the body, retries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import aiohttp
from standardwebhooks import Webhook

DELAYS = (0.2, 0.5, 1, 2, 4, 8, 15, 30, 60)  # seconds before each further attempt


@dataclass
class Delivery:
    """One event on its way to the portal. `statuses`: one per attempt, 0 for no answer."""

    event: dict[str, Any]
    message_id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")
    statuses: list[int] = field(default_factory=list)
    state: str = "pending"

    def seen(self) -> dict[str, Any]:
        return {
            "event_id": self.event["event_id"],
            "event_type": self.event["event_type"],
            "access_code_id": self.event.get("access_code_id"),
            "statuses": self.statuses,
            "state": self.state,
        }


class Webhooks:
    """`mode`: deliver (at once), hold (until released), drop (lost for ever)."""

    def __init__(self, url: str | None, secret: str | None, now: Callable[[], datetime]) -> None:
        self.url, self.secret, self.now = url, secret, now
        if secret:
            Webhook(secret)  # a secret that cannot sign is found at the start
        self.mode = "deliver"
        self.deliveries: list[Delivery] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        await self.forget()
        if self.session is not None:
            await self.session.close()

    async def forget(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.deliveries.clear()
        self.mode = "deliver"

    def send(self, event: dict[str, Any]) -> None:
        delivery = Delivery(event)
        self.deliveries.append(delivery)
        if not self.url or not self.secret or self.mode == "drop":
            delivery.state = "dropped"
        elif self.mode == "hold":
            delivery.state = "held"
        else:
            self._begin(delivery)

    def release(self, *, backwards: bool = False) -> None:
        """Let go what was held; backwards, as a network that reorders."""
        held = [delivery for delivery in self.deliveries if delivery.state == "held"]
        task = asyncio.create_task(self._in_order(held[::-1] if backwards else held))
        self._keep(task)

    def resend(self, event_id: str) -> int:
        """Deliver an event once more, under its first message id. Returns how many matched."""
        again = [d for d in self.deliveries if d.event["event_id"] == event_id]
        for delivery in again:
            self._begin(delivery)
        return len(again)

    async def _in_order(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            await self._deliver(delivery)

    def _begin(self, delivery: Delivery) -> None:
        self._keep(asyncio.create_task(self._deliver(delivery)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        delivery.state = "pending"
        for delay in (*DELAYS, None):
            status = await self._attempt(delivery)
            delivery.statuses.append(status)
            if 200 <= status < 300:
                delivery.state = "delivered"
                return
            if delay is not None:
                await asyncio.sleep(delay)
        delivery.state = "given up"

    async def _attempt(self, delivery: Delivery) -> int:
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15))
        body = json.dumps(delivery.event)
        headers = signed(self.secret or "", delivery.message_id, self.now(), body)
        try:
            async with self.session.post(self.url or "", data=body, headers=headers) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return 0


def signed(secret: str, message_id: str, at: datetime, body: str) -> dict[str, str]:
    """The headers Seam sends through Svix, for a body that is signed as it is."""
    at = at.astimezone(UTC).replace(microsecond=0)
    return {
        "Content-Type": "application/json",
        "svix-id": message_id,
        "svix-timestamp": str(int(at.timestamp())),
        "svix-signature": Webhook(secret).sign(message_id, at, body),
    }
