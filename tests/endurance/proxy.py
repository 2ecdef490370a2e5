"""A door before PostgreSQL that can lose an answer: it forwards a COMMIT, or a statement that is a
transaction of its own, hears that it was carried out, and cuts the connection instead of saying so.

It reads as much of the protocol as that needs: what each transaction has said, and its end.
https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
IDLE = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery, no transaction open: the last thing the server says after a commit."""


class Proxy:
    """`with Proxy(folder, upstream) as proxy:`; connect with `host=proxy.folder`."""

    def __init__(self, folder: Path, upstream: Path) -> None:
        self.folder, self._upstream = folder, upstream
        self.lost = 0
        self._part: str | None = None
        self._turn = threading.Lock()
        self._door = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> "Proxy":
        self.folder.mkdir(exist_ok=True)
        self._door.bind(str(self.folder / SOCKET))
        self._door.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    @contextlib.contextmanager
    def losing(self, part: str) -> Iterator[None]:
        """The answer to the next commit of a transaction that said `part` is lost; it must come."""
        before = self.lost
        with self._turn:
            self._part = part
        yield
        with self._turn:
            self._part = None
        assert self.lost == before + 1, f"no transaction that said {part!r} was committed"

    def wants(self, said: list[str]) -> bool:
        """Whether this commit is the one; it is counted off."""
        with self._turn:
            part = self._part
            if part is None or not any(part in sql for sql in said):
                return False
            self._part = None
            self.lost += 1
            return True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._upstream / SOCKET))
            Conversation(self, client, server).run()


class Conversation:
    """One connection."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._waiting = b""
        self._started = False
        self._prepared: dict[str, str] = {}
        self._said: list[str] = []
        self._begun = False

    def run(self) -> None:
        while True:
            readable, _, _ = select.select([self._client, self._server], [], [])
            if self._server in readable:
                heard = self._server.recv(65536)
                if not heard:
                    return
                self._client.sendall(heard)
            if self._client in readable:
                heard = self._client.recv(65536)
                if not heard or not self._forward(heard):
                    return

    def _forward(self, heard: bytes) -> bool:
        """False when this was the commit whose answer is lost."""
        self._waiting += heard
        commits = [self._commits(kind, body) for kind, body in self._messages()]
        self._server.sendall(heard)
        if not (any(commits) and self._proxy.wants(self._said)):
            return True
        answer = b""
        while not answer.endswith(IDLE):
            answer += self._server.recv(65536)
        assert b"E" not in _kinds(answer), "the commit itself was refused"
        return False

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Whole messages as (type, body). The first one of a connection has no type."""
        while True:
            head = 4 if not self._started else 5
            if len(self._waiting) < head:
                return
            (size,) = struct.unpack("!I", self._waiting[head - 4 : head])
            end = head - 4 + size
            if len(self._waiting) < end:
                return
            kind = self._waiting[:1] if self._started else b""
            body, self._waiting = self._waiting[head:end], self._waiting[end:]
            self._started = True
            yield kind, body

    def _commits(self, kind: bytes, body: bytes) -> bool:
        """Note what is said; True when it is committed by that."""
        if kind == b"P":
            name, sql = body.split(b"\0")[:2]
            self._prepared[name.decode()] = sql.decode()
        elif kind == b"B":
            if not self._begun:
                self._said = []
            self._said.append(self._prepared.get(body.split(b"\0")[1].decode(), ""))
        elif kind == b"S":
            return not self._begun
        elif kind == b"Q":
            sql = body.rstrip(b"\0").decode()
            if sql.startswith("BEGIN"):
                self._said, self._begun = [], True
            self._said.append(sql)
            if sql in ("COMMIT", "ROLLBACK"):
                self._begun = False
            return sql == "COMMIT"
        return False


def _kinds(answer: bytes) -> list[bytes]:
    """The types of whole messages, one after the other."""
    kinds, at = [], 0
    while at < len(answer):
        kinds.append(answer[at : at + 1])
        (size,) = struct.unpack("!I", answer[at + 1 : at + 5])
        at += 1 + size
    return kinds
