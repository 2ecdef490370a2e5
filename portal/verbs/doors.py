"""The door's verb: asking the controller how a lock is."""

from uuid import UUID

from portal import clock
from portal.db import Actor
from portal.edges.errors import EdgeError
from portal.edges.locks.port import LockDevice
from portal.models import Door
from portal.outcome import Applied, Code, Outcome, Refused
from portal.verbs.desk import Desk

FULL = 100


def ask(desk: Desk, actor: Actor, door_id: UUID) -> Outcome:
    """Ask about a lock, keep what the controller says of it, and look at its keys again."""
    with desk.transaction() as tx:
        door = tx.get(Door, door_id)
    if door is None:
        return Refused(Code.NOT_FOUND)
    try:
        device = desk.locks.device(door.device_id)
    except EdgeError:
        return Refused(Code.LOCK_UNAVAILABLE)
    _remember(desk, door_id, device)
    if device is None:
        return Refused(Code.LOCK_NOT_THERE)
    return Applied(Code.LOCK_ANSWERED, to="online" if device.online else "offline", subject=door_id)


def _remember(desk: Desk, door_id: UUID, device: LockDevice | None) -> None:
    battery = device.battery if device else None
    with desk.transaction() as tx:
        tx.run(
            "update doors set online = :online, battery = :battery, asked_at = :at where id = :id",
            online=device.online if device else False,
            battery=None if battery is None else round(battery * FULL),
            at=clock.now(),
            id=door_id,
        )
        tx.run(
            """
            update entry_keys set next_poll_at = now()
            where door_id = :door and provider_code_id is not null
              and state in ('requested', 'issued', 'missing', 'revoking')
            """,
            door=door_id,
        )
        tx.ring("keys")
