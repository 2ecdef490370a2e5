"""Everything the stand-in knows: objects, events, clock, counters. One lock guards it all."""

import copy
import json
import os
import secrets
import string
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.stripe import API_VERSION
from sandbox.stripe.errors import missing

Obj = dict[str, Any]

_ALPHABET = string.ascii_letters + string.digits
_MOST_CALLS = 10_000
_SAVED = ("objects", "private", "events", "clock_offset", "creates", "idempotency")


class World:
    """`private` holds what Stripe knows and never shows, such as how a test card behaves.

    `generation` counts resets, so that a call which began before one leaves nothing after it.
    """

    def __init__(self, state_file: Path | None = None) -> None:
        self.lock = threading.RLock()
        self.base = ""
        self.state_file = state_file
        self.on_event: Callable[[Obj], None] = lambda event: None
        self.request: Obj | None = None
        self.generation = 0
        self.clear()
        if state_file is not None and state_file.exists():
            self._load(json.loads(state_file.read_text("utf-8")))

    def clear(self) -> None:
        self.objects: dict[str, dict[str, Obj]] = {}
        self.private: dict[str, Any] = {}
        self.events: dict[str, Obj] = {}
        self.idempotency: dict[str, Obj] = {}
        self.clock_offset = 0
        self.creates: Counter[str] = Counter()
        self.calls: deque[Obj] = deque(maxlen=_MOST_CALLS)
        self.generation = self.generation + 1

    # --- the clock

    def now(self) -> int:
        """Seconds since the epoch, by the clock that the tests move."""
        return int(time.time()) + self.clock_offset

    # --- objects

    def new_id(self, prefix: str, length: int = 24) -> str:
        return prefix + "_" + "".join(secrets.choice(_ALPHABET) for _ in range(length))

    def add(self, obj: Obj) -> Obj:
        self.objects.setdefault(obj["object"], {})[obj["id"]] = obj
        self.creates[obj["object"]] += 1
        return obj

    def get(self, kind: str, object_id: str, param: str = "id") -> Obj:
        """The live object, not a copy. Raises Stripe's 404 when there is none."""
        found = self.objects.get(kind, {}).get(object_id)
        if found is None:
            raise missing(kind, object_id, param)
        return found

    def find(self, object_id: str) -> Obj | None:
        for shelf in self.objects.values():
            if object_id in shelf:
                return shelf[object_id]
        return self.events.get(object_id)

    def newest_first(self, kind: str) -> list[Obj]:
        shelf = self.events if kind == "event" else self.objects.get(kind, {})
        return list(reversed(shelf.values()))

    # --- events

    def emit(self, kind: str, obj: Obj, before: Obj | None = None) -> Obj:
        """Record what happened to `obj` and hand it to the webhooks.

        `before` is the object's earlier snapshot: an update names what it changed.
        """
        data: Obj = {"object": copy.deepcopy(obj)}
        if before is not None:
            data["previous_attributes"] = {
                name: old for name, old in before.items() if obj.get(name) != old
            }
        return self.record_event(kind, data)

    def record_event(self, kind: str, data: Obj) -> Obj:
        event: Obj = {
            "id": self.new_id("evt"),
            "object": "event",
            "api_version": API_VERSION,
            "created": self.now(),
            "data": data,
            "livemode": False,
            "pending_webhooks": 1,
            "request": self.request or {"id": None, "idempotency_key": None},
            "type": kind,
        }
        self.events[event["id"]] = event
        self.on_event(event)
        return event

    @contextmanager
    def changing(self, obj: Obj, event: str) -> Iterator[None]:
        """Emit `event` with previous_attributes, if the block changed `obj` at all."""
        before = copy.deepcopy(obj)
        yield
        if before != obj:
            self.emit(event, obj, before)

    # --- the state file

    def save(self) -> None:
        """Whole or not at all, so that a killed stand-in restarts with a readable file."""
        if self.state_file is None:
            return
        with self.lock:
            text = json.dumps({name: getattr(self, name) for name in _SAVED})
        beside = self.state_file.with_name(self.state_file.name + ".new")
        beside.write_text(text, "utf-8")
        os.replace(beside, self.state_file)

    def _load(self, saved: Obj) -> None:
        for name in _SAVED:
            setattr(self, name, saved[name])
        self.creates = Counter(self.creates)
