"""A local database left behind by a renumbered migration is told so, in words that help."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sandbox import parts
from sandbox.checks.local_database import DATABASE, problems


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("DATABASE_OWNER_URL", raising=False)
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    (versions / "0001.py").write_text('revision = "0001"\ndown_revision = None\n')
    return tmp_path


@pytest.fixture
def server(root: Path) -> Iterator[parts.Part]:
    running = parts.postgres(root / "var" / "postgres", fast=True)
    yield running
    running.stop()


def stand_on(server: parts.Part, revision: str) -> None:
    url = parts.create_database(server.url, DATABASE)
    with psycopg.connect(url) as connection:
        connection.execute("create table alembic_version (version_num text)")
        connection.execute("insert into alembic_version values (%s)", [revision])


def test_without_a_database_there_is_nothing_to_say(root: Path) -> None:
    assert problems(root) == []


def test_a_database_that_was_never_migrated_is_fine(root: Path, server: parts.Part) -> None:
    server.stop()

    assert problems(root) == []


def test_a_known_revision_is_fine(root: Path, server: parts.Part) -> None:
    stand_on(server, "0001")
    server.stop()

    assert problems(root) == []


def test_a_lingering_old_number_is_told(root: Path, server: parts.Part) -> None:
    stand_on(server, "0001_old")
    server.stop()

    (told,) = problems(root)

    assert "stands on migration 0001_old" in told
    assert "renumbered" in told
    assert "make reset" in told


def test_a_server_given_by_url_is_asked_too(
    root: Path, server: parts.Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_on(server, "0009")
    monkeypatch.setenv("DATABASE_OWNER_URL", parts.with_database(server.url, DATABASE))

    assert len(problems(root)) == 1


def test_a_server_that_does_not_answer_is_no_fault(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")

    assert problems(root) == []
