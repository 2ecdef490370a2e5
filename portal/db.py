"""The door to PostgreSQL: transactions, their facility scope, and the isolation check.

`transaction()` is the only way in. It sets the facility with a transaction-local setting at every
BEGIN, so a pooled connection carries nothing over; without a facility, row-level security shows
zero rows. Entities are read through the ORM and never written by it: writes are statements.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, CursorResult, MetaData, Row, TextClause, insert, select, text
from sqlalchemy import event as sa_event
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Session, SessionTransaction

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
Isolation = Literal["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


db = SQLAlchemy(model_class=Base)

SCOPE = text("select set_config('app.facility_id', :facility, true)")

Entity = TypeVar("Entity", bound=Base)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does it: stands in every transition record and ledger line."""

    kind: ActorKind
    id: UUID | None
    name: str


SYSTEM = Actor("system", None, "monban")


class Tx:
    """One open transaction, scoped to one facility."""

    def __init__(self, session: Session, facility_id: UUID | None) -> None:
        self._session = session
        self.facility_id = facility_id
        self.rings: set[Kind] = set()

    def get(self, kind: type[Entity], row_id: UUID | None, *, lock: bool = False) -> Entity | None:
        """The row as the database has it now; None when it is absent or another facility's."""
        if row_id is None:
            return None
        return self._session.get(
            kind, row_id, populate_existing=True, with_for_update=True if lock else None
        )

    def find(self, kind: type[Entity], **equal: Any) -> Entity | None:
        """The one row with these column values, or None."""
        found = select(kind).filter_by(**equal).execution_options(populate_existing=True)
        return self._session.scalars(found).one_or_none()

    def run(self, sql: str, **params: Any) -> CursorResult[Any]:
        """Execute one plain statement with named parameters."""
        return cast("CursorResult[Any]", self._session.execute(text(sql), params))

    def row(self, sql: str, **params: Any) -> Row[Any] | None:
        return self.run(sql, **params).one_or_none()

    def rows(self, sql: str, **params: Any) -> Sequence[Row[Any]]:
        return self.run(sql, **params).all()

    def scalar(self, sql: str, **params: Any) -> Any:
        return self.run(sql, **params).scalar_one_or_none()

    def add(self, kind: type[Base], /, **values: Any) -> UUID:
        """Insert one row of a table without a state column; returns its id."""
        statement = insert(kind).values(**values).returning(cast(Any, kind).id)
        return cast(UUID, self._session.execute(statement).scalar_one())

    def execute(self, statement: TextClause, params: Mapping[str, Any]) -> CursorResult[Any]:
        return cast("CursorResult[Any]", self._session.execute(statement, params))

    def ring(self, kind: Kind) -> None:
        """Tell a worker once this transaction has committed; nothing is rung on a roll-back."""
        self.rings.add(kind)

    def enter(self, finder: str, **params: Any) -> UUID | None:
        """Find a row across facilities and go on in its facility: a link or an event names a row,
        the row its house. `finder` is a call of one of the database's definer functions, which
        answer (facility_id, row id). Returns the row's id, or None when there is none."""
        found: Sequence[Any] | None = self.row(
            f"select found.*, set_config('app.facility_id', found.facility_id::text, true)"
            f" from {finder} found",
            **params,
        )
        if found is None:
            return None
        self.facility_id = found[0]
        self._session.info["facility_id"] = found[0]
        return cast(UUID, found[1])

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo only what is inside when it raises. The scope set inside is undone with it."""
        outer = self.facility_id
        try:
            with self._session.begin_nested():
                yield
        except BaseException:
            self.facility_id = outer
            self._session.info["facility_id"] = outer
            raise


@contextmanager
def transaction(
    facility_id: UUID | None, *, isolation: Isolation = "READ COMMITTED"
) -> Iterator[Tx]:
    """Commit on a clean exit, roll back on any exception. Inside it no edge may be called."""
    session = Session(db.engine, autoflush=False, expire_on_commit=False)
    session.info["facility_id"] = facility_id
    tx = Tx(session, facility_id)
    fence.transaction_began()
    try:
        with session.begin():
            # BEGIN, and with it the scope, before a savepoint can be the first thing asked for.
            options = {} if isolation == "READ COMMITTED" else {"isolation_level": isolation}
            session.connection(execution_options=options)
            yield tx
    finally:
        session.close()
        fence.transaction_ended()
    for kind in tx.rings:
        doorbell.ring(kind)


@sa_event.listens_for(Session, "after_begin")
def _scope_at_begin(session: Session, _: SessionTransaction, connection: Connection) -> None:
    facility_id = session.info.get("facility_id")
    if facility_id is not None and not session.in_nested_transaction():
        connection.execute(SCOPE, {"facility": str(facility_id)})


def violated(fault: IntegrityError) -> str:
    """The name of the constraint that refused the statement; '' when PostgreSQL names none."""
    diagnosis = getattr(fault.orig, "diag", None)
    return getattr(diagnosis, "constraint_name", None) or ""
