"""A worker or a portal in a process of its own, which stops where a proof says and can be killed.

`python -m tests.proofs.child SOCKET` makes the portal once, says `ready`, and forks one process for
each connection to the socket: a fresh process costs a moment, not the seconds of its imports. The
forks share nothing: no connection is open before the fork. Orders and answers are lines of JSON.

The points are watched from outside the portal, as `Stops.stand` names them:

    before <sql>      a statement that contains <sql> is about to be sent
    after <sql>       it has been carried out, its transaction is open
    commit <sql>      the transaction that said <sql> is about to commit
    committed <sql>   it has committed, and its process knows
    call <edge.verb>  an external call is about to be made: payments, locks, mail or line
    called <edge.verb>  it has been answered
"""

import gc
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

from babel.dates import get_day_names
from flask import Flask
from sqlalchemy import event
from sqlalchemy.orm import configure_mappers
from werkzeug.serving import make_server

from app import create_app
from portal import clock, letters
from portal.db import ALONE, db
from portal.doorbell import KINDS
from portal.edges.channels import channels
from portal.jobs import drain, sweeps
from portal.jobs.house import House, open_house
from sandbox.watch import sqlstate, watch


class Line:
    """Both ways to the proof."""

    def __init__(self, wire: socket.socket) -> None:
        self._reading = wire.makefile("r")
        self._writing = wire.makefile("w")
        self._turn = threading.Lock()

    def say(self, word: str, **more: Any) -> None:
        with self._turn:
            print(json.dumps({"said": word, **more}), file=self._writing, flush=True)

    def hear(self) -> dict[str, Any]:
        """The next order. Without a proof there is nothing left to do."""
        told = self._reading.readline()
        if not told:
            os._exit(0)
        order: dict[str, Any] = json.loads(told)
        return order


class Stops:
    """The one point at which this process waits for its proof, each time it comes by."""

    def __init__(self, line: Line) -> None:
        self._line, self._point = line, ""
        self._go = threading.Event()

    def stand(self, point: str) -> None:
        self._point = point

    def go(self, *, again: bool) -> None:
        """On from here; `again` stops here the next time as well."""
        self._point = self._point if again else ""
        self._go.set()

    def reach(self, when: str, *what: str) -> None:
        wanted, _, part = self._point.partition(" ")
        if wanted == when and any(part in text for text in what):
            self._go.clear()
            self._line.say("at", point=self._point)
            self._go.wait()


def watch_database(app: Flask, stops: Stops, line: Line) -> None:
    with app.app_context():
        engine, alone = db.engine, db.engines[ALONE]
    ending = threading.local()

    def begin(wire: Any) -> None:
        wire.info["statements"] = []

    def before(_: Any, statement: str) -> None:
        stops.reach("before", statement)

    def after(wire: Any, statement: str) -> None:
        if wire.engine is alone:
            stops.reach("committed", statement)
            return
        wire.info.setdefault("statements", []).append(statement)
        stops.reach("after", statement)

    def commit(wire: Any) -> None:
        ending.statements = wire.info.get("statements", [])
        stops.reach("commit", *ending.statements)

    def fault(reason: Exception) -> None:
        line.say("fault", sqlstate=sqlstate(reason))

    watch(before, after, fault).start()
    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", commit)

    dialect: Any = engine.dialect
    do_commit = dialect.do_commit

    def committing(connection: Any) -> None:
        do_commit(connection)
        stops.reach("committed", *getattr(ending, "statements", []))

    dialect.do_commit = committing


def watch_edges(house: House, stops: Stops) -> None:
    """Every provider and channel that the house holds, by the names it has there."""
    for held in (house.providers, house.channels):
        for part in fields(held):
            if (edge := getattr(held, part.name)) is not None:
                watch_edge(edge, part.name, stops)


def watch_edge(edge: Any, name: str, stops: Stops) -> None:
    """Wrap every public method of an adapter."""
    kind = type(edge)
    for verb in [verb for verb in vars(kind) if not verb.startswith("_")]:
        setattr(kind, verb, _watched(getattr(kind, verb), f"{name}.{verb}", stops))


def _watched(call: Callable[..., Any], name: str, stops: Stops) -> Callable[..., Any]:
    def watched(*args: Any, **options: Any) -> Any:
        stops.reach("call", name)
        answer = call(*args, **options)
        stops.reach("called", name)
        return answer

    return watched


def serve(app: Flask, line: Line) -> None:
    """The portal on a port of its own."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    line.say("serving", url=f"http://127.0.0.1:{server.server_port}")


def work(kind: Any, line: Line) -> None:
    """One answered ring, as RQ would have it, or one look of a sweep by its name."""
    try:
        look = partial(drain.drain, kind) if kind in KINDS else getattr(sweeps, kind)
        line.say("done", count=look())
    except BaseException as fault:  # noqa: BLE001 (the proof hears of it)
        line.say("raised", fault=repr(fault))


class Home(NamedTuple):
    """What each process of a mode begins with."""

    app: Flask
    house: House


def run(wire: socket.socket, homes: Mapping[str, Home]) -> None:
    line = Line(wire)
    app, house = homes[line.hear()["mode"]]
    stops = Stops(line)
    watch_database(app, stops, line)
    watch_edges(house, stops)
    open_house(house)
    line.say("ready", pid=os.getpid())
    while True:
        order = line.hear()
        match order["order"]:
            case "stand":
                stops.stand(order["point"])
            case "go":
                stops.go(again=order["again"])
            case "serve":
                serve(app, line)
            case "tell":
                line.say("told")
            case "drain":
                threading.Thread(target=work, args=(order["kind"], line), daemon=True).start()


def load() -> dict[str, Home]:
    """The portal in both modes, and the providers' kits, made once. No connection stays open."""
    homes = {}
    for mode in ("queued", "inline"):
        os.environ["WEBHOOK_MODE"] = mode
        app = create_app()
        config, held = app.extensions["monban.config"], app.extensions["monban.providers"]
        homes[mode] = Home(app, House(config, held, channels(config), context=app.app_context))
        with app.app_context():
            for engine in db.engines.values():
                engine.connect().close()
                engine.dispose()
    warm()
    return homes


def warm() -> None:
    """What every fork would otherwise do anew at its first statement and its first letter."""
    configure_mappers()
    for locale in ("ja", "en"):
        get_day_names(locale=locale)
        letters.write(
            letters.Facts(
                event_type="stay_created",
                locale=locale,
                house="",
                guest="",
                stay_code="",
                space="",
                plan=None,
                starts_at=clock.now(),
                ends_at=clock.now(),
                zone="Asia/Tokyo",
                currency="JPY",
                amount=1,
                fee=0,
                link="",
            )
        )
    gc.freeze()


def main(path: str, run: Callable[[socket.socket, Mapping[str, Home]], None] = run) -> None:
    """`run` is what each fork does with its end of the line; it ends with the process."""
    homes = load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the killed ones
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            wire, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                try:
                    run(wire, homes)
                finally:
                    os._exit(1)
            wire.close()


if __name__ == "__main__":
    main(sys.argv[1])
