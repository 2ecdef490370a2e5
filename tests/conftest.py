"""What every test stands on: real servers, the app's own role, an empty house each time.

One cluster and one migrated database a session; after a test that wrote, its rows are wiped.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal import clock, config, doorbell
from portal.config import Config
from portal.web import factory
from sandbox import parts, translations
from sandbox.process import Part
from tests.cast import Cast

DATABASE = "monban_test"
TEMPLATE = "monban_template"
"""Migrated, and nobody is ever connected to it: a test that breaks its database copies this."""

pytest_plugins = (
    "tests.outside",
    "tests.verbs.nearby",
    "tests.proofs.processes",
    "tests.figures",
    "tests.matrix.summary",
)
"""The far side and the processes of the proofs, started once a session for whoever asks; and the
lines with which a run ends."""

# What migrations fill, and what never changes.
KEPT = ("alembic_version", "legal_transitions", "consumption_tax_rates")

SECRETS = {
    "SECRET_KEY": "a-key-for-tests-only",
    "STRIPE_SECRET_KEY": "sk_test_monban",
    "STRIPE_PUBLISHABLE_KEY": "pk_test_monban",
    "STRIPE_WEBHOOK_SECRET": "whsec_monban_test",
    "SEAM_API_KEY": "seam_test_monban",
    "SEAM_WEBHOOK_SECRET": "whsec_bW9uYmFuLXRlc3Qtc2VjcmV0",
    "PUBLIC_URL": "http://127.0.0.1:8000",
    "LOG_LEVEL": "WARNING",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole", action="store_true", help="long proofs run their full figure, not their share"
    )


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Whether a long proof runs its full figure (`make proofs`) or its share (`make test`)."""
    return bool(pytestconfig.getoption("--whole"))


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Not one of pytest's own: each new session closes those to other accounts, and as root the
    database server has another account."""
    with tempfile.TemporaryDirectory(prefix="monban-test-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Part]:
    """PostgreSQL 18, quick and forgetful. `server.url` is the superuser's."""
    part = parts.postgres(folder / "data", fast=True)
    yield part
    part.stop()


@pytest.fixture(scope="session")
def queue(folder: Path) -> Iterator[Part]:
    part = parts.valkey(folder / "valkey")
    yield part
    part.stop()


@pytest.fixture(scope="session")
def database(server: Part) -> Iterator[dict[str, str]]:
    """The migrated database as settings: DATABASE_URL is the app's role, the other the owner's."""
    parts.create_database(server.url, TEMPLATE)
    migrate(_settings_of(server, TEMPLATE))
    parts.create_database(server.url, DATABASE, template=TEMPLATE)
    yield _settings_of(server, DATABASE)
    parts.drop_database(server.url, DATABASE)


def _settings_of(server: Part, name: str) -> dict[str, str]:
    return {
        "DATABASE_URL": parts.with_database(server.url, name, "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server.url, name),
    }


def migrate(settings: dict[str, str], revision: str = "head") -> None:
    """What `flask --app app db upgrade` does."""
    from alembic import command
    from alembic.config import Config as AlembicConfig

    alembic = AlembicConfig()
    alembic.set_main_option("script_location", str(Path(__file__).parent.parent / "migrations"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        command.upgrade(alembic, revision)


@pytest.fixture(scope="session")
def settings(database: dict[str, str], queue: Part) -> dict[str, str]:
    """The environment of a portal on the test's servers; providers are added where one is used."""
    return {**SECRETS, **database, "REDIS_URL": queue.url}


@pytest.fixture(scope="session")
def configured(settings: dict[str, str]) -> Config:
    return config.from_environment(settings)


@pytest.fixture(scope="session")
def the_app(configured: Config) -> Flask:
    """The portal, made once."""
    made = factory.create_app(configured)
    made.config["TESTING"] = True
    return made


@pytest.fixture
def app(the_app: Flask, database: dict[str, str], configured: Config) -> Iterator[Flask]:
    """The portal over an empty database and an empty queue."""
    yield the_app
    clock.set_source(None)
    wipe(database["DATABASE_OWNER_URL"])
    doorbell.configure(configured.redis_url)  # a test may have made an app with another queue
    doorbell.connection().flushall()


@pytest.fixture
def inside(app: Flask) -> Iterator[Flask]:
    """For tests below the web: `transaction()` works in them. Not together with a client, whose
    requests would share one `g`."""
    with app.app_context():
        yield app


@pytest.fixture
def cast(app: Flask) -> Cast:
    """The people and houses of every test."""
    return Cast(app)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A browser without script, not signed in."""
    return app.test_client()


def wipe(owner_url: str) -> None:
    """Every row but the migrations' own, whatever guards stand: as the owner, with triggers off."""
    with psycopg.connect(psycopg_url(owner_url), autocommit=True) as owner:
        tables = owner.execute(
            "select tablename from pg_tables where schemaname = 'public' and tablename <> all (%s)",
            [list(KEPT)],
        ).fetchall()
        deletes = "; ".join(f'delete from "{name}"' for (name,) in tables)
        owner.execute(f"set session_replication_role = replica; {deletes}")


def psycopg_url(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


def pytest_configure() -> None:
    """The portal reads compiled catalogues."""
    translations.compile_stale()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A missing browser skips its tests on a laptop; in CI they fail by themselves."""
    from sandbox.browser import chromium

    with_browser = [item for item in items if item.get_closest_marker("browser")]
    if with_browser and os.environ.get("CI") != "true" and chromium() is None:
        for item in with_browser:
            item.add_marker(pytest.mark.skip(reason="no Chromium here: `make setup` fetches one"))
