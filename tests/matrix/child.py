"""The process that acts, and the one that heals; see `tests.proofs.child` for how it is forked.

`python -m tests.matrix.child SOCKET`. An act says `did` with what it answered and the points that
it passed, or `dies` at one of them. Its scene's facts come pickled: it is our own test that sends.
"""

import os
import pickle
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from portal.doorbell import KINDS
from portal.jobs import drain, sweeps
from portal.jobs.house import at_work, open_house
from portal.jobs.reconcile import reconcile
from portal.outcome import Applied, Conflict, Noop, Refused
from portal.verbs import divergences, messages
from tests.matrix.act import Act, Doing
from tests.matrix.acts import ACTS
from tests.matrix.points import Entered, Points, watch_doorbell
from tests.proofs.child import Home, Line, main, watch_database, watch_edges

BY_NAME = {act.name: act for act in ACTS}


def round_of_work(_: Doing) -> int:
    """What the sweeps ring for, each kind once."""
    return sum(drain.drain(kind) for kind in KINDS)


def compare(_: Doing) -> str:
    """'' when the books and the far side agree."""
    with at_work() as house:
        told = reconcile(house.providers, settle=0)
    return "" if (told.open, told.unread) == (0, 0) else repr(told)


# What a worker and a person of staff do until nothing is left to do.
CHORES: dict[str, Any] = {
    "round": round_of_work,
    "catch_up": lambda _: sweeps.catch_up(),
    "compare": compare,
    "resend": lambda do: do.form(messages.resend, do["message"]),
    "drop": lambda do: do.form(messages.drop, do["message"]),
    "resolve": lambda do: do.at_desk(divergences.resolve, do["divergence"]),
}


def work_of(name: str) -> Any:
    kind, _, act = name.partition(" ")
    if kind in CHORES:
        return CHORES[kind]
    wanted: Act = BY_NAME[act]
    return {"run": wanted.run, "twin": wanted.twin}[kind]


def say(answer: Any) -> str:
    """What the person, the provider or the worker hears."""
    if isinstance(answer, Applied | Noop | Conflict | Refused):
        return f"{answer.status} {answer.code}"
    return str(answer)


def run(wire: socket.socket, homes: Mapping[str, Home]) -> None:
    os.environ["PGAPPNAME"] = f"matrix {os.getpid()}"
    line = Line(wire)
    app, house = homes[line.hear()["mode"]]
    points, entered = Points(line), Entered()
    watch_database(app, points, line)
    watch_edges(house, points)
    watch_doorbell(points)
    open_house(house)
    line.say("ready", pid=os.getpid())
    while True:
        order = line.hear()
        doing = Doing(app, house, pickle.loads(bytes.fromhex(order["given"])))
        with points.counting(order["fatal"]), entered.looking() if order["look"] else nullcontext():
            try:
                answer = say(work_of(order["do"])(doing))
            except Exception as fault:  # noqa: BLE001 (the proof hears of it)
                answer = f"raised {fault!r}"
        line.say(
            "did",
            answer=answer,
            points=points.passed if order["look"] else [],
            entered=sorted(entered.functions),
            applied=sorted(entered.applied),
        )


if __name__ == "__main__":
    main(sys.argv[1], run)
