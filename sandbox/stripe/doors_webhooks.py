"""Doors for webhooks: who gets them, in which order, how often, and bodies of one's own."""

import base64
from typing import Any

from sandbox.stripe.bench import Bench
from sandbox.stripe.webhooks import Endpoint, encode
from sandbox.stripe.world import Obj


def add_endpoint(bench: Bench, given: Obj) -> Any:
    """{"url", "secret", "enabled_events"?: ["*"], "account"?}"""
    bench.webhooks.endpoints.append(Endpoint(**given))
    return [{"url": e.url, "enabled_events": e.enabled_events} for e in bench.webhooks.endpoints]


def clear_endpoints(bench: Bench, given: Obj) -> Any:
    bench.webhooks.endpoints = []
    return []


def set_webhooks(bench: Bench, given: Obj) -> Any:
    """{"duplicate"?, "delay"?, "retry_delays"?, "sign_with"?, "paused"?}"""
    if "paused" in given:
        bench.webhooks.pause(bool(given.pop("paused")))
    for name, value in given.items():
        if not hasattr(bench.webhooks.settings, name):
            raise ValueError(f"no such setting: {name}")
        setattr(bench.webhooks.settings, name, value)
    return {"paused": bench.webhooks.paused}


def reverse(bench: Bench, given: Obj) -> Any:
    return {"waiting": bench.webhooks.reverse()}


def flush(bench: Bench, given: Obj) -> Any:
    """{"timeout"?: seconds, "once"?: true}: send all that waits now; `once` tries each once."""
    once = bool(given.get("once"))
    sent = bench.webhooks.flush(float(given.get("timeout", 30)), once)
    return [delivery.as_row() for delivery in sent]


def deliveries(bench: Bench, given: Obj) -> Any:
    return [delivery.as_row() for delivery in bench.webhooks.deliveries]


def redeliver(bench: Bench, given: Obj) -> Any:
    """{"event", "times"?: 1, "concurrent"?: false} → the answers of each endpoint, now."""
    event = bench.world.events[given["event"]]
    return _send_event(bench, event, int(given.get("times", 1)), bool(given.get("concurrent")))


def twin(bench: Bench, given: Obj) -> Any:
    """{"event"}: the same object again under a new event id, sent now."""
    original = bench.world.events[given["event"]]
    with bench.world.lock:
        event = {**original, "id": bench.world.new_id("evt")}
        bench.world.events[event["id"]] = event
    return {"event": event["id"], "answers": _send_event(bench, event, 1, False)}


def send(bench: Bench, given: Obj) -> Any:
    """A body of the test's own, signed, sent now to every endpoint.

    {"event": {…}} or {"raw_base64": "…"}; "secret"? signs with another secret;
    "signature"? replaces the whole header; "headers"? adds more.
    """
    raw = base64.b64decode(given["raw_base64"]) if "raw_base64" in given else None
    headers = dict(given.get("headers", {}))
    if "signature" in given:
        headers["Stripe-Signature"] = given["signature"]
    answers = []
    for endpoint in bench.webhooks.endpoints:
        body = raw if raw is not None else encode(given["event"], endpoint)
        secret = given.get("secret", endpoint.secret)
        target = Endpoint(endpoint.url, secret)
        status, answer = bench.webhooks.post(target, body, headers)
        answers.append({"url": endpoint.url, "status": status, "answer": answer})
    return {"answers": answers}


def record(bench: Bench, given: Obj) -> Any:
    """{"type", "object"}: an event of any type through the ordinary queue and events list."""
    with bench.world.lock:
        return bench.world.record_event(given["type"], {"object": given["object"]})


def _send_event(bench: Bench, event: Obj, times: int, concurrent: bool) -> list[Obj]:
    answers = []
    for endpoint in bench.webhooks.endpoints:
        body = encode(event, endpoint)
        for status, answer in bench.webhooks.send_now(endpoint, body, times, concurrent):
            answers.append({"url": endpoint.url, "status": status, "answer": answer})
    return answers
