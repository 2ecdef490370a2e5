"""One child process: started so that it can neither outlive nor be orphaned by us.

A child is the leader of a session of its own, so that Ctrl-C reaches only the supervisor, which
then stops the parts in order. Should the supervisor itself be killed, the kernel stops the
children (Linux: PR_SET_PDEATHSIG). That signal follows the *thread* that started the child, so
parts are started from the main thread.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
SAYS_URL = re.compile(r"\b(listening|control)(?: at:)? +(https?://\S+)", re.IGNORECASE)
PR_SET_PDEATHSIG = 1
# Lines as they come; and bytecode is kept, or every start compiles its libraries anew.
PYTHON_SETTINGS = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class PartFailedError(Exception):
    """A part did not start or has died. The text names it and ends with its last log lines."""


@dataclass
class Part:
    """A running piece of the sandbox. `url` is where it answers; `also` holds further URLs."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    url: str = ""
    also: dict[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    ready: Callable[[Part], bool] = lambda part: True
    log_start: int = 0

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float = 120) -> Part:
        """Return once the part answers. Raises PartFailedError when it died or took too long."""
        deadline = time.monotonic() + seconds
        while not self.ready(self):
            if not self.running:
                raise PartFailedError(self.obituary())
            if time.monotonic() > deadline:
                self.stop()
                raise PartFailedError(
                    f"{self.name} did not answer within {seconds:.0f} s\n{self.last_lines()}"
                )
            time.sleep(0.05)
        return self

    def stop(self, seconds: float = 10) -> None:
        """Ask, wait, insist; then sweep up what it may have started itself."""
        if self.running:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        self._sweep()

    def kill(self) -> None:
        """As a crash would: no chance to tidy up, for it and for its own children."""
        self._sweep()
        self.process.wait()

    def obituary(self) -> str:
        code = self.process.poll()
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code and code < 0
            else f"ended ({code})"
        )
        return f"{self.name} {how}; the last lines of its log ({self.log}):\n{self.last_lines()}"

    def last_lines(self, count: int = 12) -> str:
        with self.log.open(errors="replace") as lines:
            lines.seek(self.log_start)
            return "".join(f"  {line}" for line in deque(lines, count)) or "  (it said nothing)\n"

    def said(self) -> str:
        """What this run of it has written so far."""
        with self.log.open("rb") as written:
            written.seek(self.log_start)
            return written.read(200_000).decode(errors="replace")

    def _sweep(self) -> None:
        # Nobody of its session is left, or only what the system is already burying.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def start(
    name: str,
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
    ready: Callable[[Part], bool] | None = None,
    url: str = "",
    also: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    stdout: IO[bytes] | None = None,
    **popen: Any,
) -> Part:
    """Start a part with its output in `log`. It may not answer yet: `wait()` for that.

    Without `ready` and `url` the part says itself where it listens.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        began = output.tell()
        us = os.getpid()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout or output,
            stderr=output,
            env={**os.environ, **PYTHON_SETTINGS, **(env or {})},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: follow_parent(stop_signal, us),
            **popen,
        )
    return Part(
        name,
        process,
        log,
        url,
        dict(also or {}),
        stop_signal,
        ready or ((lambda part: answers(url)) if url else says_where),
        began,
    )


def says_where(part: Part) -> bool:
    """Ready when it has printed `listening http://…`, its URL. Others follow: `control http://…`."""
    for word, url in SAYS_URL.findall(part.said()):
        if word.lower() == "listening":
            part.url = url
        else:
            part.also[word] = url
    return bool(part.url)


def answers(url: str) -> bool:
    """It answers HTTP, with anything at all."""
    try:
        _DIRECT.open(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def follow_parent(stop_signal: signal.Signals, parent: int) -> None:
    """Have the kernel send us `stop_signal` when our parent is gone, which it may be by now."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), stop_signal)
