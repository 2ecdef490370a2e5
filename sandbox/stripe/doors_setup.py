"""Doors for failures, time and a look at what is held."""

from typing import Any

from sandbox.stripe import time_passing
from sandbox.stripe.bench import Bench
from sandbox.stripe.world import Obj

_EPOCH = 1_000_000_000
"""No amount is as large, and every second of this century is larger."""


def add_fault(bench: Bench, given: Obj) -> Any:
    bench.api.faults.add(given)
    return bench.api.faults.as_rows()


def list_faults(bench: Bench, given: Obj) -> Any:
    return {"down": bench.api.faults.down, "faults": bench.api.faults.as_rows()}


def clear_faults(bench: Bench, given: Obj) -> Any:
    bench.api.faults.clear()
    return {}


def set_down(bench: Bench, given: Obj) -> Any:
    bench.api.faults.down = bool(given["down"])
    return {"down": bench.api.faults.down}


def set_listening(bench: Bench, given: Obj) -> Any:
    bench.set_listening(bool(given["open"]))
    return {"open": bool(given["open"])}


def set_clock(bench: Bench, given: Obj) -> Any:
    """`advance` in seconds, or `set` to an epoch. What is due then happens before the answer."""
    world = bench.world
    seconds = int(given.get("advance", 0))
    if "set" in given:
        seconds += int(given["set"]) - world.now()
    time_passing.advance(world, seconds, bench.processing_seconds)
    world.save()
    return {"now": world.now()}


def age(bench: Bench, given: Obj) -> Any:
    """`seconds`: everything that is there happened so much earlier, and what is due by now happens.
    The clock stays, so that whoever looks on with a clock of their own sees the same time."""
    with bench.world.lock:
        for shelf in (*bench.world.objects.values(), bench.world.events, bench.world.private):
            _age(shelf, int(given["seconds"]))
    time_passing.tick(bench.world, bench.processing_seconds)
    bench.world.save()
    return {"now": bench.world.now()}


def _age(holder: Any, seconds: int) -> None:
    """In place, wherever a second of the epoch stands."""
    places = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for place, value in list(places):
        if isinstance(value, dict | list):
            _age(value, seconds)
        elif isinstance(value, int) and not isinstance(value, bool) and value > _EPOCH:
            holder[place] = value - seconds


def read_clock(bench: Bench, given: Obj) -> Any:
    return {"now": bench.world.now()}


# --- objects


def dump(bench: Bench, given: Obj) -> Any:
    """Every object by kind, oldest first."""
    with bench.world.lock:
        return {kind: list(shelf.values()) for kind, shelf in bench.world.objects.items()}


def dump_one(bench: Bench, given: Obj, object_id: str) -> Any:
    found = bench.world.find(object_id)
    if found is None:
        raise KeyError(object_id)
    return found


def counters(bench: Bench, given: Obj) -> Any:
    return {
        "creates": dict(bench.world.creates),
        "calls": len(bench.world.calls),
        "events": len(bench.world.events),
    }


def calls(bench: Bench, given: Obj) -> Any:
    return list(bench.world.calls)


def reset(bench: Bench, given: Obj) -> Any:
    with bench.world.lock:
        bench.world.clear()
        bench.api.faults.clear()
        bench.api.keys.clear()
        bench.webhooks.reset()
        bench.world.save()
    return {}
