"""A local database must not stand on a migration that this checkout no longer has.

That happens when a migration is renumbered (or removed) after somebody ran it: from then on every
upgrade fails with a message that does not say why. This one does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from sandbox import var
from sandbox.checks.migrations import VERSIONS, read_all
from sandbox.postgres import postgres, socket_url, with_database

DATABASE = "monban"


def problems(root: Path) -> list[str]:
    known = {migration.revision for migration in read_all(root / VERSIONS)}
    with database(root) as url:
        strange = [revision for revision in stands_on(url) if revision not in known] if url else []
    return [
        f"the local database stands on migration {revision}, which is not in {VERSIONS}: it was "
        "renumbered or belongs to another branch. `make reset` drops the database in var/; on a "
        "server of your own, drop the database and create it again."
        for revision in strange
    ]


@contextmanager
def database(root: Path) -> Iterator[str | None]:
    """The URL of the local database, its server started if need be; None when there is none."""
    given = os.environ.get("DATABASE_OWNER_URL") or os.environ.get("DATABASE_URL")
    data = root / "var" / "postgres"
    if given or not (data / "PG_VERSION").exists():
        yield given or None
        return
    try:
        with var.held(root / "var"):
            server = postgres(data, log=root / "var" / "check.log")
            try:
                yield with_database(server.url, DATABASE)
            finally:
                server.stop()
    except var.AlreadyRunningError:
        yield with_database(socket_url(data), DATABASE)


def stands_on(url: str) -> list[str]:
    """Empty when there is no such database, or nothing has been migrated yet."""
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            return [row[0] for row in connection.execute("select version_num from alembic_version")]
    except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
        return []
