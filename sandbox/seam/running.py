"""A stand-in as a child process with its control door: what tests and `make run` hold on to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


class Running:
    """`with Running("sandbox.seam", "--device", "d1=Front") as seam: seam.url`"""

    def __init__(self, module: str, *arguments: str) -> None:
        self.command = [sys.executable, "-m", module, "--parent", str(os.getpid()), *arguments]
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> Self:
        self.process = subprocess.Popen(self.command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first = self.process.stdout.readline().split()
        if len(first) != 2 or first[0] != "listening":
            self.stop()
            raise RuntimeError(f"{' '.join(self.command)} did not start")
        self.url = first[1]
        return self

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def control(self, path: str, order: dict[str, Any] | None = None, method: str = "") -> Any:
        """GET /_control/<path>, or POST when there is an order. Returns the JSON answer."""
        request = urllib.request.Request(
            f"{self.url}/_control/{path}",
            data=None if order is None else json.dumps(order).encode(),
            headers={"Content-Type": "application/json"},
            method=method or ("GET" if order is None else "POST"),
        )
        with self._opener().open(request, timeout=20) as answer:
            return json.load(answer)

    @staticmethod
    def _opener() -> urllib.request.OpenerDirector:
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fault(self, mode: str, path: str = ".*", **more: Any) -> None:
        """Spoil the next request whose path contains `path`: see sandbox.faults.MODES."""
        self.control("faults", {"mode": mode, "path": path, **more})

    def reset(self) -> None:
        self.control("reset", {})

    def counts(self) -> dict[str, int]:
        counted: dict[str, int] = self.control("counts")
        return counted


def eventually(look: Callable[[], T], seconds: float = 30) -> T:
    """The first true answer of `look`, or the last false one when the time is over."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.03)
    return found
