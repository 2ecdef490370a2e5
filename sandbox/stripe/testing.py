"""The stand-in as a real process for tests, and a small client for its control door."""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import stripe

_ROOT = Path(__file__).resolve().parents[2]
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(slots=True)
class StandIn:
    """`base` is the API's address, `control` the port that always answers `/_control/`."""

    base: str
    control: str
    process: "subprocess.Popen[str]"

    def call(self, method: str, door: str, body: Any = None) -> Any:
        """`door` without its `/_control/`. Raises HTTPError when the door refuses."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.control}/_control/{door}",
            data=data,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with _OPENER.open(request, timeout=60) as response:
            return json.loads(response.read())

    def post(self, door: str, **body: Any) -> Any:
        return self.call("POST", door, body)

    def get(self, door: str) -> Any:
        return self.call("GET", door)

    def delete(self, door: str) -> Any:
        return self.call("DELETE", door)

    def fault(self, mode: str, path: str = ".*", method: str = "POST", **more: Any) -> None:
        """The next call that matches goes wrong; see sandbox/stripe/faults.py for the modes."""
        self.post("faults", mode=mode, path=path, method=method, **more)

    def creates(self, kind: str) -> int:
        """How many objects of this kind were ever written."""
        return int(self.get("counters")["creates"].get(kind, 0))

    def calls(self, path: str, method: str = "POST") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.get("calls")
        return [row for row in rows if row["path"] == path and row["method"] == method]

    def wait_delivered(self, seconds: float = 10) -> list[dict[str, Any]]:
        """Until nothing waits any more; raises TimeoutError when that takes too long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            rows: list[dict[str, Any]] = self.get("webhooks/deliveries")
            if all(row["state"] in ("delivered", "given_up") for row in rows):
                return rows
            time.sleep(0.02)
        raise TimeoutError("webhooks still waiting")


@contextmanager
def running(*options: str) -> Iterator[StandIn]:
    """A fresh process, ended on the way out."""
    command = [sys.executable, "-m", "sandbox.stripe", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        base = process.stdout.readline().removeprefix("listening ").strip()
        control = process.stdout.readline().removeprefix("control ").strip()
        if not base.startswith("http"):
            raise RuntimeError(f"the stand-in did not start: {base!r}")
        yield StandIn(base, control, process)
    finally:
        process.terminate()
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()


@dataclass(slots=True)
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Receiver:
    """A webhook endpoint that keeps what it gets. `answers` are statuses to give first."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received(dict(self.headers.items()), body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/webhooks/stripe"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def types(self) -> list[str]:
        return [str(received.event["type"]) for received in self.received]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def client(base: str, api_key: str = "sk_test_monban", read_seconds: float = 5.0) -> Any:
    """The official SDK's client, pointed at `base`, with no retries of its own."""
    return stripe.StripeClient(
        api_key,
        base_addresses={"api": base},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=(3.0, read_seconds)),
    ).v1
