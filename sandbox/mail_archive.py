"""What a mail sink keeps, told by HTTP in MailDev's words: GET /api/email, the newest first."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from sandbox.mail import MailSink, Received


class MailArchive:
    """`with MailArchive(sink) as archive:` and then `archive.url`. A mail is there as soon as the
    sink has taken it."""

    def __init__(self, sink: MailSink) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(sink))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(sink: MailSink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urlsplit(self.path)
            if where.path != "/api/email":
                self.send_error(404)
                return
            asked = parse_qs(where.query)
            skip, limit = (int(asked[name][0]) for name in ("skip", "limit"))
            kept = list(reversed(sink.kept))[skip : skip + limit]
            body = json.dumps([_row(one) for one in kept]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    return Handler


def _row(mail: Received) -> dict[str, Any]:
    """A mail's time is what its Date header says."""
    date = mail.message["Date"]
    taken: datetime = date.datetime if date else datetime.now(UTC)
    return {"time": taken.isoformat(), "headers": {"message-id": mail.message["Message-ID"]}}
