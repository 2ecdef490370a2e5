"""Differences at a door, and the verb that ends each. The controller is asked anew before it."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from portal import lock_commands
from portal.db import Actor, Tx
from portal.edges.locks.port import LockCode
from portal.machines.entry_key import MACHINE as KEY
from portal.models import Divergence, Door, EntryKey, Stay
from portal.move import note
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import divergences as policy
from portal.policies.divergences import OurKey
from portal.verbs import keys
from portal.verbs.desk import Desk
from portal.verbs.healing import AGREEMENT, heal


def remove_stray(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Only a code that is ours by name, and that no living key speaks for, is removed. The
    controller's word that it is gone is awaited by the next look."""
    code = desk.locks.get_code(row.subject)
    if code is None or code.status == "removing":
        return Applied(Code.KEY_REVOKE_ASKED, to="gone")
    with desk.transaction() as tx:
        door = tx.get(Door, row.door_id)
        key = key_named(tx, code.name)
        foreign = key is None and bool(known_elsewhere(tx, {code.id: code.name}))
    ours = policy.key_of(code.name) is not None and door is not None
    if not ours or foreign or (door is not None and door.device_id != code.device_id):
        return Refused(Code.NOT_FOUND)
    if not policy.strays(key, code.id):
        with desk.transaction() as tx:
            heal(tx, row.id, AGREEMENT)
        return Noop(Code.KEY_ALREADY_ISSUED)
    if door is not None:
        desk.locks.delete_code(code.id, device_id=door.device_id)
    if key is not None:
        with desk.transaction() as tx:
            note(tx, actor, KEY, key.id, key.state, "remove_stray", code.id)
    return Applied(Code.KEY_REVOKE_ASKED, to="removing")


def ask_lock(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """The controller's word moves the key: missing, and a new code can be ordered; or it stands."""
    with desk.transaction() as tx:
        door, key = tx.get(Door, row.door_id), key_of_id(tx, row.key_id)
    if door is None or key is None:
        return Refused(Code.NOT_FOUND)
    code = _code_of(desk, key, door)
    with desk.transaction() as tx:
        said = keys.observe(
            tx,
            key.id,
            status=code.status if code else None,
            errors=code.errors if code else (),
        )
        stands = code is not None and not (code.status == "unset" and code.errors)
        if stands:
            heal(tx, row.id, AGREEMENT)
    if stands and isinstance(said, Noop):
        return Noop(Code.KEY_ALREADY_ISSUED, subject=key.id)
    return said


def _code_of(desk: Desk, key: OurKey, door: Door) -> LockCode | None:
    if key.provider_code_id is not None:
        return desk.locks.get_code(key.provider_code_id)
    return desk.locks.find_code(door.device_id, key.code_name)


def order_other_digits(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Whoever changed the digits knows them: the guest gets a new code, and the old one is
    removed."""
    with desk.transaction() as tx:
        key = tx.get(EntryKey, row.key_id)
        if key is None:
            return Refused(Code.NOT_FOUND)
        if key.state != "issued":
            return Applied(Code.EVENT_DISMISSED, to=key.state, subject=key.id)
        stay = tx.get(Stay, key.stay_id)
        if stay is None:
            return Refused(Code.NOT_FOUND)
        return keys.reissue(tx, actor, stay.id, stay.version)


def set_time(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """The lock is told our end once more."""
    with desk.transaction() as tx:
        key = key_of_id(tx, row.key_id)
        if key is None:
            return Refused(Code.NOT_FOUND)
        if key.state != "issued":
            return Applied(Code.EVENT_DISMISSED, to=key.state, subject=key.id)
        lock_commands.order(tx, "update", key.id, fact=f"divergence {row.id}")
    return Applied(Code.LOCK_ASKED_AGAIN, to="waiting", subject=key.id)


# Our keys as the comparison reads them -----------------------------------------------------------

_KEYS = """
    select k.id, k.code_name, k.state, k.provider_code_id, k.ends_at, k.pin_mark,
           exists (select 1 from lock_commands c
                   where c.facility_id = k.facility_id and c.key_id = k.id
                     and c.done_at is null) as at_work
    from entry_keys k
"""


def keys_at(tx: Tx, door_id: UUID, named: Collection[str]) -> dict[str, OurKey]:
    """The door's living keys, and whichever the codes on it name, by the name of their code."""
    rows = tx.rows(
        f"""
        {_KEYS}
        where (k.door_id = :door and k.state in ('requested', 'issued', 'missing', 'revoking'))
           or k.code_name = any(:named)
        """,
        door=door_id,
        named=list(named),
    )
    return {row.code_name: _our_key(row) for row in rows}


def key_named(tx: Tx, name: str) -> OurKey | None:
    row = tx.row(f"{_KEYS} where k.code_name = :name", name=name)
    return _our_key(row) if row else None


def key_of_id(tx: Tx, key_id: UUID | None) -> OurKey | None:
    row = tx.row(f"{_KEYS} where k.id = :id", id=key_id)
    return _our_key(row) if row else None


def known_elsewhere(tx: Tx, codes: Mapping[str, str]) -> set[str]:
    """Of the codes (their names by their ids) those that another house's key has, by name: two
    houses may share one device."""
    rows = tx.rows(
        """
        select c.name from unnest(cast(:ids as text[]), cast(:names as text[])) as c (id, name)
        where exists (
            select 1 from key_by_code(c.id, c.name) k where k.facility_id <> :facility
        )
        """,
        ids=list(codes),
        names=list(codes.values()),
        facility=tx.facility_id,
    )
    return {row.name for row in rows}


def _our_key(row: Any) -> OurKey:
    return OurKey(
        row.id,
        row.code_name,
        row.state,
        row.provider_code_id,
        row.ends_at,
        row.at_work,
        row.pin_mark,
    )
