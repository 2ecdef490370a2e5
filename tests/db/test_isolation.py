"""Row-level security, scope and the fence, as the app's own role."""

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config as AlembicConfig
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask import Flask
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.pool import QueuePool

import portal.models  # noqa: F401
from portal import isolation
from portal.config import UnsafeConfigurationError, sqlalchemy_url
from portal.db import Base, Tx, db, require_alive, transaction
from portal.edges.payments.adapter import StripePayments
from portal.fence import TransactionOpenError
from portal.models import Stay
from tests.cast import Cast
from tests.conftest import psycopg_url
from tests.outside import Owner

SCOPE = "select current_setting('app.facility_id', true)"


@pytest.fixture
def one_connection(cast: Cast, inside: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both houses have a stay; the pool holds a single connection."""
    cast.book()
    cast.book(cast.osaka, cast.emma)
    narrow = create_engine(db.engine.url, poolclass=QueuePool, pool_size=1, max_overflow=0)
    monkeypatch.setitem(db.engines, None, narrow)
    yield
    narrow.dispose()


def names(tx: Tx) -> list[str]:
    return [row.name for row in tx.rows("select name from guests order by name")]


def pid(tx: Tx) -> int:
    return int(tx.scalar("select pg_backend_pid()"))


def test_i1_a_pooled_connection_carries_no_facility_over(cast: Cast, one_connection: None) -> None:
    with transaction(cast.tokyo.id) as tx:
        first = pid(tx)
        assert names(tx) == ["山田 花子"]
    with transaction(None) as tx:
        assert pid(tx) == first
        assert tx.scalar(SCOPE) in (None, "")
        assert names(tx) == []
        assert tx.rows("select 1 from facilities") == []
    with transaction(cast.osaka.id) as tx:
        assert pid(tx) == first
        assert names(tx) == ["Emma Smith"]


@pytest.mark.parametrize("statement", ["select 1 / 0", "select pg_sleep(0)"])
def test_i1_not_after_an_exception_either(cast: Cast, one_connection: None, statement: str) -> None:
    def broken() -> None:
        with transaction(cast.tokyo.id) as tx:
            tx.run(statement)
            raise RuntimeError("the client went away")

    with pytest.raises((RuntimeError, DBAPIError)):
        broken()
    with transaction(None) as tx:
        assert names(tx) == []
        assert tx.scalar(SCOPE) in (None, "")
    with transaction(cast.osaka.id) as tx:
        assert names(tx) == ["Emma Smith"]


def test_i1_an_isolation_level_is_not_carried_over(cast: Cast, one_connection: None) -> None:
    with transaction(None, isolation="REPEATABLE READ") as tx:
        assert tx.scalar("show transaction_isolation") == "repeatable read"
    with transaction(None) as tx:
        assert tx.scalar("show transaction_isolation") == "read committed"


def test_i2_the_scope_is_set_at_every_begin(cast: Cast, one_connection: None) -> None:
    with transaction(cast.tokyo.id) as tx:
        tx.run("update guests set kana = 'ハナコ'")
    with transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select kana from guests") == "ハナコ"
        tx.run("update guests set kana = 'ヤマダ'")
        assert names(tx) == ["山田 花子"]
    with transaction(cast.osaka.id) as tx:
        assert tx.scalar("select kana from guests") == ""


def test_a_savepoint_keeps_the_scope_and_undoes_only_itself(
    cast: Cast, one_connection: None
) -> None:
    with transaction(cast.tokyo.id) as tx:
        tx.run("update guests set kana = 'before'")
        with pytest.raises(IntegrityError), tx.savepoint():
            tx.run("update guests set kana = 'inside', preferred_locale = 'fr'")
        assert tx.scalar(SCOPE) == str(cast.tokyo.id)
        assert tx.scalar("select kana from guests") == "before"
        with tx.savepoint():
            tx.run("update guests set kana = 'after'")
    with transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select kana from guests") == "after"


def test_a_scope_entered_in_a_savepoint_is_left_with_it(cast: Cast, one_connection: None) -> None:
    this = "(select cast(:id as uuid) as facility_id, cast(:id as uuid) as id)"

    def enter_and_fail(tx: Tx) -> None:
        with tx.savepoint():
            tx.enter(this, id=cast.osaka.id)
            assert names(tx) == ["Emma Smith"]
            raise ZeroDivisionError

    with transaction(cast.tokyo.id) as tx:
        with pytest.raises(ZeroDivisionError):
            enter_and_fail(tx)
        assert tx.facility_id == cast.tokyo.id
        assert names(tx) == ["山田 花子"]


def test_work_that_leaves_a_house_sees_nothing_of_it(cast: Cast, one_connection: None) -> None:
    this = "(select cast(:id as uuid) as facility_id, cast(:id as uuid) as id where :found)"
    with transaction(cast.tokyo.id) as tx:
        assert names(tx) == ["山田 花子"]
        tx.leave()
        assert names(tx) == []
        tx.enter(this, id=cast.osaka.id, found=True)
        tx.leave()
        assert tx.enter(this, id=cast.tokyo.id, found=False) is None
        assert names(tx) == []
        assert tx.scalar(SCOPE) == ""


def test_a_connection_that_the_server_ended_is_not_used(
    cast: Cast, one_connection: None, owner: Owner
) -> None:
    narrow = create_engine(db.engine.url, pool_size=1, pool_events=[(require_alive, "checkout")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(db.engines, None, narrow)
        with transaction(cast.tokyo.id) as tx:
            first = pid(tx)
        owner.run("select pg_terminate_backend(%s, 5000)", first)
        with transaction(cast.tokyo.id) as tx:
            assert pid(tx) != first
            assert names(tx) == ["山田 花子"]
    narrow.dispose()


def test_a_link_enters_its_own_house_only(cast: Cast, inside: Flask) -> None:
    from portal import seal

    stay = cast.book(cast.osaka, cast.emma)
    with transaction(None) as tx:
        found = tx.enter("stay_by_token(:hash)", hash=seal.token_hash(stay.token))
        assert (found, tx.facility_id) == (stay.id, cast.osaka.id)
        assert names(tx) == ["Emma Smith"]
    with transaction(None) as tx:
        assert tx.enter("stay_by_token(:hash)", hash=seal.token_hash("guess")) is None
        assert names(tx) == []


def test_i4_the_role_and_the_catalogue(cast: Cast, inside: Flask, owner: Owner) -> None:
    with transaction(None) as tx:
        role = tx.row(
            "select rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb from pg_roles"
            " where rolname = current_user"
        )
        assert tuple(role or ()) == ("portal_app", False, False, False, False)
    assert owner.rows("select 1 from pg_class where relowner = 'portal_app'::regrole") == []
    scoped = owner.rows(
        "select distinct c.relname, c.relrowsecurity and c.relforcerowsecurity,"
        " exists (select 1 from pg_policy p where p.polrelid = c.oid"
        "         and 'portal_app'::regrole = any (p.polroles) and p.polwithcheck is not null)"
        " from pg_class c join pg_attribute a on a.attrelid = c.oid"
        " join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'"
        " where c.relkind in ('r', 'p') and not a.attisdropped"
        " and (a.attname = 'facility_id' or c.relname = 'facilities')"
    )
    assert len(scoped) >= 15
    assert [row for row in scoped if row[1:] != (True, True)] == []
    isolation.require_guards()
    isolation.require_canary()


@pytest.mark.parametrize(
    "breach",
    [
        "alter table guests no force row level security",
        "alter table guests disable row level security",
        "drop policy own_facility on guests",
        "alter role portal_app bypassrls",
        "create function loose() returns int language sql security definer as 'select 1'",
        (
            "drop policy own_facility on guests;"
            " create policy own_facility on guests to portal_app using (true) with check (true)"
        ),
    ],
)
def test_i4_the_start_is_refused_where_a_guard_is_missing(
    cast: Cast, inside: Flask, owner: Owner, breach: str
) -> None:
    assert cast.tokyo
    mend = (
        "alter role portal_app nobypassrls; alter table guests enable row level security;"
        " alter table guests force row level security; drop function if exists loose();"
        " drop policy if exists own_facility on guests;"
        " create policy own_facility on guests to portal_app"
        " using (facility_id = current_facility()) with check (facility_id = current_facility())"
    )
    owner.run(breach)
    try:
        with pytest.raises(UnsafeConfigurationError, match="isolation"):
            isolation.prove()
    finally:
        owner.run(mend)
    isolation.prove()


def test_i4_the_owner_may_not_be_the_app(
    inside: Flask, database: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_owner = create_engine(sqlalchemy_url(database["DATABASE_OWNER_URL"]))
    monkeypatch.setitem(db.engines, None, as_owner)
    try:
        with pytest.raises(UnsafeConfigurationError, match=r"superuser|owns"):
            isolation.prove()
    finally:
        as_owner.dispose()


def test_i5_an_empty_scope_is_no_scope_and_no_error(cast: Cast, one_connection: None) -> None:
    with transaction(cast.tokyo.id) as tx:
        assert names(tx)
    with transaction(None) as tx:
        assert tx.scalar(SCOPE) == ""
        assert tx.rows("select id from stays") == []
        assert tx.run("update guests set kana = 'x'").rowcount == 0


DEFINERS = {
    "all_facilities",
    "claim_lock_commands",
    "claim_outbox",
    "claim_refunds",
    "deposits_missed",
    "drop_superfluous_registers",
    "entrance_by_public_name",
    "facility_by_slug",
    "key_by_code",
    "keys_to_poll",
    "legs_to_read",
    "membership_by_subscription",
    "memberships_of_retired_plans",
    "memberships_to_end",
    "membership_by_token",
    "obligations_to_prove",
    "payment_by_intent",
    "payments_to_read",
    "purge_registers",
    "staff_facilities",
    "stay_by_token",
    "subscriptions_to_read",
    "walk_ins_to_let_go",
    "work_waiting",
}


def test_i7_functions_that_see_everything_are_few_and_pinned(owner: Owner) -> None:
    found = owner.rows(
        "select proname, coalesce(array_to_string(proconfig, ','), '') from pg_proc"
        " where pronamespace = 'public'::regnamespace and prosecdef"
    )
    assert {name for name, _ in found} == DEFINERS
    assert all("search_path=pg_catalog, public" in setting for _, setting in found)
    public = owner.rows(
        "select proname from pg_proc where pronamespace = 'public'::regnamespace"
        " and has_function_privilege('public', oid, 'execute')"
    )
    assert public == []


def test_i7_there_is_no_view_around_the_policies(owner: Owner) -> None:
    assert (
        owner.rows(
            "select relname from pg_class where relnamespace = 'public'::regnamespace"
            " and relkind in ('m', 'v', 'f')"
        )
        == []
    )


def test_i7_no_table_shows_another_house(cast: Cast, inside: Flask, owner: Owner) -> None:
    cast.book()
    cast.book(cast.osaka, cast.emma)
    _ = cast.sato, cast.tanaka
    tables = owner.rows(
        "select table_name from information_schema.columns"
        " where table_schema = 'public' and column_name = 'facility_id'"
    )
    seen = 0
    with transaction(cast.tokyo.id) as tx:
        for (table,) in tables:
            houses = {row[0] for row in tx.rows(f"select distinct facility_id from {table}")}
            assert houses <= {cast.tokyo.id, None}, table
            seen += bool(houses)
        assert [row[0] for row in tx.rows("select id from facilities")] == [cast.tokyo.id]
    assert seen >= 6


def test_i8_codes_are_unique_in_a_house_and_tell_nothing_of_another(
    cast: Cast, inside: Flask
) -> None:
    with transaction(cast.osaka.id) as tx:
        door = cast.osaka.doors["S01"]
        tx.run(
            "insert into spaces (facility_id, code, name_ja, name_en, door_id)"
            " values (:house, 'A01', 'x', 'x', :door)",
            house=cast.osaka.id,
            door=door,
        )
    with transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select count(*) from spaces where code = 'A01'") == 1


WRITES: dict[str, str] = {
    "guests": "insert into guests (facility_id, name, search_key) values (:theirs, 'x', 'x')",
    "doors": "insert into doors (facility_id, name_ja, name_en, device_id)"
    " values (:theirs, 'x', 'x', 'x')",
    "transitions": "insert into transitions (facility_id, machine, subject_id, verb, event,"
    " to_state, actor_kind, actor_name, request_id, at)"
    " values (:theirs, 'stay', gen_random_uuid(), 'x', 'x', 'x', 'staff', 'x', '', now())",
    "consumed_effects": "insert into consumed_effects (facility_id, consumer_key)"
    " values (:theirs, 'x')",
    "staff_roles": "insert into staff_roles (staff_id, facility_id, role)"
    " values (:staff, :theirs, 'owner')",
}


@pytest.mark.parametrize("table", WRITES)
def test_i10_nothing_is_written_for_another_house(cast: Cast, inside: Flask, table: str) -> None:
    staff = cast.sato.id
    given = {"theirs": cast.osaka.id} | ({"staff": staff} if table == "staff_roles" else {})
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction(cast.tokyo.id) as tx,
    ):
        tx.run(WRITES[table], **given)


def test_i10_no_row_moves_to_another_house(cast: Cast, inside: Flask, owner: Owner) -> None:
    cast.book()
    for table in ("guests", "stays", "spaces", "doors", "plans", "outbox"):
        with (
            pytest.raises(ProgrammingError, match="row-level security"),
            transaction(cast.tokyo.id) as tx,
        ):
            tx.run(f"update {table} set facility_id = :theirs", theirs=cast.osaka.id)


def test_i10_no_reference_leaves_its_house(cast: Cast, inside: Flask, owner: Owner) -> None:
    """Even where an id of the other house is known, the key holds both."""
    stay, theirs = cast.book(), cast.book(cast.osaka, cast.emma)
    guest = owner.one("select guest_id from stays where id = %s", theirs.id)
    for change in (
        {"guest_id": guest},
        {"space_id": cast.osaka.spaces["S01"]},
        {"plan_id": cast.osaka.plans["visit"]},
    ):
        ((column, value),) = change.items()
        with pytest.raises(IntegrityError), transaction(cast.tokyo.id) as tx:
            tx.run(f"update stays set {column} = :v where id = :id", v=value, id=stay.id)


def test_another_houses_row_does_not_exist(cast: Cast, inside: Flask) -> None:
    theirs = cast.book(cast.osaka, cast.emma)
    with transaction(cast.tokyo.id) as tx:
        assert tx.get(Stay, theirs.id) is None
        assert names(tx) == []
        assert tx.run("update stays set note = 'x' where id = :id", id=theirs.id).rowcount == 0
        assert tx.get(Stay, None) is None


def test_a_row_is_read_as_it_is_now(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = cast.book()
    with transaction(cast.tokyo.id) as tx:
        first = tx.get(Stay, stay.id)
        assert first is not None
        owner.run("update stays set note = 'newer'")
        again = tx.get(Stay, stay.id)
        assert again is not None
        assert again.note == "newer"


def test_an_edge_inside_a_transaction_is_loud(cast: Cast, inside: Flask) -> None:
    payments = StripePayments("sk_test_x", api_base="http://127.0.0.1:9", connect_seconds=0.2)

    def call() -> None:
        payments.find_intent(payment_id="x", since=datetime.now(UTC))

    with transaction(None), pytest.raises(TransactionOpenError):
        call()
    with transaction(None) as tx, tx.savepoint(), pytest.raises(TransactionOpenError):
        call()
    with pytest.raises(Exception, match="reached"):
        call()  # outside it goes out, and meets nobody


def test_the_fence_falls_when_a_transaction_breaks(cast: Cast, inside: Flask) -> None:
    payments = StripePayments("sk_test_x", api_base="http://127.0.0.1:9", connect_seconds=0.2)
    with pytest.raises(DBAPIError), transaction(None) as tx:
        tx.run("select 1 / 0")
    with pytest.raises(Exception, match="reached"):
        payments.retrieve_intent("pi_1")


# The schema -------------------------------------------------------------------------------------


def alembic() -> AlembicConfig:
    made = AlembicConfig()
    made.set_main_option("script_location", "migrations")
    return made


def test_k1_there_is_one_head_and_the_models_are_the_schema(
    database: dict[str, str], owner: Owner
) -> None:
    heads = ScriptDirectory.from_config(alembic()).get_heads()
    assert len(heads) == 1
    assert owner.rows("select version_num from alembic_version") == [(heads[0],)]
    engine = create_engine(sqlalchemy_url(database["DATABASE_OWNER_URL"]))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        difference = compare_metadata(context, Base.metadata)
    engine.dispose()
    assert difference == []


def test_k1_check_constraints_of_the_models_are_in_the_database(owner: Owner) -> None:
    """What Alembic does not compare: CHECK and EXCLUDE, by name."""
    from sqlalchemy import CheckConstraint
    from sqlalchemy.dialects.postgresql import ExcludeConstraint

    wanted = {
        str(constraint.name)
        for table in Base.metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint | ExcludeConstraint)
    }
    held = {
        row[0]
        for row in owner.rows(
            "select conname from pg_constraint where contype in ('c', 'x')"
            " and connamespace = 'public'::regnamespace"
        )
    }
    assert len(wanted) > 20
    assert wanted == held


def test_k1_an_upgrade_of_an_upgraded_database_changes_nothing(
    database: dict[str, str], monkeypatch: pytest.MonkeyPatch, owner: Owner
) -> None:
    for name, value in database.items():
        monkeypatch.setenv(name, value)
    before = owner.one("select count(*) from pg_class")
    command.upgrade(alembic(), "head")
    assert owner.one("select count(*) from pg_class") == before


def test_the_app_connects_as_nobody_else(settings: dict[str, str]) -> None:
    with psycopg.connect(psycopg_url(settings["DATABASE_URL"])) as wire:
        assert wire.execute("select current_user, session_user").fetchone() == (
            "portal_app",
            "portal_app",
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            wire.execute("set role postgres")
