"""What the schema promises holds without SERIALIZABLE: each promise is read from the catalogue of
the migrated database, and those that two writers could break at once are tried by two.

That a state is moved by its mark alone is in tests/machines/test_tables.py: every state column has
the guard there, and every pair of states is tried without a mark and with a forged one.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from sandbox.seam.running import eventually
from tests.conftest import psycopg_url
from tests.db.catalogue import Catalogue, Key, Reference, Row, Rows, put
from tests.figures import Figure
from tests.outside import Owner

Wire = psycopg.Connection[Any]

APPENDED_ONLY = {
    "blocklist_keys",
    "cancellation_steps",
    "cancellation_terms",
    "consumed_effects",
    "day_close_lines",
    "day_closes",
    "document_copies",
    "documents",
    "gate_audits",
    "ledger_lines",
    "lodging_tax_bands",
    "lodging_tax_tables",
    "membership_periods",
    "quota_lines",
    "register_readings",
    "ticket_lines",
    "transitions",
}

# What makes a row one of those that a promise is about, where a new row is none by itself.
PAID: Row = {"kind": "payment", "amount": -100}
RETURNED: Row = {"kind": "refund"}
TAKEN_BACK: Row = {"kind": "chargeback"}
ONE_OF_THEM: dict[str, Row] = {
    "fk_quota_lines_facility_id_stay_id_stays": {"kind": "taken", "amount": -1},
    "fk_ticket_lines_facility_id_stay_id_stays": {"kind": "taken", "amount": -1},
    "uq_ledger_lines_payment": PAID,
    "uq_ledger_lines_refund": RETURNED,
    "uq_ledger_lines_dispute": TAKEN_BACK,
    "fk_ledger_lines_facility_id_dispute_id_disputes": TAKEN_BACK,
    "fk_ledger_lines_facility_id_payment_id_payments": PAID,
    "fk_ledger_lines_facility_id_refund_id_refunds": RETURNED,
    "fk_documents_facility_id_corrects_id_documents": {"kind": "return"},
}


@pytest.fixture
def catalogue(owner: Owner) -> Catalogue:
    return Catalogue(owner)


@pytest.fixture
def rows(catalogue: Catalogue) -> Rows:
    return Rows(catalogue)


@pytest.fixture
def wires(settings: dict[str, str]) -> Iterator[tuple[Wire, Wire]]:
    """Two connections of the app's own role."""
    url = psycopg_url(settings["DATABASE_URL"])
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        yield first, second
        for wire in (first, second):
            wire.rollback()


def test_every_promise_holds_at_once_and_of_every_row(owner: Owner) -> None:
    """None waits for the commit, none was only declared, and nothing is taken along."""
    loose = owner.rows(
        "select conname from pg_constraint where connamespace = 'public'::regnamespace and"
        " (condeferrable or not conenforced or not convalidated"
        "  or (contype = 'f' and (confdeltype, confupdtype) <> ('a', 'a')))"
    )
    assert loose == []
    late = owner.rows(
        "select indexrelid::regclass::text from pg_index join pg_class t on t.oid = indrelid"
        " where t.relnamespace = 'public'::regnamespace and (indisunique or indisexclusion)"
        " and not (indisvalid and indisready and (indimmediate or indisexclusion))"
    )
    assert late == []


# Keys: one of two ------------------------------------------------------------------------------


class Race:
    """Two writers that have looked and seen nobody."""

    def __init__(self, catalogue: Catalogue, rows: Rows, wires: tuple[Wire, Wire]) -> None:
        self.catalogue, self.rows, self.wires = catalogue, rows, wires

    def refused(self, key: Key) -> str:
        """Which promise refuses the second; '' where both are let in."""
        pair = self._pair(key)
        for wire, row in zip(self.wires, pair, strict=True):
            self._look(wire, key, row)
        first, second = self.wires
        put(first, key.table, pair[0])
        try:
            with ThreadPoolExecutor(1) as pool:
                late = pool.submit(put, second, key.table, pair[1])
                eventually(lambda: late.done() or self._waits(second, first), 10)
                assert late.done() or self._waits(second, first)
                first.commit()
                late.result(10)
        except (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation) as fault:
            return str(fault.diag.constraint_name)
        finally:
            second.rollback()
        return ""

    def _pair(self, key: Key) -> tuple[Row, Row]:
        """Alike in the key, and in nothing else that another key looks at."""
        columns = self.catalogue.columns_of(key)
        more = ONE_OF_THEM.get(key.name, {})
        one, two = (self.rows.of(key.table, {*columns, "id"}) | more for _ in range(2))
        for reference in self.catalogue.references_of(key.table):
            if columns & set(reference.columns) - {"facility_id"}:
                columns |= set(reference.columns) & set(one)
        return one, two | {name: one[name] for name in columns}

    def _look(self, wire: Wire, key: Key, row: Row) -> None:
        enter(wire, key.table, row)
        assert wire.execute("show transaction_isolation").fetchone() == ("read committed",)
        columns = sorted(self.catalogue.columns_of(key))
        alike = " and ".join(f"{name} = %s" for name in columns)
        sought = [row[name] for name in columns]
        seen = wire.execute(f"select count(*) from {key.table} where {alike}", sought)
        assert seen.fetchone() == (0,)

    def _waits(self, wire: Wire, for_whom: Wire) -> bool:
        blockers = "select pg_blocking_pids(%s)"
        found = self.catalogue.owner.one(blockers, wire.info.backend_pid)
        return for_whom.info.backend_pid in found


@pytest.fixture
def race(catalogue: Catalogue, rows: Rows, wires: tuple[Wire, Wire]) -> Race:
    return Race(catalogue, rows, wires)


def enter(wire: Wire, table: str, row: Row) -> None:
    """Begin as work of the row's house."""
    house = row.get("id" if table == "facilities" else "facility_id")
    wire.execute("select set_config('app.facility_id', %s, true)", [str(house or "")])


def test_of_two_that_saw_nobody_the_second_is_refused(
    catalogue: Catalogue, race: Race, figure: Figure
) -> None:
    """Both have looked in READ COMMITTED before either wrote: the key alone decides."""
    tried = [key for key in catalogue.keys if catalogue.app_may("insert", key.table)]
    broken = {
        key.name: said for key in tried if (said := race.refused(key)) not in like(key, tried)
    }
    assert broken == {}
    assert {key.table for key in catalogue.keys} - {key.table for key in tried} == {
        "legal_transitions",
        "consumption_tax_rates",
    }
    exclusions = sum(key.excludes for key in tried)
    figure(
        "promises of the schema",
        unique_keys=len(tried) - exclusions,
        exclusions=exclusions,
        refused_the_second_writer=len(tried),
    )


def like(key: Key, keys: list[Key]) -> set[str]:
    """Itself, and keys that promise more: of fewer columns, and of every row. An id is alone in
    its house because it is alone anywhere."""
    return {key.name} | {
        other.name
        for other in keys
        if other.table == key.table and not other.where and set(other.parts) < set(key.parts)
    }


def test_a_new_key_joins_by_itself_and_without_a_key_both_are_let_in(
    owner: Owner, race: Race
) -> None:
    key = Key("uq_of_a_test", "guests", ("facility_id", "kana"), "", excludes=False)
    assert race.refused(key) == ""
    owner.run("create unique index uq_of_a_test on guests (facility_id, kana)")
    try:
        assert key in Catalogue(owner).keys
        assert race.refused(key) == key.name
    finally:
        owner.run("drop index uq_of_a_test")


# References -------------------------------------------------------------------------------------


def test_no_row_refers_to_what_is_not_there(
    catalogue: Catalogue, rows: Rows, wires: tuple[Wire, Wire], figure: Figure
) -> None:
    tried = [one for one in catalogue.references if catalogue.app_may("insert", one.table)]
    assert tried == catalogue.references
    broken = [one.name for one in tried if not dangles(catalogue, rows, wires[0], one)]
    assert broken == []
    figure("promises of the schema", references_refused_what_is_not_there=len(tried))


def dangles(catalogue: Catalogue, rows: Rows, wire: Wire, reference: Reference) -> bool:
    """Whether such a row is refused, by this reference or one of the same columns."""
    row = rows.of(reference.table, reference.columns) | ONE_OF_THEM.get(reference.name, {})
    astray = set(reference.columns) - {"facility_id"} or {"facility_id"}
    columns = catalogue.columns[reference.table]
    row |= {name: rows.value(columns[name], "") for name in astray}
    enter(wire, reference.table, row)
    try:
        put(wire, reference.table, row)
    except psycopg.errors.ForeignKeyViolation as fault:
        others = catalogue.references_of(reference.table)
        return fault.diag.constraint_name in {
            one.name for one in others if astray & set(one.columns)
        }
    finally:
        wire.rollback()
    return False


def test_nothing_that_is_referred_to_can_be_taken_away(catalogue: Catalogue) -> None:
    """By privilege already, and by the reference's own lock on the row where a role may."""
    parents = {one.parent for one in catalogue.references}
    assert [table for table in sorted(parents) if catalogue.app_may("delete", table)] == []


def test_a_reference_between_rows_of_a_house_holds_the_house(catalogue: Catalogue) -> None:
    housed = {table for table, columns in catalogue.columns.items() if "facility_id" in columns}
    loose = [
        one.name
        for one in catalogue.references
        if {one.table, one.parent} <= housed and "facility_id" not in one.columns
    ]
    # Its space is the one of the reference beside it, which holds the house.
    assert loose == ["fk_stays_space_no_space_id_spaces"]


# Lists and history ------------------------------------------------------------------------------


def test_a_word_that_is_in_no_list_is_not_written(
    catalogue: Catalogue, rows: Rows, wires: tuple[Wire, Wire]
) -> None:
    wire = wires[0]
    assert len(catalogue.first) >= 20
    for table, column in catalogue.first:
        if catalogue.app_may("insert", table):
            row = rows.of(table, ("id",)) | {column: "nonsense"}
            enter(wire, table, row)
            with pytest.raises(psycopg.errors.CheckViolation):
                put(wire, table, row)
            wire.rollback()


def test_what_is_appended_only_is_what_the_app_may_neither_change_nor_delete(
    catalogue: Catalogue, owner: Owner
) -> None:
    """tests/machines/test_tables.py tries each; here none is lost from among them, not even by a
    column of it."""
    found = {
        table
        for table in catalogue.columns
        if catalogue.app_may("insert", table)
        and not catalogue.app_may("delete", table)
        and not owner.one("select has_any_column_privilege('portal_app', %s, 'update')", table)
    }
    assert found == APPENDED_ONLY
