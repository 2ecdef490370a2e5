"""Where the long proofs stand: rows that can be put back, and what must be true of them all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from portal.db import db, transaction
from portal.jobs.house import House
from portal.move import TABLES
from portal.outcome import Applied
from portal.verbs import payments
from sandbox.stripe.testing import StandIn
from sandbox.watch import sqlstate, watch
from tests.cast import Booked, Cast
from tests.conftest import KEPT
from tests.outside import Owner, pay


class Snapshots:
    """The rows of every table, put aside and put back: each round of a proof begins the same."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._columns: dict[str, str] = {}

    def take(self) -> None:
        self.forget()
        self._columns = dict(
            self._owner.rows(
                """
                select table_name, string_agg(quote_ident(column_name), ', ')
                from information_schema.columns
                where table_schema = 'public' and is_generated = 'NEVER' and table_name <> all (%s)
                group by 1
                """,
                list(KEPT),
            )
        )
        copies = [f"create table kept.{name} as table {name}" for name in self._columns]
        self._run("create schema kept", *copies)

    def restore(self) -> None:
        """As the owner, with triggers off: this is no verb, it is another day."""
        self._run(
            "set session_replication_role = replica",
            *(f"delete from {name}" for name in self._columns),
            *(
                f"insert into {name} ({columns}) overriding system value"
                f" select {columns} from kept.{name}"
                for name, columns in self._columns.items()
            ),
            "set session_replication_role = origin",
        )

    def forget(self) -> None:
        self._run("drop schema if exists kept cascade")

    def _run(self, *statements: str) -> None:
        self._owner.wire.execute("; ".join(statements))


@dataclass
class Ground:
    """A house with its people, a worker's hands, and the owner's eyes."""

    cast: Cast
    worker: House
    owner: Owner
    snapshots: Snapshots

    @property
    def app(self) -> Flask:
        return self.cast.app

    def opened(self, stay: Booked) -> tuple[UUID, str]:
        """A card payment of what the stay owes: its id, and the provider's."""
        desk = self.worker.desk(stay.facility_id)
        said = payments.open_payment(desk, self.cast.sato.actor, stay.id, "balance")
        assert isinstance(said, Applied), said
        intent = self.owner.one("select intent_id from payments where id = %s", said.subject)
        assert said.subject is not None
        return said.subject, str(intent)

    def paid_there(self, stripe: StandIn, **booked: Any) -> Booked:
        """A stay whose guest has paid by card; we have not heard of it."""
        stay = self.cast.book(**booked)
        pay(stripe, self.opened(stay)[1])
        return stay


# What must be true of all rows --------------------------------------------------------------------

BROKEN_CHAIN = """
    with records as (
        select subject_id, from_state, to_state,
               lag(to_state) over (partition by subject_id order by id) as before,
               row_number() over (partition by subject_id order by id desc) as from_the_end
        from transitions where machine = %s
    )
    select s.id, s.state, r.from_state, r.to_state, r.before
    from {table} s left join records r on r.subject_id = s.id
    where (r.before is not null and r.before is distinct from r.from_state)
       or (r.from_the_end = 1 and r.to_state <> s.state)
"""


def records_equal_transitions(owner: Owner) -> None:
    """Every record begins where the one before it ended, and the last one ends where its row is:
    no transition without its record, no record without its transition."""
    for machine, table in TABLES.items():
        broken = owner.rows(BROKEN_CHAIN.format(table=table), machine)
        assert broken == [], (table, broken)


def moves(owner: Owner, subject: UUID) -> list[str]:
    """The events that moved a row, in order; its creation and notes within a state are none."""
    rows = owner.rows(
        "select event from transitions where subject_id = %s and from_state <> to_state"
        " order by id",
        subject,
    )
    return [name for (name,) in rows]


@contextmanager
def sqlstates() -> Iterator[list[str]]:
    """The SQLSTATE of every error with which PostgreSQL answers a statement meanwhile."""
    heard: list[str] = []
    with watch(fault=lambda reason: heard.append(str(sqlstate(reason)))):
        yield heard


def only_read_committed(app: Flask, patch: pytest.MonkeyPatch) -> None:
    """Whatever isolation the portal asks for, its connections are given READ COMMITTED."""
    with app.app_context():
        dialect: Any = db.engine.dialect
        given = dialect.set_isolation_level
        patch.setattr(dialect, "set_isolation_level", lambda wire, _: given(wire, "READ COMMITTED"))
        with transaction(None, isolation="REPEATABLE READ") as tx:
            assert tx.scalar("show transaction_isolation") == "read committed"
