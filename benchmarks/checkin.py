"""Guests checked in by one desk, beside a loop that says the same in its own statements."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg

from benchmarks.ground import Ground, arrivals
from benchmarks.pair import Figure, rates
from portal import seal
from portal.db import SYSTEM, transaction
from portal.outcome import Applied
from portal.verbs import stays

GUESTS = 200


def measure(ground: Ground) -> list[Figure]:
    def ours() -> Any:
        arrived = arrivals(ground, GUESTS, paid=True)
        return lambda: _admit_all(ground, arrived)

    def floor() -> Any:
        arrived = arrivals(ground, GUESTS, paid=True)
        return lambda: _loop(ground, arrived)

    return [rates(ground, "check-in verbs", GUESTS, ours, floor)]


def _admit_all(ground: Ground, arrived: list[UUID]) -> None:
    for stay in arrived:
        with transaction(ground.house) as tx:
            said = stays.admit(tx, SYSTEM, stay, 1)
        if not isinstance(said, Applied):
            raise RuntimeError(f"not checked in: {said}")


_SCOPE = "select set_config('app.facility_id', %(house)s, true)"
_LOCK = "select state, version, space_id from stays where id = %(stay)s for no key update"
_FACTS = """
    select s.starts_at <= now() and now() < s.ends_at and p.active
           and (select coalesce(sum(amount), 0) from ledger_lines where stay_id = s.id) <= 0
           and not exists (select 1 from payments x
                           where x.stay_id = s.id and x.state in ('processing', 'unknown'))
           and not exists (select 1 from entry_keys k
                           where k.space_id = s.space_id and k.stay_id <> s.id
                             and k.state not in ('revoked', 'failed'))
           and not exists (select 1 from stays o
                           where o.space_id = s.space_id and o.id <> s.id and o.state = 'admitted'),
           s.ends_at, p.door_id, d.no
    from stays s join spaces p on p.id = s.space_id join doors d on d.id = p.door_id
    where s.id = %(stay)s
"""
_MOVE = "select set_config('app.move', %(mark)s, true)"
_ADMIT = """
    update stays set state = 'admitted', version = version + 1, admitted_at = now()
    where id = %(stay)s and state = 'reserved' and version = 1
"""
_AUDIT = """
    insert into transitions (facility_id, machine, subject_id, verb, event, from_state, to_state,
        actor_kind, actor_name, request_id, at)
    values (%(house)s, %(machine)s, %(subject)s, 'loop', %(event)s, %(from)s, %(to)s, 'system',
        'loop', 'bench', now())
"""
_KEY = """
    insert into entry_keys (id, facility_id, stay_id, space_id, door_id, door_no, state, pin_sealed,
        pin_mark, starts_at, ends_at, code_name)
    values (%(key)s, %(house)s, %(stay)s, %(space)s, %(door)s, %(no)s, 'requested', %(sealed)s,
        %(mark)s, now(), %(ends)s, %(key)s)
    on conflict do nothing
    returning id
"""
_COMMAND = """
    insert into lock_commands (facility_id, key_id, kind, idempotency_key)
    values (%(house)s, %(key)s, 'set', 'set:' || %(key)s::text)
"""


def _loop(ground: Ground, arrived: list[UUID]) -> None:
    with psycopg.connect(ground.app_url) as wire:
        for stay in arrived:
            with wire.transaction():
                _one(wire, str(ground.house), stay)


def _one(wire: psycopg.Connection, house: str, stay: UUID) -> None:
    """Lock, look, admit, audit, make a key, audit, order the lock."""
    said: dict[str, Any] = {"house": house, "stay": stay}
    wire.execute(_SCOPE, said)
    locked = wire.execute(_LOCK, said).fetchone()
    facts = wire.execute(_FACTS, said).fetchone()
    assert locked is not None
    assert facts is not None
    assert facts[0], "the gate is shut"
    wire.execute(_MOVE, {"mark": f"stays:{stay}:admitted"})
    assert wire.execute(_ADMIT, said).rowcount == 1
    audit = {"house": house, "machine": "stay", "subject": stay, "event": "admitted"}
    wire.execute(_AUDIT, {**audit, "from": "reserved", "to": "admitted"})
    pin, key = seal.new_pin(), uuid4()
    made = {"key": key, "space": locked[2], "ends": facts[1], "door": facts[2], "no": facts[3]}
    sealed = {"sealed": seal.close(pin), "mark": seal.mark(pin)}
    if wire.execute(_KEY, {**said, **made, **sealed}).fetchone() is None:
        return  # one in a million meets a code in use on the door
    audit = {"house": house, "machine": "entry_key", "subject": key, "event": "created"}
    wire.execute(_AUDIT, {**audit, "from": None, "to": "requested"})
    wire.execute(_COMMAND, {**said, "key": key})
