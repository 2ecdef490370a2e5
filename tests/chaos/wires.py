"""Cuts between the portal and PostgreSQL: at a statement, or at COMMIT, its answer kept back."""

import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from flask import Flask
from sqlalchemy import Engine, event

from portal.db import db
from sandbox.seam.running import eventually
from sandbox.watch import watch
from tests.outside import Owner

PATIENCE = 30

Moment = Literal["before", "after"]


def engines_of(app: Flask) -> list[Engine]:
    with app.app_context():
        return list(db.engines.values())


class Cuts:
    """Ends the server's side of our connection just before the statement whose turn it is."""

    def __init__(self, owner: Owner, at: int | None) -> None:
        self.owner, self.at, self.said = owner, at, 0

    def __call__(self, wire: Any, *_: Any) -> None:
        if self.said == self.at:
            pid = wire.connection.dbapi_connection.info.backend_pid
            self.owner.one("select pg_terminate_backend(%s)", pid)
            gone = "select not exists (select 1 from pg_stat_activity where pid = %s)"
            assert eventually(lambda: self.owner.one(gone, pid), PATIENCE)
        self.said += 1


@contextmanager
def cut(app: Flask, owner: Owner, at: int | None) -> Iterator[Cuts]:
    """Cut at statement number `at`; None only counts. The cut is one: a retry goes through."""
    cuts = Cuts(owner, at)
    with watch(before=cuts):
        yield cuts


class Proxy:
    """A socket before PostgreSQL's. It reads along, and at one COMMIT cuts both ways: before the
    server has heard it, or after the server has carried it out and before we hear of that."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._folder = tempfile.TemporaryDirectory(prefix="monban-wire-")
        self.host = self._folder.name
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(Path(self.host) / ".s.PGSQL.5432"))
        self._door.listen()
        self.commits = 0
        self._at: int | None = None
        self._when: Moment = "before"
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self, at: int | None, when: Moment = "before") -> None:
        """At the COMMIT number `at` from now."""
        self.commits, self._at, self._when = 0, at, when

    def close(self) -> None:
        self._door.close()
        self._folder.cleanup()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self._door.accept()
                threading.Thread(target=self._pass_on, args=(ours,), daemon=True).start()

    def _pass_on(self, ours: socket.socket) -> None:
        theirs = socket.socket(socket.AF_UNIX)
        theirs.connect(str(Path(self._server) / ".s.PGSQL.5432"))
        silent = threading.Event()
        answered = threading.Event()

        def back() -> None:
            with suppress(OSError):
                while heard := theirs.recv(65536):
                    answered.set()
                    if not silent.is_set():
                        ours.sendall(heard)
            answered.set()
            _close(ours)

        threading.Thread(target=back, daemon=True).start()
        with suppress(OSError):
            for message in _messages(ours):
                if self._is_the_one(message):
                    if self._when == "after":
                        silent.set()
                        answered.clear()
                        theirs.sendall(message)
                        answered.wait(PATIENCE)
                    break
                theirs.sendall(message)
        _close(theirs)
        _close(ours)

    def _is_the_one(self, message: bytes) -> bool:
        if message[:1] != b"Q" or message[5:].rstrip(b"\0").upper() != b"COMMIT":
            return False
        self.commits += 1
        return self.commits - 1 == self._at


def _messages(wire: socket.socket) -> Iterator[bytes]:
    """What a client says, message by message. The first one has no type."""
    read = wire.makefile("rb")
    kind = b""
    while head := read.read(4):
        (length,) = struct.unpack("!I", head)
        yield kind + head + read.read(length - 4)
        kind = read.read(1)
        if not kind:
            return


def _close(wire: socket.socket) -> None:
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
    wire.close()


@contextmanager
def through(host: str, app: Flask) -> Iterator[None]:
    """The app finds PostgreSQL's socket in this folder meanwhile."""
    engines = engines_of(app)

    def redirect(_: Any, __: Any, ___: Any, named: dict[str, Any]) -> None:
        named["host"] = host

    for engine in engines:
        event.listen(engine, "do_connect", redirect)
        engine.dispose()
    try:
        yield
    finally:
        for engine in engines:
            event.remove(engine, "do_connect", redirect)
            engine.dispose()


def counted(run: Callable[[], object], app: Flask, owner: Owner) -> int:
    """How many statements it takes when all goes well."""
    with cut(app, owner, None) as cuts:
        run()
    return cuts.said
