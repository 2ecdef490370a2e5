"""The parts that `make run` and the tests stand on: they start, answer, stop, leave no orphan."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest
import redis

from sandbox import parts, process

ORPHAN_MAKER = """
import os, signal, sys
from pathlib import Path
from sandbox import parts
started = [parts.postgres(Path(sys.argv[1]) / "pg", fast=True), parts.valkey(), parts.maildev()]
print(*(part.process.pid for part in started), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[parts.Part]:
    running = parts.postgres(tmp_path_factory.mktemp("server") / "pg", fast=True)
    yield running
    running.stop()


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()  # type: ignore[call-overload]
        return row and row[0]


def test_postgres_is_18_reads_utf8_and_lives_in_utc(server: parts.Part) -> None:
    assert str(ask(server.url, "show server_version")).startswith("18")
    assert ask(server.url, "show server_encoding") == "UTF8"
    assert ask(server.url, "show timezone") == "UTC"
    assert ask(server.url, "select upper('é')") == "É"


def test_postgres_listens_on_no_network(server: parts.Part) -> None:
    assert ask(server.url, "show listen_addresses") == ""


def test_a_database_is_copied_from_a_template_and_dropped(server: parts.Part) -> None:
    original = parts.create_database(server.url, "original")
    with psycopg.connect(original) as connection:
        connection.execute("create table door (name text)")
    copy = parts.create_database(server.url, "copy", template="original")

    assert ask(copy, "select count(*) from door") == 0
    with psycopg.connect(copy):
        parts.drop_database(server.url, "copy")
    assert not parts.has_database(server.url, "copy")
    assert parts.has_database(server.url, "original")


def test_another_role_needs_no_password_on_the_socket(server: parts.Part) -> None:
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute("create role visitor login")

    url = parts.with_database(server.url, "postgres", "visitor")

    assert ask(url, "select current_user") == "visitor"


@pytest.mark.parametrize(
    ("url", "changed"),
    [
        ("postgresql://postgres@/postgres?host=/a/b", "postgresql://app@/monban?host=/a/b"),
        ("postgresql://me:pw@db.test:5433/x?a=b", "postgresql://app@db.test:5433/monban?a=b"),
    ],
)
def test_the_same_server_with_another_database_and_role(url: str, changed: str) -> None:
    assert parts.with_database(url, "monban", "app") == changed


def test_data_survives_a_restart_and_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    data = tmp_path / ("long" * 25) / "pg"
    first = parts.postgres(data)
    with psycopg.connect(first.url) as connection:
        connection.execute("create table kept as select 7 as n")
    first.stop()
    second = parts.postgres(data)

    assert ask(second.url, "select n from kept") == 7
    second.stop()


def test_postgres_comes_back_after_a_crash(tmp_path: Path) -> None:
    first = parts.postgres(tmp_path / "pg")
    with psycopg.connect(first.url) as connection:
        connection.execute("create table kept as select 7 as n")
    first.kill()
    second = parts.postgres(tmp_path / "pg")

    assert ask(second.url, "select n from kept") == 7
    second.stop()


def test_postgres_starts_beside_a_pid_file_that_names_somebody_else(tmp_path: Path) -> None:
    first = parts.postgres(tmp_path / "pg", fast=True)
    before = (tmp_path / "pg" / "postmaster.pid").read_text()
    first.kill()
    somebody = subprocess.Popen(["sleep", "60"])
    stale = before.replace(str(first.process.pid), str(somebody.pid), 1)
    (tmp_path / "pg" / "postmaster.pid").write_text(stale)

    second = parts.postgres(tmp_path / "pg", fast=True)

    assert ask(second.url, "select 1") == 1
    assert somebody.poll() is None
    second.stop()
    somebody.kill()
    somebody.wait()


def test_postgres_waits_for_one_that_is_still_shutting_down(tmp_path: Path) -> None:
    first = parts.postgres(tmp_path / "pg", fast=True)

    second = parts.postgres(tmp_path / "pg", fast=True)

    assert not first.running
    assert ask(second.url, "select 1") == 1
    second.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes accounts")
def test_an_account_that_many_ask_for_at_once_is_whole_for_each_of_them() -> None:
    name = f"monban{os.getpid()}"
    ask = f"from sandbox.postgres import account; import os; os.setuid(account({name!r}).pw_uid)"
    who = f"{ask}; os.execlp('whoami', 'whoami')"
    try:
        asked = [
            subprocess.Popen([sys.executable, "-c", who], stdout=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        told = [process.communicate()[0].strip() for process in asked]
    finally:
        subprocess.run(["userdel", name], capture_output=True, check=False)
    assert told == [name] * 6


def test_valkey_answers_as_redis_does() -> None:
    part = parts.valkey()
    client = redis.Redis.from_url(part.url)
    client.set("door", "open")

    assert client.get("door") == b"open"
    part.stop()
    assert not part.running


def test_maildev_takes_mail_and_shows_it() -> None:
    part = parts.maildev()
    smtp = urlsplit(part.also["smtp"])
    with socket.create_connection((smtp.hostname, smtp.port), timeout=5) as wire:
        assert wire.recv(100).startswith(b"220")
    assert process.answers(part.url)
    part.stop()


def test_a_part_that_dies_at_its_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('no key'); raise SystemExit(3)"]
    part = process.start("gate", argv, log=tmp_path / "gate.log")

    with pytest.raises(parts.PartFailedError, match=r"(?s)gate ended \(3\).*no key"):
        part.wait()


def test_a_part_that_never_answers_is_stopped(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    part = process.start("gate", argv, log=tmp_path / "gate.log")

    with pytest.raises(parts.PartFailedError, match="gate did not answer"):
        part.wait(0.3)
    assert not part.running


def test_a_part_that_does_not_want_to_stop_is_made_to(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('listening http://x');"
    )
    argv = [sys.executable, "-c", f"{stubborn} time.sleep(60)"]
    part = process.start("gate", argv, log=tmp_path / "gate.log").wait()

    part.stop(0.3)

    assert part.process.returncode == -signal.SIGKILL


def test_what_a_part_started_itself_goes_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess; child = subprocess.Popen(['sleep', '60']);"
        "print('listening http://x', child.pid); child.wait()"
    )
    argv = [sys.executable, "-c", code]
    part = process.start("gate", argv, log=tmp_path / "gate.log").wait()
    grandchild = int(part.said().split()[-1])

    part.stop()

    assert eventually(lambda: gone(grandchild))


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a child of its parent's death"
)
def test_no_part_outlives_a_killed_parent(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(process.ROOT)}
    argv = [sys.executable, "-c", ORPHAN_MAKER, str(tmp_path)]
    killed = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    pids = [int(pid) for pid in killed.stdout.split()]

    assert len(pids) == 3, killed.stderr
    assert eventually(lambda: all(gone(pid) for pid in pids))


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def eventually(look: object, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not look() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.05)
    return bool(look())  # type: ignore[operator]
