"""The schema's promises as the database's own catalogue tells them, and rows that keep them.

Nothing is written out by hand: a new table, column or key is read like the others.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.outside import Owner

Row = dict[str, Any]

NOT_OURS = ("alembic_version",)
DRAWER = ("opening", "cash_in", "cash_out", "counted", "taken", "left_open")
DESCRIBED: Mapping[str, Any] = {
    "currency": "JPY",
    **dict.fromkeys(DRAWER, 0),
    "fee_percent": 50,
    "granted": 4,
    "months": 6,
    "tickets": 10,
    "used": 1,
    "worth": 0,
}
"""Columns whose values no type and no list tells."""


@dataclass(frozen=True)
class Key:
    """A unique key, a unique index or an exclusion."""

    name: str
    table: str
    parts: tuple[str, ...]
    """Columns, and expressions over columns."""
    where: str
    """'' for every row."""
    excludes: bool


@dataclass(frozen=True)
class Reference:
    name: str
    table: str
    columns: tuple[str, ...]
    parent: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    needed: bool
    made_of: str
    """The expression of a generated column."""


_KEYS = """
    select c.relname::text, t.relname::text,
           array(select pg_get_indexdef(c.oid, n::int, true)
                 from generate_series(1, i.indnkeyatts) n),
           coalesce(pg_get_expr(i.indpred, i.indrelid), ''), i.indisexclusion
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
    where t.relnamespace = 'public'::regnamespace and (i.indisunique or i.indisexclusion)
      and t.relname <> all (%s)
    order by 2, c.oid
"""
_REFERENCES = """
    select c.conname::text, t.relname::text,
           array(select a.attname::text from unnest(c.conkey) with ordinality k (n, place)
                 join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.n order by place),
           p.relname::text,
           array(select a.attname::text from unnest(c.confkey) with ordinality k (n, place)
                 join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.n order by place)
    from pg_constraint c join pg_class t on t.oid = c.conrelid
    join pg_class p on p.oid = c.confrelid
    where c.contype = 'f' and c.connamespace = 'public'::regnamespace
    order by 2, 1
"""
_COLUMNS = """
    select t.relname::text, a.attname::text, format_type(a.atttypid, null),
           a.attnotnull and d.oid is null and a.attidentity = '',
           case when a.attgenerated <> '' then pg_get_expr(d.adbin, d.adrelid) else '' end
    from pg_attribute a join pg_class t on t.oid = a.attrelid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where t.relnamespace = 'public'::regnamespace and t.relkind = 'r' and a.attnum > 0
      and not a.attisdropped
    order by t.relname, a.attnum
"""
_LISTS = """
    select t.relname::text, (regexp_match(pg_get_constraintdef(c.oid),
           'CHECK \\(\\((\\w+) = ANY \\(ARRAY\\[''([^'']*)'''))
    from pg_constraint c join pg_class t on t.oid = c.conrelid
    where c.contype = 'c' and c.connamespace = 'public'::regnamespace
"""
_FIRST_STATES = "select table_name, to_state from legal_transitions where from_state = ''"


class Catalogue:
    """What the database promises at this moment."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.keys = [
            Key(name, table, tuple(parts), where, excludes)
            for name, table, parts, where, excludes in owner.rows(_KEYS, list(NOT_OURS))
        ]
        self.references = [
            Reference(name, table, tuple(columns), parent, tuple(referred))
            for name, table, columns, parent, referred in owner.rows(_REFERENCES)
        ]
        self.columns: dict[str, dict[str, Column]] = {}
        for table, *column in owner.rows(_COLUMNS):
            self.columns.setdefault(table, {})[column[0]] = Column(*column)
        self.first = {(table, found[0]): found[1] for table, found in owner.rows(_LISTS) if found}
        self.first |= {(table, "state"): state for table, state in owner.rows(_FIRST_STATES)}

    def columns_of(self, key: Key) -> set[str]:
        """What is written for it: of a generated column, what it is made of."""
        named = self._named(key.table, key.parts)
        made = [self.columns[key.table][name].made_of for name in named]
        return self._named(key.table, made) | {
            name for name, of in zip(named, made, strict=True) if not of
        }

    def _named(self, table: str, texts: Iterable[str]) -> set[str]:
        words = {word for text in texts for word in re.findall(r"\w+", text)}
        return words & set(self.columns[table])

    def references_of(self, table: str) -> list[Reference]:
        return [one for one in self.references if one.table == table]

    def app_may(self, what: str, table: str) -> bool:
        asked = "select has_table_privilege('portal_app', %s::regclass, %s)"
        return bool(self.owner.one(asked, table, what))


# Of these columns a row has exactly one: the first, where a test names none of them.
ONE_OF = {
    **dict.fromkeys(("ledger_lines", "documents"), (("stay_id", "membership_id"),)),
    "register_readings": (("stay_id", "first_day"),),
}


class Rows:
    """Rows that agree with every promise and with no row before them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self._count = catalogue, count(1)
        self.house = self._put("facilities", self.of("facilities"))

    def of(self, table: str, fill: Collection[str] = ()) -> Row:
        """What has to be said of a row, and the columns `fill`. Each row that it refers to is its
        own, and stands."""
        columns = self.catalogue.columns[table]
        wanted = [one.name for one in columns.values() if one.needed or one.name in fill]
        wanted += [
            first for first, *others in ONE_OF.get(table, ()) if not {first, *others} & {*wanted}
        ]
        row = self._referring(table, wanted)
        return row | {name: self.value(columns[name], table) for name in wanted if name not in row}

    def value(self, column: Column, table: str) -> Any:
        """One that no other row has, where there is a choice."""
        number = next(self._count)
        if (said := self.catalogue.first.get((table, column.name))) is not None:
            return said
        if column.name in DESCRIBED:
            return DESCRIBED[column.name]
        return {
            "text": f"{column.name} {number}",
            "uuid": uuid4(),
            "bytea": str(number).encode(),
            "integer": number,
            "smallint": number,
            "bigint": number + 1_000_000,
            "boolean": False,
            "date": date(2000 + number // 12 % 90, number % 12 + 1, 1),
            "jsonb": Jsonb({}),
            "timestamp with time zone": datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        }[column.type]

    def _referring(self, table: str, wanted: Collection[str]) -> Row:
        row: Row = {}
        parents: dict[str, Row] = {}
        for one in self.catalogue.references_of(table):
            beyond_the_house = set(one.columns) - {"facility_id"}
            if beyond_the_house and not beyond_the_house & set(wanted):
                continue
            if one.parent == "facilities":
                parents[one.parent] = self.house
            elif one.parent not in parents:
                parents[one.parent] = self._put(one.parent, self.of(one.parent))
            of = [parents[one.parent][name] for name in one.referred]
            row |= dict(zip(one.columns, of, strict=True))
        return row

    def _put(self, table: str, row: Row) -> Row:
        return put(self.catalogue.owner.wire, table, row)


def put(wire: psycopg.Connection[Any], table: str, row: Row) -> Row:
    """Insert it; returns it whole."""
    names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
    done = wire.execute(
        f"insert into {table} ({names}) overriding system value values ({marks}) returning *",
        list(row.values()),
    )
    assert done.description is not None
    found = done.fetchone()
    assert found is not None
    return dict(zip((column.name for column in done.description), found, strict=True))
