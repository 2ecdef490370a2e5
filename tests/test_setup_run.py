"""`make run` as a person meets it: one screen, one Ctrl-C, no process left, data kept."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from sandbox import parts
from sandbox.process import ROOT
from sandbox.run import DATABASE
from sandbox.var import house_secrets

pytestmark = [pytest.mark.slow, pytest.mark.proof]
OF_OTHERS = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "PUBLIC_URL", "MAKELEVEL")


class Run:
    """One `make run` on a folder of its own, with everything it prints."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.var = Path(settings.get("MONBAN_VAR") or folder / "var")
        self.output = folder / f"output-{time.monotonic_ns()}"
        env = {name: value for name, value in os.environ.items() if name not in OF_OTHERS}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sandbox.run"],
                cwd=ROOT,
                env={**env, **settings, "MONBAN_VAR": str(self.var)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.family: list[psutil.Process] = []

    def said(self) -> str:
        return self.output.read_text()

    def opened(self) -> "Run":
        assert eventually(lambda: "Ctrl-C" in self.said() or self.ended(), 300), self.said()
        assert not self.ended(), self.said()
        self.family = psutil.Process(self.process.pid).children(recursive=True)
        return self

    def url(self) -> str:
        found = re.search(r"Monban is open: (\S+)", self.said())
        assert found
        return found.group(1)

    def child(self, words: str, after: int = 0) -> psutil.Process | None:
        """The part with these words in its command, or its successor `after` that process id."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                if child.pid != after and words in " ".join(child.cmdline()):
                    return child
        return None

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(90)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def left_nothing(self) -> bool:
        assert len(self.family) > 7
        return eventually(lambda: all(gone(process) for process in self.family))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: what a run leaves, however it ended, the next one opens with."""
    return tmp_path_factory.mktemp("house")


@pytest.fixture
def run(folder: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(**settings: str) -> Run:
        runs.append(Run(folder, **settings))
        return runs[-1]

    yield begin
    for each in runs:
        if not each.ended():
            each.signal(signal.SIGTERM)


def test_one_screen_one_ctrl_c_and_the_data_is_there_next_time(run: Callable[..., Run]) -> None:
    first = run().opened()
    screen, address = first.said(), first.url()
    assert "4242 4242 4242 4242" in screen
    assert "@" in screen.partition("Log in as")[2]
    assert re.search(r"guest .*http://", screen)
    assert urllib.request.urlopen(address, timeout=30).status == 200
    mark(first, "create table left_by_first (n int)")

    assert first.signal(signal.SIGINT) == 0, first.said()
    assert first.left_nothing()
    keys = house_secrets(first.var)

    second = run().opened()
    assert second.url() == address
    assert house_secrets(second.var) == keys
    mark(second, "insert into left_by_first values (1)")
    a_killed_worker_is_named_and_replaced(second)
    assert second.signal(signal.SIGTERM) == 0, second.said()
    assert second.left_nothing()


def a_killed_worker_is_named_and_replaced(house: Run) -> None:
    killed = house.child("worker.py")
    assert killed

    killed.kill()

    assert eventually(lambda: "Starting another worker" in house.said())
    assert "worker was killed by SIGKILL" in house.said()
    assert eventually(lambda: house.child("worker.py", after=killed.pid) is not None)
    assert not house.ended()


def test_another_part_that_dies_is_named_with_its_log_and_ends_the_run(
    run: Callable[..., Run],
) -> None:
    house = run().opened()

    line = house.child("sandbox.line")
    assert line

    line.kill()

    assert house.process.wait(90) == 1
    assert "line was killed by SIGKILL; the last lines of its log" in house.said()
    assert "listening http://" in house.said()
    assert house.left_nothing()


def test_a_taken_port_and_a_second_start_are_told_and_a_killed_supervisor_leaves_nothing(
    run: Callable[..., Run],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        house = run(PORT=str(port)).opened()
        assert f":{port}/" not in house.url()
        assert urllib.request.urlopen(house.url(), timeout=30).status == 200

    second = run()
    assert second.process.wait(60) == 1
    assert "already running from this folder" in second.said()

    house.signal(signal.SIGKILL)
    assert house.left_nothing()


def test_servers_given_by_url_are_used(
    run: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("own")
    server, queue = parts.postgres(own / "pg", fast=True), parts.valkey()
    owner = parts.create_database(server.url, "elsewhere")
    try:
        house = run(
            DATABASE_URL=parts.with_database(server.url, "elsewhere", "portal_app"),
            DATABASE_OWNER_URL=owner,
            REDIS_URL=queue.url,
            MONBAN_VAR=str(own / "var"),
        ).opened()
        with psycopg.connect(owner) as connection:
            assert connection.execute("select count(*) from alembic_version").fetchone()
        assert not (house.var / "postgres").exists()
        house.signal(signal.SIGINT)
        assert server.running
        assert queue.running
    finally:
        queue.stop()
        server.stop()


def test_half_a_database_is_refused_in_one_line(run: Callable[..., Run]) -> None:
    house = run(DATABASE_URL="postgresql://portal_app@/x")

    assert house.process.wait(30) == 1
    assert house.said().startswith("Set DATABASE_URL (the app's role) and DATABASE_OWNER_URL")


def mark(house: Run, statement: str) -> None:
    server = f"postgresql://postgres@/postgres?host={house.var / 'postgres'}"
    with psycopg.connect(parts.with_database(server, DATABASE)) as connection:
        connection.execute(statement)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def eventually(look: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not look() and time.monotonic() < end:
        time.sleep(0.1)
    return look()
