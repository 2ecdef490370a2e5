"""The proof that facilities are kept apart, and every way in which it must fail."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

import app as entry
from portal import config, isolation
from portal.config import UnsafeConfigurationError
from portal.web import factory
from sandbox import parts
from sandbox.seam.running import eventually
from tests.conftest import TEMPLATE, psycopg_url

COPY = "monban_isolation"


@pytest.fixture
def copy(server, database, settings, app) -> Iterator[dict[str, str]]:
    """A database of its own, to be broken."""
    parts.drop_database(server.url, COPY)
    parts.create_database(server.url, COPY, template=TEMPLATE)
    yield settings | {
        "DATABASE_URL": parts.with_database(server.url, COPY, "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server.url, COPY),
    }
    parts.drop_database(server.url, COPY)


def prove(settings: dict[str, str]) -> None:
    from portal.db import db

    made = factory.create_app(config.from_environment(settings))
    with made.app_context():
        try:
            isolation.prove()
        finally:
            db.engine.dispose()


def break_it(settings: dict[str, str], statement: str) -> None:
    with psycopg.connect(psycopg_url(settings["DATABASE_OWNER_URL"]), autocommit=True) as owner:
        owner.execute(statement)


def test_i4_the_migrated_database_passes_and_nothing_stays_behind(settings, app):
    prove(settings)
    with psycopg.connect(psycopg_url(settings["DATABASE_OWNER_URL"])) as owner:
        assert owner.execute("select count(*) from facilities").fetchone() == (0,)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("alter table stays disable row level security", "stays"),
        ("alter table stays no force row level security", "stays"),
        ("drop policy own_facility on guests", "guests"),
        ("drop policy own_facility on facilities", "facilities"),
        ("create table extra (facility_id uuid); grant select on extra to portal_app", "extra"),
        ("alter function staff_facilities(uuid) reset search_path", "staff_facilities"),
        ("alter table doors owner to portal_app", "owns tables"),
        ("update alembic_version set version_num = '0000'", "migrations"),
        ("alter policy own_facility on guests using (true) with check (true)", "sees another's"),
    ],
)  # fmt: skip
def test_i4_a_missing_guard_stops_the_start(copy, statement, word):
    break_it(copy, statement)
    with pytest.raises(UnsafeConfigurationError) as refused:
        prove(copy)
    assert word in str(refused.value)
    assert "\n" not in str(refused.value)


def test_i4_a_superuser_or_owner_is_refused(settings, app):
    with pytest.raises(UnsafeConfigurationError, match="superuser"):
        prove(settings | {"DATABASE_URL": settings["DATABASE_OWNER_URL"]})


def test_i4_a_role_that_bypasses_is_refused(copy):
    break_it(
        copy, "drop role if exists sneaky; create role sneaky login bypassrls in role portal_app"
    )
    url = copy["DATABASE_URL"].replace("portal_app", "sneaky")
    try:
        with pytest.raises(UnsafeConfigurationError, match="BYPASSRLS"):
            prove(copy | {"DATABASE_URL": url})
    finally:
        break_it(copy, "drop role sneaky")


def test_an_empty_database_is_told_in_one_line(server, settings, app):
    parts.drop_database(server.url, COPY)
    parts.create_database(server.url, COPY)
    try:
        with pytest.raises(UnsafeConfigurationError, match="db upgrade"):
            prove(settings | {"DATABASE_URL": parts.with_database(server.url, COPY, "portal_app")})
    finally:
        parts.drop_database(server.url, COPY)


def test_a_database_that_is_away_is_told_in_one_line(settings, app):
    with pytest.raises(UnsafeConfigurationError) as refused:
        prove(settings | {"DATABASE_URL": "postgresql://portal_app@/gone?host=/nowhere"})
    assert "\n" not in str(refused.value)


def test_making_the_app_touches_nothing_and_production_proves(settings, app, monkeypatch):
    for name, value in (settings | {"DATABASE_URL": "postgresql://x@/gone?host=/nowhere"}).items():
        monkeypatch.setenv(name, value)
    assert entry.create_app()
    with pytest.raises(UnsafeConfigurationError):
        entry.production()
    monkeypatch.setenv("DATABASE_URL", settings["DATABASE_URL"])
    assert entry.production()


def test_k4_a_cancelled_build_leaves_an_index_that_stops_the_start(copy):
    """Run again, as a migration would be, it is taken for the real one: nothing is forbidden."""
    again = "create unique index concurrently if not exists uq_once on once (code)"
    owner_url = psycopg_url(copy["DATABASE_OWNER_URL"])
    with psycopg.connect(owner_url, autocommit=True) as builder, psycopg.connect(owner_url) as busy:
        builder.execute("create table once (code int); insert into once values (1)")
        busy.execute("insert into once values (2)")
        builder.execute("set statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            builder.execute(again)
        busy.rollback()
        builder.execute("set statement_timeout = 0")
        builder.execute(again)
        builder.execute("insert into once values (1)")
    with pytest.raises(UnsafeConfigurationError, match=r"not valid.*uq_once"):
        prove(copy)
    break_it(copy, "truncate once; reindex index uq_once")
    prove(copy)


def test_k4_a_build_that_is_under_way_is_no_fault(copy):
    """The house stays open while a migration builds an index beside its work."""
    owner_url = psycopg_url(copy["DATABASE_OWNER_URL"])
    with psycopg.connect(owner_url, autocommit=True) as eye, psycopg.connect(owner_url) as busy:
        eye.execute("create table once (code int)")
        busy.execute("insert into once values (1)")
        building = threading.Thread(
            target=break_it, args=(copy, "create index concurrently ix_once on once (code)")
        )
        building.start()
        seen = "select 1 from pg_index i join pg_class c on c.oid = indexrelid where relname = %s"
        try:
            assert eventually(lambda: eye.execute(seen, ["ix_once"]).fetchone(), 30)
            prove(copy)
        finally:
            busy.rollback()
            building.join(60)
    prove(copy)
