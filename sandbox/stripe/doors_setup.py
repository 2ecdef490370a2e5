"""Doors for failures, time and a look at what is held."""

from typing import Any

from sandbox.stripe import time_passing
from sandbox.stripe.bench import Bench
from sandbox.stripe.world import Obj


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
