"""A house with its servers and the card provider's stand-in, where a day passes on request."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
from flask import Flask

from portal import config
from portal.db import Actor
from portal.edges.billing.adapter import StripeBilling
from portal.edges.channels import Channels
from portal.edges.mail.port import MailMessage
from portal.edges.payments.adapter import StripePayments
from portal.edges.providers import Providers
from portal.jobs import house
from portal.jobs.house import House
from portal.verbs.desk import Desk
from portal.web import factory
from sandbox import parts
from sandbox.stripe.testing import StandIn, client, running

KEY = "sk_test_simulation"
STAFF = Actor("staff", None, "front desk")
PLANS = {"plain": 4_800, "gold": 9_800}


@dataclass
class Mailbox:
    """Takes every mail; how often each was given to it."""

    taken: Counter[str] = field(default_factory=Counter)

    def send(self, message: MailMessage) -> None:
        self.taken[message.message_id] += 1


@dataclass
class Ground:
    app: Flask
    stripe: StandIn
    provider: Any
    """The official SDK, for what people do on the provider's own pages."""
    owner: psycopg.Connection
    house_id: UUID
    plans: dict[str, UUID]
    house: House
    mail: Mailbox

    @property
    def desk(self) -> Desk:
        return self.house.desk(self.house_id)

    def rows(self, sql: str, *params: Any) -> list[Any]:
        return self.owner.execute(sql, params).fetchall()

    def one(self, sql: str, *params: Any) -> Any:
        found = self.owner.execute(sql, params).fetchone()
        return found[0] if found else None

    def age(self, seconds: int) -> None:
        """Everything that is, here and there, happened so much earlier."""
        for table, columns in _instants(self.owner).items():
            moved = ", ".join(f"{name} = {name} - interval '{seconds} seconds'" for name in columns)
            self.owner.execute(f"update {table} set {moved}")
        self.stripe.post("age", seconds=seconds)


def _instants(owner: psycopg.Connection) -> dict[str, list[str]]:
    """Every column of the house that holds an instant."""
    found: dict[str, list[str]] = {}
    for table, column in owner.execute(
        "select c.table_name, c.column_name from information_schema.columns c"
        " join information_schema.tables t using (table_schema, table_name)"
        " where table_schema = 'public' and table_type = 'BASE TABLE'"
        " and data_type = 'timestamp with time zone' order by 1, 2"
    ):
        found.setdefault(table, []).append(column)
    return found


@contextmanager
def opened() -> Iterator[Ground]:
    """On servers that end with the block."""
    with tempfile.TemporaryDirectory() as folder, running() as stripe:
        server = parts.postgres(Path(folder) / "pg", fast=True)
        queue = parts.valkey(Path(folder) / "valkey")
        try:
            parts.create_database(server.url, "simulation")
            env = _settings(server.url, queue.url, stripe.base)
            _migrate(env)
            made = factory.create_app(config.from_environment(env))
            owner_url = env["DATABASE_OWNER_URL"].replace("postgresql+psycopg", "postgresql")
            with psycopg.connect(owner_url, autocommit=True) as owner, made.app_context():
                # Past the guards, which would let nobody move an instant of the past.
                owner.execute("set session_replication_role = replica")
                yield _ground(made, stripe, owner)
        finally:
            server.stop()
            queue.stop()


def _ground(app: Flask, stripe: StandIn, owner: psycopg.Connection) -> Ground:
    mail, nobody = Mailbox(), cast("Any", None)
    held = Providers(
        payments=StripePayments(KEY, api_base=stripe.base, connect_seconds=5, read_seconds=60),
        billing=StripeBilling(KEY, api_base=stripe.base, connect_seconds=5, read_seconds=60),
        locks=nobody,
    )
    settings = app.extensions["monban.config"]
    made = House(settings, held, Channels(mail, None), app.app_context)
    house.open_house(made)
    house_id, plans = _house(owner)
    provider = client(stripe.base, KEY)
    return Ground(app, stripe, provider, owner, house_id, plans, made, mail)


def _house(owner: psycopg.Connection) -> tuple[UUID, dict[str, UUID]]:
    house_id, plans = uuid4(), {code: uuid4() for code in PLANS}
    owner.execute(
        "insert into facilities (id, slug, name_ja, name_en, kind, time_zone)"
        " values (%s, 'simulated', '模擬', 'Simulated', 'sauna', 'Asia/Tokyo')",
        [house_id],
    )
    for code, price in PLANS.items():
        owner.execute(
            "insert into membership_plans (id, facility_id, code, name_ja, name_en, price,"
            " billed_every, billing, terms_version)"
            " values (%s, %s, %s, %s, %s, %s, 'month', 'card', '1')",
            [plans[code], house_id, code, code, code, price],
        )
    return house_id, plans


def _settings(server_url: str, queue_url: str, stripe_base: str) -> dict[str, str]:
    return {
        "DATABASE_URL": parts.with_database(server_url, "simulation", "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server_url, "simulation"),
        "REDIS_URL": queue_url,
        "STRIPE_SECRET_KEY": KEY,
        "STRIPE_WEBHOOK_SECRET": "whsec_simulation",
        "STRIPE_API_BASE": stripe_base,
        "SEAM_API_KEY": "seam_simulation",
        "SEAM_WEBHOOK_SECRET": "whsec_c2ltdWxhdGlvbg==",
        "SEAM_ENDPOINT": "http://127.0.0.1:9",
        "SMTP_URL": "smtp://127.0.0.1:9",
        "LOG_LEVEL": "CRITICAL",
    }


def _migrate(env: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "flask", "--app", "app", "db", "upgrade"]
    done = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
