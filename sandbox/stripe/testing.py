"""The stand-in as a real process for tests, and a small client for its control door."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
