"""What `make run` remembers between two starts, in `var/`: data, ports, secrets, logs."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.process import ROOT

VAR = Path(os.environ.get("MONBAN_VAR") or ROOT / "var")


class AlreadyRunningError(Exception):
    """Another `make run` holds this folder."""


@contextmanager
def held(var: Path = VAR) -> Iterator[None]:
    """One house at a time on one folder; the lock falls with the process that holds it."""
    var.mkdir(parents=True, exist_ok=True)
    with (var / "run.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunningError(
                "Monban is already running from this folder; stop that one first (Ctrl-C)."
            ) from None
        yield


def reset(var: Path = VAR) -> None:
    """Drop the data, the secrets and the logs. Servers given by URL are not touched."""
    with held(var):
        shutil.rmtree(var)


def fresh_logs(var: Path = VAR) -> Path:
    """The folder for this run's logs, without those of the last run."""
    shutil.rmtree(var / "log", ignore_errors=True)
    (var / "log").mkdir()
    return var / "log"


def house_secrets(var: Path = VAR) -> dict[str, str]:
    """Made once and kept, so that sessions, seals and signatures survive a restart."""
    path = var / "secrets.env"
    if not path.exists():
        lines = "".join(f"{name}={value}\n" for name, value in _new_secrets().items())
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(lines)
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, found, value in pairs if found}


def _new_secrets() -> dict[str, str]:
    return {
        "SECRET_KEY": secrets.token_urlsafe(48),
        "SEAL_KEYS": secrets.token_urlsafe(48),
        "STRIPE_SECRET_KEY": f"sk_test_{secrets.token_hex(16)}",
        "STRIPE_PUBLISHABLE_KEY": f"pk_test_{secrets.token_hex(16)}",
        "STRIPE_WEBHOOK_SECRET": f"whsec_{secrets.token_hex(24)}",
        "SEAM_API_KEY": f"seam_sandbox_{secrets.token_hex(12)}",
        "SEAM_WEBHOOK_SECRET": f"whsec_{b64encode(secrets.token_bytes(24)).decode()}",
        "LINE_CHANNEL_TOKEN": secrets.token_urlsafe(32),
    }


class Ports:
    """The same port as last time where it is free, so that a link in an old e-mail still works."""

    def __init__(self, var: Path = VAR) -> None:
        self._file = var / "ports.json"
        self._known: dict[str, int] = _read(self._file)
        self._taken: set[int] = set()

    def take(self, name: str, usual: int, asked: int = 0) -> int:
        """The one asked for, else last time's, else the usual one, else any that is free."""
        for port in (asked or self._known.get(name, usual), usual, 0):
            if port not in self._taken and (found := _bindable(port)):
                break
        self._taken.add(found)
        self._known[name] = found
        self._file.write_text(json.dumps(self._known, indent=2) + "\n")
        return found


def _read(file: Path) -> dict[str, int]:
    try:
        return {str(name): int(port) for name, port in json.loads(file.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _bindable(port: int) -> int:
    """The port itself, a free one for 0, and 0 when somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])


def main() -> int:
    try:
        reset()
    except AlreadyRunningError as running:
        print(running, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
