"""Work for locks: put, settle, put off, bury. Claims are made by the database's own function."""

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID, uuid4

from portal.db import Tx
from portal.log import request_id

CommandKind = Literal["set", "update", "remove"]

LEASE = timedelta(seconds=60)
"""Twice the slowest command: two calls of at most 13 seconds each. It runs from `begin`."""

BATCH = 10


def order(tx: Tx, kind: CommandKind, key_id: UUID, fact: str = "") -> UUID:
    """Put one command, once for the key, the kind and the `fact` (an update names its new end)."""
    command_id = uuid4()
    tx.run(
        """
        insert into lock_commands (id, facility_id, key_id, kind, idempotency_key, request_id)
        values (:id, :facility_id, :key_id, :kind, :key, :request_id)
        on conflict (idempotency_key) do nothing
        """,
        id=command_id,
        facility_id=tx.facility_id,
        key_id=key_id,
        kind=kind,
        key=":".join(part for part in (kind, str(key_id), fact) if part),
        request_id=request_id(),
    )
    tx.ring("locks")
    return command_id


def claim(tx: Tx, token: UUID) -> list[tuple[UUID, UUID]]:
    """Up to BATCH due commands as (id, facility id), leased to `token`."""
    rows = tx.rows(
        "select id, facility_id from claim_lock_commands(:token, :batch, :lease)",
        token=token,
        batch=BATCH,
        lease=LEASE,
    )
    return [(row.id, row.facility_id) for row in rows]


def begin(tx: Tx, command_id: UUID, token: UUID) -> bool:
    """Its turn in the batch has come: the lease runs anew from here. False when the batch was so
    slow that the claim has passed to another."""
    return _change(tx, command_id, token, "claimed_at = now()")


def done(tx: Tx, command_id: UUID, token: UUID, result: str) -> bool:
    """The far side's word is in. False when the claim is no longer ours."""
    return _settle(
        tx, command_id, token, "done_at = now(), unknown_at = null, result = :note", result
    )


def supersede(tx: Tx, command_id: UUID, token: UUID) -> bool:
    """It is no longer wanted. `unknown_at` stays: what was lost may still reach the lock."""
    return _settle(tx, command_id, token, "done_at = now(), result = :note", "superseded")


def put_off(tx: Tx, command_id: UUID, token: UUID, pause: timedelta, error: str) -> bool:
    """Nothing was done. Release the claim and try again after `pause`."""
    return _settle(
        tx,
        command_id,
        token,
        "next_attempt_at = now() + :pause, last_error = :note",
        error,
        pause=pause,
    )


def unknown(tx: Tx, command_id: UUID, token: UUID, pause: timedelta, error: str) -> bool:
    """The answer is lost: the next attempt reads the far side first."""
    return _settle(
        tx,
        command_id,
        token,
        "unknown_at = now(), next_attempt_at = now() + :pause, last_error = :note",
        error,
        pause=pause,
    )


def bury(tx: Tx, command_id: UUID, token: UUID, error: str) -> bool:
    """Leave it to a person."""
    return _settle(tx, command_id, token, "dead_at = now(), last_error = :note", error)


def _settle(tx: Tx, command_id: UUID, token: UUID, change: str, note: str, **params: Any) -> bool:
    """The claim ends with the change."""
    ended = f"{change}, claimed_at = null, claim_token = null"
    return _change(tx, command_id, token, ended, note=note, **params)


def _change(tx: Tx, command_id: UUID, token: UUID, change: str, **params: Any) -> bool:
    """False when the command is over or another's."""
    changed = tx.run(
        f"""
        update lock_commands set {change}
        where id = :id and claim_token = :token and done_at is null and dead_at is null
        """,
        id=command_id,
        token=token,
        **params,
    )
    return changed.rowcount == 1
