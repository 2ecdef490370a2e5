"""The door to PostgreSQL: transactions, their facility scope, and the isolation check.

`transaction()` is the only way in. Before its first statement it sets the facility, for this
transaction alone, so a pooled connection carries nothing over; without a facility, row-level
security shows zero rows. Statements go to the connection as they are written: no ORM session
stands between. An entity is a snapshot of one row; writes are statements.
"""

import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, Protocol, TypeVar, cast
from uuid import UUID

import psycopg
from flask_sqlalchemy import SQLAlchemy
from psycopg.rows import namedtuple_row
from sqlalchemy import Connection, MetaData, make_url, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, IntegrityError
from sqlalchemy.orm import DeclarativeBase, configure_mappers

from portal import doorbell, fence
from portal.doorbell import Kind

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

ActorKind = Literal["staff", "guest", "system", "provider"]
Isolation = Literal["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"]


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


db = SQLAlchemy(model_class=Base)

ALONE = "alone"
"""The engine whose connections commit each statement by itself."""

SCOPE = "select set_config('app.facility_id', :facility, true)"

Entity = TypeVar("Entity", bound=Base)


class Row(Protocol):
    """One row of an answer: a tuple whose parts are named as its columns."""

    def __getattr__(self, column: str) -> Any: ...
    def __getitem__(self, place: int) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


Answer = psycopg.Cursor[Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does it: stands in every transition record and ledger line."""

    kind: ActorKind
    id: UUID | None
    name: str

    @property
    def columns(self) -> dict[str, Any]:
        """As a row names it."""
        return {"actor_kind": self.kind, "actor_id": self.id, "actor_name": self.name}


SYSTEM = Actor("system", None, "monban")


class Tx:
    """One open transaction, scoped to one facility."""

    def __init__(self, wire: Connection, facility_id: UUID | None) -> None:
        self._wire = wire
        self.facility_id = facility_id
        self.rings: set[Kind] = set()
        self._scope_to_set = facility_id is not None

    def run(self, sql: str, **params: Any) -> Answer:
        """Execute one plain statement with named parameters."""
        if self._scope_to_set:
            self._scope_to_set = False
            self._send(_driver_sql(SCOPE), {"facility": str(self.facility_id or "")})
        return self._send(_driver_sql(sql), params)

    def _send(self, sql: str, params: dict[str, Any]) -> Answer:
        """Past SQLAlchemy, whose result would cost more than most of our statements. Its pool, its
        transactions and its names for what goes wrong stay."""
        driver = cast("psycopg.Connection[Any]", self._wire.connection.driver_connection)
        try:
            return driver.cursor(row_factory=namedtuple_row).execute(sql, params)
        except psycopg.Error as fault:
            raise self._named(fault, sql, params, over=driver.closed) from fault

    def _named(
        self, fault: psycopg.Error, sql: str, params: dict[str, Any], *, over: bool
    ) -> DBAPIError:
        """A connection that is `over` leaves the pool."""
        if over:
            self._wire.invalidate(fault)
        named = DBAPIError.instance(
            sql,
            params,
            fault,
            psycopg.Error,
            hide_parameters=True,
            connection_invalidated=over,
            dialect=self._wire.dialect,
        )
        return cast(DBAPIError, named)

    def leave(self) -> None:
        """The next piece of work in this transaction begins in no facility. The scope is set before
        the next statement, unless that one enters another."""
        self._scope_to_set = self._scope_to_set or self.facility_id is not None
        self.facility_id = None

    def row(self, sql: str, **params: Any) -> Row | None:
        """The one row that a statement answers; it may have none, and never two."""
        found = self.run(sql, **params).fetchall()
        if len(found) > 1:
            raise LookupError(f"{len(found)} rows where one was asked for")
        return found[0] if found else None

    def rows(self, sql: str, **params: Any) -> Sequence[Row]:
        return self.run(sql, **params).fetchall()

    def scalar(self, sql: str, **params: Any) -> Any:
        """The first column of `row`; None when there is none."""
        found = self.row(sql, **params)
        return None if found is None else found[0]

    def get(
        self, kind: type[Entity], row_id: UUID | None, *, lock: bool = False, first: str = ""
    ) -> Entity | None:
        """The row as the database has it now; None when it is absent or another facility's.
        `first` is a query that locks what has to be locked before it, in the same round trip."""
        if row_id is None:
            return None
        found = self.row(_by_id(kind, first, lock=lock), id=row_id)
        return None if found is None else _snapshot(kind, found)

    def add(self, kind: type[Base], /, **values: Any) -> UUID:
        """Insert one row of a table without a state column; returns its id."""
        named = ", ".join(f":{name}" for name in values)
        made = (
            f"insert into {kind.__tablename__} ({', '.join(values)}) values ({named}) returning id"
        )
        return cast(UUID, self.scalar(made, **values))

    def made_by(self, kind: type[Base], form_key: UUID) -> UUID | None:
        """The row that this form has made already: a form makes one thing, however often it is
        sent."""
        found = f"select id from {kind.__tablename__} where form_key = :key"
        return cast("UUID | None", self.scalar(found, key=form_key))

    def ring(self, kind: Kind) -> None:
        """Tell a worker once this transaction has committed; nothing is rung on a roll-back."""
        self.rings.add(kind)

    def enter(self, finder: str, **params: Any) -> UUID | None:
        """Find a row across facilities and go on in its facility: a link or an event names a row,
        the row its house. `finder` is a call of one of the database's definer functions, which
        answer (facility_id, row id). Returns the row's id, or None when there is none."""
        left, self._scope_to_set = self._scope_to_set, False
        found = self.row(
            f"select found.*, set_config('app.facility_id', found.facility_id::text, true)"
            f" from {finder} found",
            **params,
        )
        if found is None:
            self._scope_to_set = left
            return None
        self.facility_id = found[0]
        return cast(UUID, found[1])

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo only what is inside when it raises. The scope set inside is undone with it."""
        outer = self.facility_id
        try:
            with self._wire.begin_nested():
                yield
        except BaseException:
            self.facility_id, self._scope_to_set = outer, True
            raise


@contextmanager
def transaction(
    facility_id: UUID | None, *, isolation: Isolation = "READ COMMITTED"
) -> Iterator[Tx]:
    """Commit on a clean exit, roll back on any exception. Inside it no edge may be called. Under
    AUTOCOMMIT each statement is a transaction of its own, which saves two round trips; a scope
    would end with the statement that sets it, so there is none. It has connections of its own: to
    turn one and turn it back costs as much as a short statement."""
    if isolation == "AUTOCOMMIT" and facility_id is not None:
        raise ValueError("a facility's scope lasts for a transaction")
    fence.transaction_began()
    try:
        with _begun(isolation) as wire:
            tx = Tx(wire, facility_id)
            yield tx
    finally:
        fence.transaction_ended()
    for kind in tx.rings:
        doorbell.ring(kind)


@contextmanager
def _begun(isolation: Isolation) -> Iterator[Connection]:
    if isolation == "AUTOCOMMIT":
        with db.engines[ALONE].connect() as wire:
            yield wire
        return
    with db.engine.connect() as wire:
        if isolation != "READ COMMITTED":
            wire.execution_options(isolation_level=isolation)
        with wire.begin():
            yield wire


def _snapshot(kind: type[Entity], row: Row) -> Entity:
    """The row under its entity's names. No session knows it, so nothing can save it."""
    made = kind.__new__(kind)
    made.__dict__.update(row._asdict())
    return made


def require_alive(wire: Any, *_: object) -> None:
    """Before a pooled connection is used: the server has nothing to say to an idle one but that it
    is over, and then the pool opens another. A ping would cost each transaction a round trip."""
    watch = select.poll()
    watch.register(wire.fileno(), select.POLLIN)
    if watch.poll(0):
        raise DisconnectionError("the server ended this connection")


@lru_cache(maxsize=4096)
def _driver_sql(sql: str) -> str:
    """`:name` as the driver writes it; each text of ours is translated once."""
    return str(text(sql).compile(dialect=_DIALECT))


_DIALECT = make_url("postgresql+psycopg://").get_dialect()()


@cache
def _by_id(kind: type[Base], first: str, *, lock: bool) -> str:
    """Every column of an entity's row, as one statement. What does not depend on the row, as the
    count does not, is settled before the row is looked for."""
    configure_mappers()  # until then an entity's attributes cannot be read
    columns = ", ".join(column.name for column in kind.__table__.columns)
    before = f"with first as materialized ({first}) " if first else ""
    settled = " and (select count(*) from first) >= 0" if first else ""
    locked = " for update" if lock else ""
    return f"{before}select {columns} from {kind.__tablename__} where id = :id{settled}{locked}"


def violated(fault: IntegrityError) -> str:
    """The name of the constraint that refused the statement; '' when PostgreSQL names none."""
    diagnosis = getattr(fault.orig, "diag", None)
    return getattr(diagnosis, "constraint_name", None) or ""
