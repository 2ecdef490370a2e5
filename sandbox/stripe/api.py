"""One call to /v1: key, fault, idempotency, work, answer."""

import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.stripe import expand, params, routes
from sandbox.stripe.errors import ApiError, server_error
from sandbox.stripe.faults import Fault, Faults
from sandbox.stripe.idempotency import Keys
from sandbox.stripe.world import Obj, World


class CutConnection(Exception):
    """End the connection without a word. `reset` sends a TCP reset instead of a quiet end."""

    def __init__(self, reset: bool = False) -> None:
        super().__init__("connection cut on request")
        self.reset = reset


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Done:
    """`keep`: Stripe would replay this answer for its key. `cut`: nobody gets to hear it."""

    reply: Reply
    keep: bool
    cut: bool = False


@dataclass(slots=True)
class Call:
    method: str
    path: str
    query: str
    body: str
    headers: Mapping[str, str]
    request_id: str

    @property
    def key(self) -> str | None:
        """Only a POST has one; Stripe ignores it elsewhere."""
        return self.headers.get("Idempotency-Key") if self.method == "POST" else None


class Api:
    def __init__(self, world: World, faults: Faults, api_keys: tuple[str, ...] = ()) -> None:
        self.world = world
        self.faults = faults
        self.keys = Keys(world)
        self._api_keys = api_keys

    def answer(self, call: Call) -> Reply:
        """Raises CutConnection where the caller must get nothing."""
        fault = self.faults.take(call.method, call.path)
        note = self._note(call, fault)
        if fault is not None and fault.mode == "refuse":
            raise CutConnection
        try:
            self._authenticate(call)
            reply = self._limited(fault) or self._once(call, fault)
        except ApiError as error:
            reply = _error_reply(error)
        except CutConnection:
            if fault is not None and fault.mode == "stall":
                note["status"] = 0  # the silence is over
            raise
        except Exception:
            # A fault of the stand-in itself: seen on stderr, and by the caller as Stripe's 500.
            traceback.print_exc()
            reply = _error_reply(server_error())
        note["status"] = reply.status
        note["replayed"] = "Idempotent-Replayed" in reply.headers
        reply.headers["Request-Id"] = call.request_id
        return reply

    def _note(self, call: Call, fault: Fault | None) -> Obj:
        """What was asked, for tests that count and compare keys."""
        note: Obj = {
            "method": call.method,
            "path": call.path,
            "params": params.decode(call.body or call.query),
            "idempotency_key": call.key,
            "request_id": call.request_id,
            "fault": fault.mode if fault else None,
            "status": None,
            "replayed": False,
        }
        self.world.calls.append(note)
        return note

    def _authenticate(self, call: Call) -> None:
        scheme, _, key = call.headers.get("Authorization", "").partition(" ")
        known = (
            key in self._api_keys if self._api_keys else key.startswith(("sk_test_", "rk_test_"))
        )
        if scheme.lower() != "bearer" or not known:
            shown = f"{key[:8]}{'*' * 8}{key[-4:]}" if len(key) > 16 else "*" * len(key)
            message = f"Invalid API Key provided: {shown}"
            raise ApiError(401, "invalid_request_error", message)

    def _limited(self, fault: Fault | None) -> Reply | None:
        if fault is None or fault.mode != "rate_limit":
            return None
        message = "Request rate limit exceeded."
        reply = _error_reply(ApiError(429, "invalid_request_error", message, code="rate_limit"))
        if fault.retry_after is not None:
            reply.headers["Retry-After"] = str(fault.retry_after)
        return reply

    def _once(self, call: Call, fault: Fault | None) -> Reply:
        """At most one execution a key; a repeat gets the first answer again."""
        if call.key is None:
            return _deliver(self._work(call, fault))
        stored = self.keys.begin(call.key, call.path, _canonical(call.body))
        if stored is not None:
            return _replay(stored)
        try:
            done = self._work(call, fault)
        except BaseException:
            self.keys.abandon(call.key)
            raise
        if done.keep:
            answer = done.reply.body.decode()
            self.keys.finish(call.key, done.reply.status, answer, call.request_id)
            self.world.save()
        else:
            self.keys.abandon(call.key)
        return _deliver(done)

    def _work(self, call: Call, fault: Fault | None) -> Done:
        mode = fault.mode if fault else None
        generation = self.world.generation
        if fault and mode == "stall" and fault.when != "after":
            time.sleep(fault.seconds)
            if fault.when == "instead":
                raise CutConnection
        if generation != self.world.generation:
            raise CutConnection
        if fault and mode == "error_500_before":
            return Done(_error_reply(server_error()), keep=bool(fault.stored))
        done = self._execute(call)
        if fault and mode == "stall" and fault.when == "after":
            time.sleep(fault.seconds)
        if fault and mode == "error_500_after":
            return Done(_error_reply(server_error()), keep=fault.stored is not False)
        done.cut = mode == "do_then_drop"
        return done

    def _execute(self, call: Call) -> Done:
        with self.world.lock:
            self.world.request = {"id": call.request_id, "idempotency_key": call.key}
            try:
                found, ids = routes.find(call.method, call.path)
                given = params.decode(call.body or call.query)
                result = found(self.world, given, *ids)
                return Done(_json_reply(200, expand.render(self.world, result, given)), keep=True)
            except ApiError as error:
                return Done(_error_reply(error), keep=error.executed)
            finally:
                self.world.request = None
                if call.method != "GET":
                    self.world.save()


def _deliver(done: Done) -> Reply:
    if done.cut:
        raise CutConnection(reset=True)
    return done.reply


def _canonical(body: str) -> str:
    """The same parameters in another order are the same parameters."""
    return json.dumps(params.decode(body), sort_keys=True)


def _replay(stored: Obj) -> Reply:
    headers = {"Idempotent-Replayed": "true", "Original-Request": stored["request_id"]}
    return Reply(stored["status"], stored["answer"].encode(), headers=headers)


def _json_reply(status: int, body: Any) -> Reply:
    return Reply(status, json.dumps(body, indent=2, ensure_ascii=False).encode())


def _error_reply(error: ApiError) -> Reply:
    return _json_reply(error.status, error.body())
