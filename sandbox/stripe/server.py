"""The HTTP server: keep-alive, a thread a connection, and really able to cut a line.

Its own handler, because a WSGI server always finishes an answer it has begun to owe.
"""

import json
import socket
import struct
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sandbox.stripe import control, pages
from sandbox.stripe.api import Api, Call, CutConnection, Reply
from sandbox.stripe.bench import Bench

_LARGEST_BODY = 1_000_000
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on with no time: closing sends a TCP reset."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "Server"

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_DELETE(self) -> None:
        self._respond()

    def _respond(self) -> None:
        bench = self.server.bench
        path = urlsplit(self.path).path
        for_control = path.startswith("/_control/")
        if not for_control and (bench.api.faults.down or not self.server.listening):
            self._cut(reset=False)
            return
        try:
            self._send(self._reply(bench, path))
        except CutConnection as cut:
            self._cut(cut.reset)
        except ConnectionError:
            # The caller hung up while we stalled; that is what stalls are for.
            self.close_connection = True

    def _reply(self, bench: Bench, path: str) -> Reply:
        body = self._body()
        if path.startswith("/_control/"):
            status, answer = control.answer(bench, self.command, path, body)
            return Reply(status, json.dumps(answer, ensure_ascii=False).encode())
        if path.startswith("/pay/"):
            return self._page(bench, path, body)
        return self._api(bench.api, path, body)

    def _api(self, api: Api, path: str, body: bytes) -> Reply:
        call = Call(
            method=self.command,
            path=path,
            query=urlsplit(self.path).query,
            body=body.decode("utf-8", "replace"),
            headers=dict(self.headers.items()),
            request_id=api.world.new_id("req", 14),
        )
        return api.answer(call)

    def _page(self, bench: Bench, path: str, body: bytes) -> Reply:
        fault = bench.api.faults.take(self.command, path)
        if fault is not None and fault.mode == "refuse":
            raise CutConnection
        fields = dict(parse_qsl(urlsplit(self.path).query))
        fields.update(parse_qsl(body.decode("utf-8", "replace")))
        shown = pages.answer(bench.world, self.command, path, fields)
        bench.world.save()
        reply = Reply(shown.status, shown.html.encode(), "text/html; charset=utf-8")
        reply.headers["Cache-Control"] = "no-store"
        if shown.location is not None:
            reply.headers["Location"] = shown.location
        return reply

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            raise CutConnection
        return self.rfile.read(int(length))

    def date_time_string(self, timestamp: float | None = None) -> str:
        """An answer's time is that of the world, as that of its events is."""
        return super().date_time_string(timestamp or self.server.bench.world.now())

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            # Unsaid, the caller would keep the connection and lose its next call on it.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply.body)

    def _cut(self, reset: bool) -> None:
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # http.server shuts the socket down politely before closing; detach and close first.
            socket.close(self.connection.detach())
        else:
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the calls are kept for `/_control/calls`."""


class Server(ThreadingHTTPServer):
    """One port. Once stopped it refuses connections, and those kept open are ended too."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, host: str, port: int, bench: Bench) -> None:
        self.bench = bench
        self.listening = True
        self._open: set[socket.socket] = set()
        super().__init__((host, port), Handler)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.listening = False
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is no news here; anything else is a bug and must be seen."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
