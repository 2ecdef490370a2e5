"""Migrations meet houses that are full and open: nothing is lost, nobody waits long, and rows that
a migration would forbid stop it before it has changed anything."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sandbox import parts
from sandbox.process import Part
from sandbox.seam.running import eventually
from tests.conftest import migrate, psycopg_url

NEWEST = max(path.name[:4] for path in Path("migrations/versions").glob("0*.py"))

COPY = "monban_older"
MESSAGES = 9_000
BEARABLE_SECONDS = 7.0
"""What one write of the house may wait: the lock timeout of a migration, and a slow machine."""

HOUSE = """
    set session_replication_role = replica;
    insert into facilities (id, slug, name_ja, name_en, kind, time_zone) values
        ('00000000-0000-4000-8000-00000000000a', 'a', '甲', 'A', 'capsule', 'Asia/Tokyo'),
        ('00000000-0000-4000-8000-00000000000b', 'b', '乙', 'B', 'sauna', 'Asia/Tokyo');
    insert into guests (facility_id, name, email, search_key)
        select '00000000-0000-4000-8000-00000000000a', '髙橋 ' || n, n || '@guest.example', ''
        from generate_series(1, 500) n;
    set session_replication_role = origin
"""

MAIL = """
    insert into outbox (facility_id, dedupe_key, consumer_key, event_type, channel, recipient,
                        locale, payload, priority, sent_at)
    select case when n %% 3 = 0 then '00000000-0000-4000-8000-00000000000b'
                else '00000000-0000-4000-8000-00000000000a' end::uuid,
           'k' || n, 'k' || n, 'stay_created', case when n %% 2 = 0 then 'email' else 'line' end,
           'somebody', 'ja', '{}', 2, now() - n * interval '1 second'
    from generate_series(1, %s) n
"""

LET_BE = """
    insert into divergences (facility_id, kind, subject, healed_at, healed_by, let_be)
    select '00000000-0000-4000-8000-00000000000a', %s, 'subject ' || n, now(), 'somebody', true
    from generate_series(1, %s) n returning id::text
"""

ONE_WRITE = """
    insert into outbox (facility_id, dedupe_key, consumer_key, event_type, channel, recipient,
                        locale, payload, priority)
    values (current_facility(), %(key)s, %(key)s, 'stay_created', 'email', 'x', 'ja', '{}', 2)
"""


@pytest.fixture
def older(server: Part, database: dict[str, str]) -> Iterator[dict[str, str]]:
    """An empty database that a test migrates itself."""
    parts.drop_database(server.url, COPY)
    parts.create_database(server.url, COPY)
    yield {
        "DATABASE_URL": parts.with_database(server.url, COPY, "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(server.url, COPY),
    }
    parts.drop_database(server.url, COPY)


def owner_of(settings: dict[str, str]) -> psycopg.Connection:
    return psycopg.connect(psycopg_url(settings["DATABASE_OWNER_URL"]), autocommit=True)


def app_of(settings: dict[str, str], house: str) -> psycopg.Connection:
    """The app's own role, in one house."""
    wire = psycopg.connect(psycopg_url(settings["DATABASE_URL"]))
    wire.execute("select set_config('app.facility_id', %s, true)", [house])
    return wire


def filled(settings: dict[str, str], revision: str) -> psycopg.Connection:
    migrate(settings, revision)
    wire = owner_of(settings)
    wire.execute(HOUSE)
    wire.execute(MAIL, [MESSAGES])
    return wire


def stands_on(wire: psycopg.Connection) -> str:
    (revision,) = wire.execute("select version_num from alembic_version").fetchone() or ("",)
    return str(revision)


def columns(wire: psycopg.Connection) -> list[tuple[str, ...]]:
    return wire.execute(
        "select table_name, column_name from information_schema.columns"
        " where table_schema = 'public' order by 1, 2"
    ).fetchall()


def contents(wire: psycopg.Connection, tables: dict[str, str]) -> dict[str, tuple[int, str]]:
    """How many rows, and a sum over every word of them, in the columns named."""
    told = {}
    for table, named in tables.items():
        words = f"row({named})::text"
        row = wire.execute(
            f"select count(*), coalesce(md5(string_agg({words}, ',' order by {words})), '')"
            f" from {table} t where not exists (select 1 where '{table}' = 'outbox'"
            f" and to_jsonb(t) ->> 'recipient' = 'x')"
        ).fetchone()
        assert row is not None
        told[table] = row
    return told


class Writing:
    """The house at work: one message after the other, as the app, each timed."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings, self.longest, self.written = settings, 0.0, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Writing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._over.wait(0.01):
            began = time.monotonic()
            with app_of(self.settings, "00000000-0000-4000-8000-00000000000a") as wire:
                wire.execute(ONE_WRITE, {"key": f"w{self.written}"})
            self.written += 1
            self.longest = max(self.longest, time.monotonic() - began)


@pytest.mark.parametrize("revision", ["0001", "0002", "0003"])
def test_k5_a_full_and_open_house_is_upgraded_whole(older: dict[str, str], revision: str) -> None:
    """From each revision that a house may stand on, while it goes on writing."""
    with filled(older, revision) as wire:
        tables = {
            str(table): str(named)
            for table, named in wire.execute(
                "select table_name, string_agg(column_name, ', ' order by ordinal_position)"
                " from information_schema.columns where table_schema = 'public'"
                " and table_name not in ('alembic_version', 'legal_transitions') group by 1"
            ).fetchall()
        }
        before = contents(wire, tables)
        with Writing(older) as house:
            assert eventually(lambda: house.written > 3, 30)
            migrate(older)
            done = house.written
            assert eventually(lambda: house.written > done + 3, 30)
        assert contents(wire, tables) == before
        assert before["outbox"][0] == MESSAGES
        kept = "select count(*) from outbox where recipient = 'x'"
        assert wire.execute(kept).fetchone() == (house.written,)
    assert house.longest < BEARABLE_SECONDS
    with app_of(older, "00000000-0000-4000-8000-00000000000b") as wire:
        assert wire.execute("select count(*) from outbox").fetchone() == (MESSAGES // 3,)
        assert wire.execute("select count(*) from guests").fetchone() == (0,)


def test_k5_a_house_that_has_a_migrations_work_already_takes_it_again(
    older: dict[str, str],
) -> None:
    """What 0026 does was for a while written into the migrations before it."""
    migrate(older, "0025")
    with owner_of(older) as wire:
        assert ("billing_legs", "seen") in columns(wire)
        wire.execute(Path("migrations/sql/0026_ends_with_their_state.sql").read_bytes())
        migrate(older)
        assert stands_on(wire) == NEWEST
        assert ("billing_legs", "seen") not in columns(wire)
        assert wire.execute("select state from memberships_to_end(1)").fetchall() == []


@pytest.mark.parametrize(
    ("kind", "count"), [("code_stray", 1), ("code_missing", 2), ("code_differs", 30)]
)
def test_k5_rows_that_would_be_forbidden_stop_it_before_any_change(
    older: dict[str, str], kind: str, count: int
) -> None:
    """They are named, not merged and not deleted: which is true, a person has to say."""
    with filled(older, "0002") as wire:
        ids = [row for (row,) in wire.execute(LET_BE, [kind, count]).fetchall()]
        fine = wire.execute(LET_BE, ["payment_differs", 3]).fetchall()
        before = columns(wire)
        with pytest.raises(SystemExit) as stopped:
            migrate(older)
        said = str(stopped.value)
        assert f"{count} codes at a door" in said
        assert len([one for one in ids if one in said]) == min(count, 20)
        assert not [one for (one,) in fine if one in said]
        assert (stands_on(wire), columns(wire)) == ("0002", before)
        rows = "select count(*) from divergences where let_be"
        assert wire.execute(rows).fetchone() == (count + 3,)
        wire.execute("update divergences set let_be = false where kind like 'code%'")
        migrate(older)
        assert stands_on(wire) == NEWEST
        with pytest.raises(psycopg.errors.CheckViolation):
            wire.execute(LET_BE, [kind, 1])


def test_k5_an_upgrade_that_must_wait_gives_up_and_lets_the_house_go_on(
    older: dict[str, str],
) -> None:
    """Somebody holds the table for long. Everybody else would stand behind the upgrade's lock."""
    with (
        filled(older, "0002") as wire,
        app_of(older, "00000000-0000-4000-8000-00000000000a") as busy,
    ):
        busy.execute("select count(*) from divergences")
        before = columns(wire)
        began = time.monotonic()
        with pytest.raises(Exception, match="lock timeout"):
            migrate(older)
        assert time.monotonic() - began < 30
        assert (stands_on(wire), columns(wire)) == ("0002", before)
        with app_of(older, "00000000-0000-4000-8000-00000000000a") as other:
            assert other.execute("select count(*) from divergences").fetchone() == (0,)
        busy.rollback()
        migrate(older)
        assert stands_on(wire) == NEWEST


def test_k4_an_index_whose_build_was_cancelled_is_built_anew(older: dict[str, str]) -> None:
    """ "If not exists" would keep what is left of it, and it would never be used."""
    with filled(older, "0003") as wire, owner_of(older) as holder:
        holder.autocommit = False
        holder.execute("update outbox set attempts = 1 where dedupe_key = 'k1'")
        wire.execute("set statement_timeout = '500ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            wire.execute("create index concurrently ix_outbox_mailed on outbox (sent_at)")
        wire.execute("set statement_timeout = 0")
        holder.rollback()
        valid = "select indisvalid from pg_index where indexrelid = 'ix_outbox_mailed'::regclass"
        assert wire.execute(valid).fetchone() == (False,)
        migrate(older)
        assert wire.execute(valid).fetchone() == (True,)
        assert stands_on(wire) == NEWEST


ENTRANCE = """
    set session_replication_role = replica;
    insert into entrances (facility_id, slug, name_ja, name_en, mode, opens, closes, form_key)
    select case when n = 3 then '00000000-0000-4000-8000-00000000000b'
                else '00000000-0000-4000-8000-00000000000a' end::uuid,
           'way-' || n, '口', 'Way', 'walk_in', opens, closes, gen_random_uuid()
    from (values (1, time '06:00', time '02:00'), (2, null, null), (3, time '10:00', time '23:30'))
         ways (n, opens, closes);
    set session_replication_role = origin
"""


def test_k5_an_entrance_keeps_its_hours_on_each_weekday(older: dict[str, str]) -> None:
    migrate(older, "0047")
    with owner_of(older) as wire:
        wire.execute(HOUSE)
        wire.execute(ENTRANCE)
        migrate(older)
        said = "select slug, opens::text[], closes::text[], version from entrances order by slug"
        assert wire.execute(said).fetchall() == [
            ("way-1", ["06:00:00"] * 7, ["02:00:00"] * 7, 1),
            ("way-2", None, None, 1),
            ("way-3", ["10:00:00"] * 7, ["23:30:00"] * 7, 1),
        ]
    with app_of(older, "00000000-0000-4000-8000-00000000000b") as wire:
        assert wire.execute("select slug, opens[7]::text from entrances").fetchall() == [
            ("way-3", "10:00:00")
        ]
        wire.execute("update entrances set opens[7] = null, closes[7] = null")
        with pytest.raises(psycopg.errors.CheckViolation):
            wire.execute("update entrances set opens[6] = null")
