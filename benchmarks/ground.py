"""Servers with durable writes, the portal on them, and as much past as a measurement needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg
from flask import Flask

from portal import config, seal
from portal.edges.channels import Channels
from portal.edges.providers import Providers
from portal.jobs.house import House
from portal.web import factory
from sandbox import parts

PAST_SPACES = 500
"""Over so many spaces the past is spread; each work of a round has a space of its own."""


@dataclass(frozen=True, slots=True)
class Ground:
    app: Flask
    env: dict[str, str]
    """Every setting of the portal, for processes beside this one."""
    server_url: str
    """Of the server's own maker, for databases beside the portal's."""
    app_url: str
    """libpq's URL of the portal's own role: its row policies and guards hold for the floor too."""
    owner: psycopg.Connection
    """Fills tables in bulk, without triggers; measures nothing."""
    house: UUID
    folder: Path
    """Gone when the ground is."""


@contextmanager
def opened(past: int) -> Iterator[Ground]:
    """The portal on servers that end with the block, with `past` stays that are over."""
    with tempfile.TemporaryDirectory() as folder:
        server, queue = parts.postgres(Path(folder) / "pg"), parts.valkey(Path(folder) / "valkey")
        try:
            parts.create_database(server.url, "bench")
            env = _settings(server.url, queue.url)
            _migrate(env)
            made = factory.create_app(config.from_environment(env))
            with psycopg.connect(_libpq(env["DATABASE_OWNER_URL"]), autocommit=True) as owner:
                owner.execute("set session_replication_role = replica")
                house = _facility(owner)
                _past(owner, house, past)
                app_url = _libpq(env["DATABASE_URL"])
                with made.app_context():
                    yield Ground(made, env, server.url, app_url, owner, house, Path(folder))
        finally:
            server.stop()
            queue.stop()


def _settings(server_url: str, queue_url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": parts.with_database(server_url, "bench", "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server_url, "bench"),
        "REDIS_URL": queue_url,
        "STRIPE_SECRET_KEY": "sk_test_bench",
        "STRIPE_WEBHOOK_SECRET": "whsec_bench",
        "SEAM_API_KEY": "seam_bench",
        "SEAM_WEBHOOK_SECRET": "whsec_YmVuY2g=",
        # Nobody is there: what a worker would tell a guest or ask of a provider waits.
        "SMTP_URL": "smtp://127.0.0.1:9",
        "STRIPE_API_BASE": "http://127.0.0.1:9",
        "SEAM_API_BASE": "http://127.0.0.1:9",
        "LOG_LEVEL": "ERROR",
    }


def _migrate(env: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "flask", "--app", "app", "db", "upgrade"]
    done = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg", "postgresql")


def _facility(owner: psycopg.Connection) -> UUID:
    """One house in Tokyo with one door."""
    row = owner.execute(
        """
        with house as (
            insert into facilities (slug, name_ja, name_en, kind, time_zone)
            values ('bench', '計測', 'Bench', 'lodging', 'Asia/Tokyo') returning id
        )
        insert into doors (facility_id, name_ja, name_en, device_id)
        select id, '入口', 'Entrance', 'bench' from house
        returning facility_id
        """
    ).fetchone()
    assert row is not None
    house: UUID = row[0]
    return house


def _past(owner: psycopg.Connection, house: UUID, stays: int) -> None:
    """Departed stays, paid and told, one a day and space, the latest of them yesterday."""
    spaces = spaces_of(owner, house, "P", PAST_SPACES)
    owner.execute(
        """
        create temporary table past on commit preserve rows as
        select n, gen_random_uuid() as guest, gen_random_uuid() as stay,
               spaces.id as space, spaces.no,
               now() - interval '1 day' * (n / cardinality(%(spaces)s) + 2) as begins
        from generate_series(0, %(many)s - 1) n
        join spaces on spaces.id = (%(spaces)s)[n %% cardinality(%(spaces)s) + 1]
        """,
        {"spaces": spaces, "many": stays},
    )
    for sql in _PAST:
        owner.execute(sql, {"house": house, "token": seal.close("past")})
    owner.execute("drop table past")
    owner.execute("vacuum analyze")


_PAST = (
    """
    insert into guests (id, facility_id, name, search_key, email, phone_digits)
    select guest, %(house)s, '計測 ' || n, '計測 ' || n, 'past' || n || '@example.com', ''
    from past
    """,
    """
    insert into stays (id, facility_id, code, guest_id, space_id, space_no, source, state,
        starts_at, ends_at, currency, token_hash, token_sealed, form_key, admitted_at, departed_at)
    select stay, %(house)s, 'P' || n, guest, space, no, 'desk', 'departed', begins,
        begins + interval '20 hours', 'JPY', decode(md5(n::text), 'hex'), %(token)s,
        gen_random_uuid(), begins, begins + interval '20 hours'
    from past
    """,
    """
    insert into ledger_lines (facility_id, stay_id, kind, amount, currency, actor_kind, actor_name,
        at)
    select %(house)s, stay, kind, amount, 'JPY', 'system', 'bench', begins
    from past, (values ('charge', 5000), ('cash', -5000)) line(kind, amount)
    """,
    """
    insert into outbox (facility_id, stay_id, dedupe_key, consumer_key, event_type, channel,
        recipient, locale, payload, priority, sent_at)
    select %(house)s, stay, 'stay_created:' || stay, 'stay_created:' || stay, 'stay_created',
        'email', 'past@example.com', 'ja', '{}', 2, begins
    from past
    """,
)


def worker(ground: Ground, mail: Any = None) -> House:
    """No provider is asked: what an event says is in the event. Without a mail nothing is sent."""
    nobody = cast("Any", None)
    config = ground.app.extensions["monban.config"]
    return House(config, Providers(nobody, nobody, nobody), Channels(mail, nobody), nullcontext)


def spaces_of(owner: psycopg.Connection, house: UUID, prefix: str, many: int) -> list[UUID]:
    rows = owner.execute(
        """
        insert into spaces (facility_id, code, name_ja, name_en, door_id)
        select d.facility_id, %(prefix)s || n, 'カプセル', 'Capsule', d.id
        from doors d, generate_series(1, %(many)s) n where d.facility_id = %(house)s
        returning id
        """,
        {"house": house, "prefix": prefix, "many": many},
    )
    return [row[0] for row in rows]


def arrivals(ground: Ground, many: int, *, paid: bool) -> list[UUID]:
    """Stays that begin now, each in a space of its own; paid in cash, or owing everything."""
    spaces = spaces_of(ground.owner, ground.house, f"A{os.urandom(4).hex()}-", many)
    rows = ground.owner.execute(
        """
        with arriving as (
            select gen_random_uuid() as guest, gen_random_uuid() as stay, s.id as space, s.no
            from spaces s where s.id = any(%(spaces)s)
        ), guest as (
            insert into guests (id, facility_id, name, search_key, email, phone_digits,
                preferred_locale)
            select guest, %(house)s, '計測 太郎', '計測 太郎', 'bench@example.com', '', 'ja'
            from arriving
        ), stay as (
            insert into stays (id, facility_id, code, guest_id, space_id, space_no, source, state,
                starts_at, ends_at, currency, token_hash, token_sealed, form_key)
            select stay, %(house)s, left(stay::text, 13), guest, space, no, 'desk', 'reserved',
                now() - interval '1 hour', now() + interval '20 hours', 'JPY',
                decode(md5(stay::text), 'hex'), %(token)s, gen_random_uuid()
            from arriving
            returning id
        ), line as (
            insert into ledger_lines (facility_id, stay_id, kind, amount, currency, actor_kind,
                actor_name, at)
            select %(house)s, stay, kind, amount, 'JPY', 'system', 'bench', now()
            from arriving, (values ('charge', 5000), ('cash', -5000)) line(kind, amount)
            where kind = 'charge' or %(paid)s
        )
        select id from stay
        """,
        {"house": ground.house, "spaces": spaces, "token": seal.close("arrival"), "paid": paid},
    )
    return [row[0] for row in rows]
