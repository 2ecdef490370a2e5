"""The state tables are the contract: written out here once more, and compared."""

import itertools
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from psycopg.errors import InsufficientPrivilege
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError

from portal.db import Actor, transaction
from portal.machines import MACHINES, IllegalTransitionError, Machine
from portal.move import TABLES, create, move, note, standing
from tests.cast import Cast
from tests.outside import Owner, at_once, recorded

TABLE = {
    "membership": {
        "applying": {
            "approved_for_checkout": "checkout",
            "approved_for_desk_billing": "active",
            "ended": "ended",
        },
        "checkout": {"first_payment_landed": "active", "ended": "ended"},
        "active": {
            "payment_overdue": "past_due",
            "end_scheduled": "scheduled_to_end",
            "ended": "ended",
        },
        "past_due": {
            "payment_recovered": "active",
            "end_scheduled": "scheduled_to_end",
            "ended": "ended",
        },
        "scheduled_to_end": {"resumed": "active", "ended": "ended"},
        "ended": {},
    },
    "stay": {
        "reserved": {"admitted": "admitted", "cancelled": "cancelled", "no_show": "no_show"},
        "no_show": {"reinstated": "reserved", "cancelled": "cancelled"},
        "admitted": {"departed": "departed"},
        "cancelled": {},
        "departed": {},
    },
    "entry_key": {
        "requested": {
            "set_on_lock": "issued",
            "lock_refused": "failed",
            "revoke_asked": "revoking",
        },
        "issued": {"revoke_asked": "revoking", "vanished_from_lock": "missing"},
        "missing": {"set_on_lock": "issued", "revoke_asked": "revoking"},
        "revoking": {"removed_from_lock": "revoked"},
        "failed": {},
        "revoked": {},
    },
    "payment": {
        "open": {
            "provider_processing": "processing",
            "provider_succeeded": "succeeded",
            "provider_canceled": "canceled",
            "answer_lost": "unknown",
        },
        "processing": {
            "provider_succeeded": "succeeded",
            "provider_declined": "open",
            "provider_canceled": "canceled",
            "answer_lost": "unknown",
        },
        "unknown": {
            "provider_processing": "processing",
            "provider_declined": "open",
            "provider_succeeded": "succeeded",
            "provider_canceled": "canceled",
        },
        "succeeded": {"refund_owed": "refund_owed"},
        "refund_owed": {"refunded_in_full": "refunded", "refund_withdrawn": "succeeded"},
        "canceled": {},
        # A refund can fail after it had succeeded: docs/adr/0004.
        "refunded": {"refund_withdrawn": "succeeded"},
    },
    "refund": {
        "asked": {
            "accepted": "pending",
            "provider_succeeded": "succeeded",
            "provider_refused": "failed",
            "answer_lost": "unknown",
        },
        "unknown": {
            "accepted": "pending",
            "provider_succeeded": "succeeded",
            "provider_refused": "failed",
            "nothing_sent": "asked",
        },
        "pending": {"provider_succeeded": "succeeded", "provider_failed": "failed"},
        "succeeded": {"provider_failed": "failed"},
        "failed": {},
    },
    "order": {
        "paid": {"claimed": "fulfilling", "parked": "queued", "money_returned": "refunded"},
        "queued": {"claimed": "fulfilling", "money_returned": "refunded"},
        "fulfilling": {"fulfilled": "fulfilled", "fulfilment_failed": "failed"},
        "failed": {"money_returned": "refunded"},
        "refunded": {},
        "fulfilled": {},
    },
    "supply": {
        "offered": {"matched": "matched", "cancelled": "cancelled"},
        "matched": {"execution_started": "executing", "cancelled": "cancelled"},
        # Nobody pulls a card while it is being used.
        "executing": {"completed": "completed", "execution_failed": "execution_failed"},
        "execution_failed": {"money_returned": "refunded"},
        "cancelled": {},
        "completed": {},
        "refunded": {},
    },
    "settlement": {
        "awaiting_delivery": {"delivered": "window_open", "delivery_failed": "delivery_failed"},
        "window_open": {"window_closed": "settled", "disputed": "held"},
        "held": {"dispute_cleared": "window_open", "delivery_failed": "delivery_failed"},
        "delivery_failed": {},
        "settled": {},
    },
    "webhook_event": {"processing": {"completed": "completed"}, "completed": {}},
}
INITIAL = {
    "membership": "applying",
    "stay": "reserved",
    "entry_key": "requested",
    "payment": "open",
    "refund": "asked",
    "order": "paid",
    "supply": "offered",
    "settlement": "awaiting_delivery",
    "webhook_event": "processing",
}
BY_NAME = {machine.name: machine for machine in MACHINES}
SOMEBODY = Actor("staff", None, "佐藤 健")

PAIRS = [
    (name, was, to) for name in TABLES for was, to in itertools.product(TABLE[name], TABLE[name])
]
LEGAL = [
    (name, was, event, to)
    for name in TABLES
    for was, exits in TABLE[name].items()
    for event, to in exits.items()
]


@pytest.mark.parametrize("name", TABLE)
def test_the_table_is_the_contract(name: str) -> None:
    machine = BY_NAME[name]
    told: dict[str, dict[str, str]] = {state: {} for state in TABLE[name]}
    for was, event, to in machine.pairs():
        told[was][event] = to
    assert told == TABLE[name]
    assert machine.initial == INITIAL[name]
    assert machine.terminal == {state for state, exits in TABLE[name].items() if not exits}


def test_every_machine_has_its_table_here() -> None:
    assert [machine.name for machine in MACHINES] == list(BY_NAME)
    assert set(BY_NAME) == set(TABLE) == set(INITIAL)


@pytest.mark.parametrize("to", ["nowhere", "here"])
def test_a_table_that_leads_nowhere_or_back_is_not_made(to: str) -> None:
    with pytest.raises(IllegalTransitionError):
        Machine.of("lost", initial="here", table={"here": {"went": to}})


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_no_state_moves_to_itself(machine: Machine) -> None:
    assert [pair for pair in machine.pairs() if pair[0] == pair[2]] == []
    assert machine.initial == INITIAL[machine.name]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_state_is_reached_from_the_first(machine: Machine) -> None:
    reached, new = set(), {machine.initial}
    while new:
        reached |= new
        new = {to for was, _, to in machine.pairs() if was in reached} - reached
    assert reached == {state for was, _, to in machine.pairs() for state in (was, to)}


def test_an_event_that_is_not_in_the_table_is_loud() -> None:
    for name, table in TABLE.items():
        events = {event for exits in table.values() for event in exits} | {"nonsense", ""}
        for state, event in itertools.product(table, events):
            assert BY_NAME[name].allows(state, event) == (event in table[state])
            if event not in table[state]:
                with pytest.raises(IllegalTransitionError):
                    BY_NAME[name].target(state, event)


def test_the_database_holds_the_same_tables(owner: Owner) -> None:
    held = set(owner.rows("select machine, from_state, event, to_state from legal_transitions"))
    wanted = {
        (name, was, event, to)
        for name in TABLES
        for was, exits in TABLE[name].items()
        for event, to in exits.items()
    } | {(name, "", "created", INITIAL[name]) for name in TABLES}
    assert held == wanted
    assert set(owner.rows("select distinct table_name, machine from legal_transitions")) == {
        (table, name) for name, table in TABLES.items()
    }


def test_every_state_column_is_guarded(owner: Owner) -> None:
    with_state = owner.rows(
        "select table_name from information_schema.columns"
        " where table_schema = 'public' and column_name = 'state' order by 1"
    )
    guarded = owner.rows(
        "select tgrelid::regclass::text from pg_trigger"
        " where tgname = 'guard_state' and tgenabled = 'O' order by 1"
    )
    assert with_state == guarded == sorted((table,) for table in TABLES.values())


# Rows in any state ------------------------------------------------------------------------------

EXTRA = {
    "membership": {
        "active": {"started_at": "now()"},
        "past_due": {"started_at": "now()"},
        "scheduled_to_end": {
            "started_at": "now()",
            "ends_at": "now()",
            "end_reason": "'self_cancel'",
        },
        "ended": {"ended_at": "now()"},
    },
    "stay": {
        "admitted": {"admitted_at": "now()"},
        "departed": {"admitted_at": "now()", "departed_at": "now()"},
        "cancelled": {"cancelled_at": "now()"},
    },
    "entry_key": {
        "issued": {"issued_at": "now()"},
        "missing": {"issued_at": "now()"},
        "revoked": {"revoked_at": "now()"},
    },
    "payment": {
        state: {"succeeded_at": "now()"} for state in ("succeeded", "refund_owed", "refunded")
    },
    "webhook_event": {"completed": {"completed_at": "now()", "outcome": "'applied'"}},
}
DATES = {
    "membership": ("started_at", "ends_at", "ended_at", "end_reason"),
    "stay": ("admitted_at", "departed_at", "cancelled_at"),
    "entry_key": ("issued_at", "revoked_at"),
    "payment": ("succeeded_at",),
    "refund": (),
    "webhook_event": ("completed_at", "outcome"),
}


def columns(name: str, state: str) -> dict[str, str]:
    """The columns that the schema ties to a state, as SQL."""
    return dict.fromkeys(DATES[name], "null") | EXTRA.get(name, {}).get(state, {})


@pytest.fixture
def subjects(cast: Cast, owner: Owner) -> dict[str, UUID]:
    """One row of each machine, in its first state."""
    stay = cast.book()
    house = stay.facility_id
    payment = owner.one(
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key)"
        " values (%s, 'order', %s, %s, 1, 6000, 'JPY', 'open', 'k') returning id",
        house,
        stay.id,
        stay.id,
    )
    refund = owner.one(
        "insert into refunds (facility_id, payment_id, stay_id, amount, currency, state, reason)"
        " values (%s, %s, %s, 100, 'JPY', 'asked', 'staff') returning id",
        house,
        payment,
        stay.id,
    )
    key = owner.one(
        "insert into entry_keys (facility_id, stay_id, space_id, door_id, door_no, state,"
        " pin_sealed, pin_mark, starts_at, ends_at, code_name)"
        " select s.facility_id, s.id, p.id, d.id, d.no, 'requested', 'x', 1, s.starts_at,"
        " s.ends_at, 'name' from stays s join spaces p on p.id = s.space_id"
        " join doors d on d.id = p.door_id returning id"
    )
    event = owner.one(
        "insert into webhook_events (source, event_id, type, state, created, payload, headers,"
        " request_id) values ('stripe', 'evt', 'x', 'processing', now(), '', '{}', '') returning id"
    )
    return {
        "membership": cast.apply().id,
        "stay": stay.id,
        "payment": payment,
        "refund": refund,
        "entry_key": key,
        "webhook_event": event,
    }


def put(owner: Owner, name: str, row: UUID, state: str) -> None:
    """Set a row's state whatever the guard says."""
    values = ", ".join(f"{column} = {value}" for column, value in columns(name, state).items())
    owner.run("set session_replication_role = replica")
    owner.run(
        f"update {TABLES[name]} set state = %s{', ' + values if values else ''} where id = %s",
        state,
        row,
    )
    owner.run("set session_replication_role = origin")


def by_hand(house: UUID, name: str, row: UUID, to: str, mark: str | None) -> None:
    """An UPDATE of the state as the app's role, around every verb."""
    values = ", ".join(f"{column} = {value}" for column, value in columns(name, to).items())
    with transaction(house) as tx:
        if mark is not None:
            tx.run("select set_config('app.move', :mark, true)", mark=mark)
        also = ", " + values if values else ""
        done = tx.run(
            f"update {TABLES[name]} set state = :to{also} where id = :id",
            to=to,
            id=row,
        )
        assert done.rowcount == 1


def refused(fault: BaseException) -> str:
    return str(getattr(getattr(fault, "orig", None), "sqlstate", ""))


def test_every_pair_through_move_and_by_hand(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    """All pairs of every machine: what the table has passes with a mark of its own and not
    without; what it has not is refused whatever is marked."""
    house = cast.tokyo.id
    legal = {(name, was, to): event for name, was, event, to in LEGAL}
    for name, was, to in PAIRS:
        row, mark = subjects[name], f"{TABLES[name]}:{subjects[name]}:{to}"
        put(owner, name, row, was)
        if was == to:
            by_hand(house, name, row, to, None)  # writing the same state is no move
        elif (name, was, to) in legal:
            other = f"{TABLES[name]}:{uuid4()}:{to}"
            for forged in (None, "", other, f"{TABLES[name]}:{row}:{was}", f"x:{row}:{to}"):
                with pytest.raises(ProgrammingError) as caught:
                    by_hand(house, name, row, to, forged)
                assert refused(caught.value) == "42501", (name, was, to, forged)
            by_hand(house, name, row, to, mark)
        else:
            with pytest.raises(IntegrityError) as wrong:
                by_hand(house, name, row, to, mark)
            assert refused(wrong.value) == "23514", (name, was, to)
        assert owner.one(f"select state from {TABLES[name]} where id = %s", row) == (
            to if was == to or (name, was, to) in legal else was
        )


def test_every_legal_pair_through_move_leaves_one_record(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    for name, was, event, to in LEGAL:
        row = subjects[name]
        put(owner, name, row, was)
        before = len(recorded(owner, row))
        version = owner.one(f"select version from {TABLES[name]} where id = %s", row)
        also: dict[str, Any] = {
            column: value.strip("'") if value.startswith("'") else _now(owner)
            for column, value in columns(name, to).items()
            if value != "null"
        }
        with transaction(cast.tokyo.id) as tx:
            moved = move(
                tx,
                BY_NAME[name],
                row,
                event=event,
                from_state=was,
                actor=SOMEBODY,
                verb="test",
                reason="because",
                also=also,
            )
        assert moved is not None
        assert (moved.to, moved.version) == (to, version + 1)
        records = recorded(owner, row)
        assert len(records) == before + 1
        assert records[-1] == (event, was, to)


def _now(owner: Owner) -> Any:
    return owner.one("select now()")


def test_a_move_from_another_state_or_version_does_nothing(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    stay, before = subjects["stay"], recorded(owner, subjects["stay"])
    for given in (
        {"event": "reinstated", "from_state": "no_show"},
        {"event": "no_show", "from_state": "reserved", "seen": 7},
        {"event": "no_show", "from_state": "reserved", "only_if": {"code": "another"}},
    ):
        with transaction(cast.tokyo.id) as tx:
            said = move(tx, BY_NAME["stay"], stay, actor=SOMEBODY, verb="test", **given)  # type: ignore[arg-type]
        assert said is None
    assert recorded(owner, stay) == before
    assert owner.row("select state, version from stays") == ("reserved", 1)
    with transaction(cast.osaka.id) as tx:
        hidden = move(
            tx,
            BY_NAME["stay"],
            stay,
            event="no_show",
            from_state="reserved",
            actor=SOMEBODY,
            verb="test",
        )
        assert hidden is None
        assert standing(tx, BY_NAME["stay"], stay).state == "gone"


def test_the_mark_serves_once(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    stay = subjects["stay"]

    def twice() -> None:
        with transaction(cast.tokyo.id) as tx:
            assert move(
                tx,
                BY_NAME["stay"],
                stay,
                event="no_show",
                from_state="reserved",
                actor=SOMEBODY,
                verb="test",
            )
            tx.run("update stays set state = 'reserved' where id = :id", id=stay)

    with pytest.raises(ProgrammingError, match="through a verb only"):
        twice()
    assert owner.one("select state from stays") == "reserved"


def test_a_mark_that_met_no_row_does_not_serve_another(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    def borrowed() -> None:
        with transaction(cast.tokyo.id) as tx:
            move(
                tx,
                BY_NAME["stay"],
                uuid4(),
                event="no_show",
                from_state="reserved",
                actor=SOMEBODY,
                verb="test",
            )
            tx.run("update stays set state = 'no_show' where id = :id", id=subjects["stay"])

    with pytest.raises(ProgrammingError, match="through a verb only"):
        borrowed()


def test_a_row_begins_in_its_first_state(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    for name, table in TABLES.items():
        for state in set(TABLE[name]) - {INITIAL[name]}:
            with transaction(cast.tokyo.id) as tx:
                row = tx.row(
                    f"select to_jsonb(t) as whole from {table} t where id = :i", i=subjects[name]
                )
            assert row is not None
            with pytest.raises(DBAPIError, match="not a legal transition"):
                _insert(cast.tokyo.id, table, {**row.whole, "state": state, "id": str(uuid4())})


def _insert(house: UUID, table: str, values: dict[str, Any]) -> None:
    import json

    generated = {"period", "on_lock", "no"}
    names = ", ".join(name for name in values if name not in generated)
    with transaction(house) as tx:
        tx.run(
            f"insert into {table} ({names}) select {names}"
            f" from jsonb_populate_record(null::{table}, cast(:row as jsonb))",
            row=json.dumps(values),
        )


@pytest.mark.parametrize(
    "table",
    [
        "transitions",
        "ledger_lines",
        "gate_audits",
        "consumed_effects",
        "documents",
        "document_copies",
        "lodging_tax_tables",
        "lodging_tax_bands",
        "register_readings",
    ],
)
@pytest.mark.parametrize("statement", ["update {} set facility_id = facility_id", "delete from {}"])
def test_history_is_append_only(
    cast: Cast, inside: Flask, owner: Owner, table: str, statement: str
) -> None:
    cast.book()
    with pytest.raises(ProgrammingError) as caught, transaction(cast.tokyo.id) as tx:
        tx.run(statement.format(table))
    assert isinstance(caught.value.orig, InsufficientPrivilege)


@pytest.mark.parametrize(
    "table", ["stays", "payments", "refunds", "entry_keys", "outbox", "guests"]
)
def test_rows_of_the_house_are_never_deleted(cast: Cast, inside: Flask, table: str) -> None:
    for statement in (f"delete from {table}", f"truncate {table}", f"drop table {table}"):
        with pytest.raises(ProgrammingError), transaction(cast.tokyo.id) as tx:
            tx.run(statement)


def test_a_record_says_who_what_why_and_when(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    from portal import log

    who = cast.sato.actor
    with log.request("req-1"), transaction(cast.tokyo.id) as tx:
        move(
            tx,
            BY_NAME["stay"],
            subjects["stay"],
            event="no_show",
            from_state="reserved",
            actor=who,
            verb="mark_no_show",
            reason="did not come",
        )
        note(tx, who, BY_NAME["stay"], subjects["stay"], "no_show", "remark", "a remark")
    rows = owner.rows(
        "select facility_id, machine, verb, event, from_state, to_state, reason, actor_kind,"
        " actor_id, actor_name, request_id, at is not null from transitions"
        " where subject_id = %s order by id desc limit 2",
        subjects["stay"],
    )
    common = ("staff", who.id, who.name, "req-1", True)
    house = cast.tokyo.id
    assert rows == [
        (house, "stay", "remark", "changed", "no_show", "no_show", "a remark", *common),
        (house, "stay", "mark_no_show", "no_show", "reserved", "no_show", "did not come", *common),
    ]


def test_records_equal_transitions_under_a_race(
    cast: Cast, app: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    """Eight connections ask for the same move: one winner, one record."""
    stay, house = subjects["stay"], cast.tokyo.id

    def ask() -> bool:
        with transaction(house) as tx:
            return bool(
                move(
                    tx,
                    BY_NAME["stay"],
                    stay,
                    event="no_show",
                    from_state="reserved",
                    actor=SOMEBODY,
                    verb="test",
                )
            )

    assert sorted(map(str, at_once(app, *[ask] * 8))) == ["False"] * 7 + ["True"]
    assert recorded(owner, stay).count(("no_show", "reserved", "no_show")) == 1
    assert owner.row("select state, version from stays") == ("no_show", 2)


def test_a_row_that_exists_is_not_created_again(
    cast: Cast, inside: Flask, owner: Owner, subjects: dict[str, UUID]
) -> None:
    values = {
        "source": "stripe",
        "event_id": "evt",
        "type": "x",
        "created": _now(owner),
        "payload": b"",
        "request_id": "",
    }
    with transaction(None) as tx:
        made = create(
            tx,
            BY_NAME["webhook_event"],
            SOMEBODY,
            "test",
            {**values, "headers": "{}"},
            on_conflict="on conflict do nothing",
        )
    assert made is None
    assert recorded(owner, subjects["webhook_event"]) == []
