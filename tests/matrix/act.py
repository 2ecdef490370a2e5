"""What the matrix kills: an act, the scene that stands before it, and its twin.

An act runs in a child process. `Doing` is what it has there: the house, and what the scene gave.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from flask import Flask

from portal.db import Actor, transaction
from portal.jobs import drain
from portal.jobs.house import House
from portal.verbs.desk import Desk
from tests.matrix.stage import Given, Stage
from tests.web.test_hooks_seam import signed
from tests.web.test_hooks_stripe import header


class Doing:
    """In the child: the house that works there, and the scene's facts by name."""

    def __init__(self, app: Flask, house: House, given: Given) -> None:
        self.app, self.house, self.given = app, house, given

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    @property
    def actor(self) -> Actor:
        actor: Actor = self.given["actor"]
        return actor

    @property
    def desk(self) -> Desk:
        return self.house.desk(self.given["facility"])

    def form(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """A form as the web runs it: one verb, one transaction of its facility."""
        with self.house.context(), transaction(self.given["facility"]) as tx:
            return verb(tx, self.actor, *args, **more)

    def at_desk(self, verb: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """A form whose verb speaks with a provider and makes its own transactions."""
        with self.house.context():
            return verb(self.desk, self.actor, *args, **more)

    def version(self) -> int:
        """Of the stay, as a page shows it that is opened now."""
        with self.house.context(), transaction(self.given["facility"]) as tx:
            return int(tx.scalar("select version from stays where id = :id", id=self["stay"]))

    def post_event(self, raw: bytes) -> str:
        """The card provider delivers an event."""
        headers = {"Content-Type": "application/json", "Stripe-Signature": header(raw)}
        return self._post("/webhooks/stripe", raw, headers)

    def post_lock_event(self, raw: bytes) -> str:
        """The lock controller delivers an event."""
        return self._post("/webhooks/seam", raw, signed(raw))

    def _post(self, path: str, raw: bytes, headers: dict[str, str]) -> str:
        answer = self.app.test_client().post(path, data=raw, headers=headers)
        return f"{answer.status_code} {answer.text}"


Run = Callable[[Doing], Any]


@dataclass(frozen=True)
class Act:
    """`run` again is the same delivery again; `twin` is another delivery of the same wish or fact:
    another event id, a second person with a fresh page. None where a second wish is another one."""

    name: str
    scene: Callable[[Stage], Given]
    run: Run
    twin: Run | None = None
    mode: str = "queued"


def button(
    name: str, scene: Callable[[Stage], Given], verb: Callable[..., Any], *args: str, **more: Any
) -> Act:
    """A button on a stay's page, pressed with the version that its page showed. `args` name what
    the scene gives. The twin is a colleague's press on a fresh page."""

    def press(do: Doing, seen: int) -> Any:
        return do.form(verb, do["stay"], seen, *(do[one] for one in args), **more)

    return Act(name, scene, lambda do: press(do, do["seen"]), lambda do: press(do, do.version()))


def form(name: str, scene: Callable[[Stage], Given], verb: Callable[..., Any], *args: str) -> Act:
    """A form without a version; pressed again, or by a colleague, it says the same."""

    def press(do: Doing) -> Any:
        return do.form(verb, *(do[one] for one in args))

    return Act(name, scene, press, press)


def asking(name: str, scene: Callable[[Stage], Given], verb: Callable[..., Any], *args: str) -> Act:
    """A button whose verb speaks with a provider."""

    def press(do: Doing) -> Any:
        return do.at_desk(verb, *(do[one] for one in args))

    return Act(name, scene, press, press)


def job(name: str, scene: Callable[[Stage], Given], work: Callable[..., Any], *args: Any) -> Act:
    """A job of the worker, as RQ runs it."""
    return Act(name, scene, lambda do: work(*args))


def event(name: str, scene: Callable[[Stage], Given], mode: str = "queued") -> Act:
    """The card provider's event `raw` arrives and is applied, by a worker or in the request. Its
    twin has another id and says the same."""

    def hear(do: Doing, raw: bytes) -> Any:
        said = do.post_event(raw)
        return said if mode == "inline" else (said, drain.drain("inbox"))

    return Act(
        name, scene, lambda do: hear(do, do["raw"]), lambda do: hear(do, twin_of(do["raw"])), mode
    )


def twin_of(raw: bytes) -> bytes:
    return json.dumps({**json.loads(raw), "id": f"evt_{uuid4().hex}"}).encode()


def lock_event(key: str, code: str, kind: str = "access_code.set_on_device") -> bytes:
    """What the controller would send of a code."""
    told = {
        "event_id": key,
        "event_type": kind,
        "access_code_id": code,
        "created_at": datetime.now(UTC).isoformat(),
    }
    return json.dumps(told).encode()
