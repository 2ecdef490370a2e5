"""The app behind a real server, in a thread of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

from flask import Flask
from werkzeug.serving import make_server


@dataclass(frozen=True)
class Served:
    url: str


@contextmanager
def serve(app: Flask) -> Iterator[Served]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
