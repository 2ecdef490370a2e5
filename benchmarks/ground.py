"""A migrated database of its own, one facility, and as many stays as a measurement needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

from flask import Flask

from portal import config
from portal.db import SYSTEM, transaction
from portal.outcome import Applied
from portal.verbs import stays
from portal.web import factory
from sandbox import parts


@contextmanager
def opened() -> Iterator[Flask]:
    """The portal on servers that end with the block, with durable writes as in production."""
    with tempfile.TemporaryDirectory() as folder:
        server, queue = parts.postgres(Path(folder) / "pg"), parts.valkey(Path(folder) / "valkey")
        try:
            yield _portal(server.url, queue.url)
        finally:
            server.stop()
            queue.stop()


def _portal(server_url: str, queue_url: str) -> Flask:
    parts.create_database(server_url, "bench")
    settings = {
        "DATABASE_URL": parts.with_database(server_url, "bench", "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server_url, "bench"),
        "REDIS_URL": queue_url,
        "STRIPE_SECRET_KEY": "sk_test_bench",
        "STRIPE_WEBHOOK_SECRET": "whsec_bench",
        "SEAM_API_KEY": "seam_bench",
        "SEAM_WEBHOOK_SECRET": "whsec_YmVuY2g=",
        "LOG_LEVEL": "ERROR",
    }
    migrate = [sys.executable, "-m", "flask", "--app", "app", "db", "upgrade"]
    subprocess.run(migrate, env={**os.environ, **settings}, check=True, capture_output=True)
    return factory.create_app(config.from_environment(settings))


def facility(spaces: int) -> tuple[UUID, list[UUID]]:
    """A house in Tokyo with one door and so many spaces. Returns their ids."""
    house = uuid4()
    with transaction(house) as tx:
        tx.run(
            "insert into facilities (id, slug, name_ja, name_en, kind, time_zone)"
            " values (:id, 'bench', '計測', 'Bench', 'lodging', 'Asia/Tokyo')",
            id=house,
        )
        door = tx.scalar(
            "insert into doors (facility_id, name_ja, name_en, device_id)"
            " values (:id, '入口', 'Entrance', 'bench') returning id",
            id=house,
        )
        rows = tx.rows(
            "insert into spaces (facility_id, code, name_ja, name_en, door_id)"
            " select :id, 'B' || n, 'B' || n, 'B' || n, :door from generate_series(1, :many) n"
            " returning id",
            id=house,
            door=door,
            many=spaces,
        )
    return house, [row.id for row in rows]


def book(house: UUID, wanted: stays.NewStay) -> UUID:
    with transaction(house) as tx:
        made = stays.create(tx, SYSTEM, wanted)
    if not isinstance(made, Applied) or made.subject is None:
        raise RuntimeError(f"the stay was not made: {made}")
    return made.subject


@contextmanager
def timed(what: str, count: int) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    print(f"{what:<40} {count:>7} in {seconds:7.2f} s   {count / seconds:8.0f} a second")
