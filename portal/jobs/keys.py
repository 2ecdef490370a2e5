"""Polling: what the controller says of the codes that we wait for, or rely on."""

from uuid import UUID

from portal import log
from portal.db import transaction
from portal.edges.errors import EdgeError
from portal.jobs.house import House
from portal.models import Door, EntryKey
from portal.verbs import keys
from portal.verbs.desk import Desk

BATCH = 20


def poll_due(house: House) -> int:
    """Ask about one batch of keys that are due. Returns how many were due."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from keys_to_poll(:batch)", batch=BATCH)
    for row in due:
        try:
            poll(house.desk(row.facility_id), row.id)
        except Exception:  # one key that cannot be read holds up no other
            logger.exception("poll_broken", key=str(row.id))
    return len(due)


def poll(desk: Desk, key_id: UUID) -> None:
    """One question, and its answer to the one verb that hears the controller."""
    with desk.transaction() as tx:
        key = tx.get(EntryKey, key_id)
        door = tx.get(Door, key.door_id) if key else None
    if key is None or door is None or key.provider_code_id is None:
        return
    try:
        code = desk.locks.get_code(key.provider_code_id)
    except EdgeError as fault:
        logger.warning("poll_failed", key=str(key_id), fault=type(fault).__name__)
        return
    with desk.transaction() as tx:
        keys.observe(
            tx,
            key_id,
            status=code.status if code else None,
            errors=code.errors if code else (),
        )
        if code is not None and code.status != "removing":
            keys.insist(tx, key_id)


logger = log.get(__name__)
