"""The only writer of state columns.

One statement does three things or none: the compare-and-set, the version, and the append-only
transition record. The mark it sets lets exactly this row through the guard trigger, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.log import request_id
from portal.machines import Machine
from portal.outcome import Standing

# A machine's state lives in the column `state` of the table named here.
TABLES = {
    "membership": "memberships",
    "stay": "stays",
    "entry_key": "entry_keys",
    "payment": "payments",
    "refund": "refunds",
    "webhook_event": "webhook_events",
}


@dataclass(frozen=True, slots=True)
class Moved:
    to: str
    version: int


def create(
    tx: Tx,
    machine: Machine,
    actor: Actor,
    verb: str,
    values: Mapping[str, Any],
    *,
    on_conflict: str = "",
) -> UUID | None:
    """Insert a row in its machine's initial state, with its first transition record.

    Returns the new id, or None when `on_conflict` ("do nothing" on a unique constraint) met a
    row that exists.
    """
    columns = [*values, "state"]
    inserted = ", ".join(f":{name}" for name in values)
    found = tx.scalar(
        f"""
        with made as (
            insert into {TABLES[machine.name]} ({", ".join(columns)})
            values ({inserted}, :state)
            {on_conflict}
            returning id
        ), record as (
            insert into transitions (facility_id, machine, subject_id, verb, event, from_state,
                to_state, actor_kind, actor_id, actor_name, request_id, at)
            select :record_facility, :machine, made.id, :verb, 'created', null, :state,
                   :actor_kind, :actor_id, :actor_name, :request_id, :at
            from made
        )
        select id from made
        """,
        **{**_record(tx, machine.name, actor, verb), **values, "state": machine.initial},
    )
    return cast("UUID | None", found)


def move(
    tx: Tx,
    machine: Machine,
    subject_id: UUID,
    *,
    event: str,
    from_state: str,
    actor: Actor,
    verb: str,
    seen: int | None = None,
    reason: str | None = None,
    also: Mapping[str, Any] | None = None,
    only_if: Mapping[str, Any] | None = None,
) -> Moved | None:
    """from_state → the table's target of `event`; None when the row is no longer in `from_state`
    (or, with `seen`, no longer at that version). `also` sets further columns of the same row;
    `only_if` must equal, as a claim token must."""
    to_state = machine.target(from_state, event)
    extra, held = dict(also or {}), dict(only_if or {})
    conditions = "".join(f" and subject.{name} = :if_{name}" for name in held)
    assignments = "".join(f", {name} = :also_{name}" for name in extra)
    found = tx.scalar(
        f"""
        with mark as materialized (
            select set_config('app.move', :mark, true)
        ), moved as (
            update {TABLES[machine.name]} subject
            set state = :to_state, version = subject.version + 1{assignments}
            from mark
            where subject.id = :subject_id and subject.state = :from_state
              and (cast(:seen as int) is null or subject.version = :seen){conditions}
            returning subject.id, subject.version
        ), record as (
            insert into transitions (facility_id, machine, subject_id, verb, event, from_state,
                to_state, reason, actor_kind, actor_id, actor_name, request_id, at)
            select :record_facility, :machine, moved.id, :verb, :event, :from_state, :to_state,
                   :reason, :actor_kind, :actor_id, :actor_name, :request_id, :at
            from moved
        )
        select version from moved
        """,
        **_record(tx, machine.name, actor, verb),
        **{f"also_{name}": value for name, value in extra.items()},
        **{f"if_{name}": value for name, value in held.items()},
        mark=f"{TABLES[machine.name]}:{subject_id}:{to_state}",
        subject_id=subject_id,
        event=event,
        from_state=from_state,
        to_state=to_state,
        reason=reason,
        seen=seen,
    )
    return None if found is None else Moved(to_state, int(found))


def note(
    tx: Tx, actor: Actor, machine: Machine, subject_id: UUID, state: str, verb: str, what: str
) -> None:
    """A record of a change within a state: the timeline has one place for what happened."""
    record(tx, actor, machine.name, subject_id, "changed", (state, state), verb, what)


def record(
    tx: Tx,
    actor: Actor,
    subject: str,
    subject_id: UUID,
    event: str,
    states: tuple[str | None, str],
    verb: str,
    what: str | None = None,
) -> None:
    """The record alone, from and to: of a change within a state, and of what has no machine."""
    tx.run(
        """
        insert into transitions (facility_id, machine, subject_id, verb, event, from_state,
            to_state, reason, actor_kind, actor_id, actor_name, request_id, at)
        values (:record_facility, :machine, :subject_id, :verb, :event, :from_state, :to_state,
            :reason, :actor_kind, :actor_id, :actor_name, :request_id, :at)
        """,
        **_record(tx, subject, actor, verb),
        subject_id=subject_id,
        event=event,
        from_state=states[0],
        to_state=states[1],
        reason=what,
    )


def standing(tx: Tx, machine: Machine, subject_id: UUID) -> Standing:
    """What the row is now, since when and by whom; for the answer of a conflict."""
    row = tx.row(
        f"""
        select subject.state, subject.version, last.at, last.actor_name
        from {TABLES[machine.name]} subject
        left join lateral (
            select at, actor_name from transitions
            where machine = :machine and subject_id = subject.id
            order by at desc, id desc limit 1
        ) last on true
        where subject.id = :id
        """,
        machine=machine.name,
        id=subject_id,
    )
    if row is None:
        return Standing(machine.name, "gone", 0)
    return Standing(machine.name, row.state, row.version, row.at, row.actor_name)


def row_standing(tx: Tx, subject: str, subject_id: UUID, state: str, version: int) -> Standing:
    """The same of what has no machine, as its row is held."""
    last = tx.row(
        """
        select at, actor_name from transitions
        where machine = :subject and subject_id = :id order by at desc, id desc limit 1
        """,
        subject=subject,
        id=subject_id,
    )
    if last is None:
        return Standing(subject, state, version)
    return Standing(subject, state, version, last.at, last.actor_name)


def _record(tx: Tx, machine: str, actor: Actor, verb: str) -> dict[str, Any]:
    return {
        "record_facility": tx.facility_id,
        "machine": machine,
        "verb": verb,
        **signed(tx, actor),
    }


def signed(tx: Tx, actor: Actor) -> dict[str, Any]:
    """Where it is, who does it, in which request and when: what stands on every line of a book."""
    return {
        "facility_id": tx.facility_id,
        **actor.columns,
        "request_id": request_id(),
        "at": clock.now(),
    }
