"""Lock commands: claimed, carried to the lock, settled by what the controller says."""

from datetime import timedelta
from uuid import UUID, uuid4

from portal import lock_commands, log, seal
from portal.db import Row, Tx, transaction
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.locks.port import LockCode
from portal.jobs.house import House
from portal.outcome import Applied
from portal.policies import backoff
from portal.verbs import keys
from portal.verbs.desk import Desk

SETTLES = timedelta(minutes=2)
"""A set whose answer was lost has reached the lock by then, or never will."""

LIVE = ("requested", "issued", "missing")


def run_due(house: House) -> int:
    """Claim one batch and run it. Returns how many were claimed."""
    token = uuid4()
    with transaction(None) as tx:
        claimed = lock_commands.claim(tx, token)
    for command_id, facility_id in claimed:
        run(house.desk(facility_id), command_id, token)
    return len(claimed)


def run(desk: Desk, command_id: UUID, token: UUID) -> None:
    """One command: look, act, hear, in that order; each fault ends as what it is."""
    with desk.transaction() as tx:
        command = _load(tx, command_id) if lock_commands.begin(tx, command_id, token) else None
    if command is None:
        return
    with log.request(command.request_id or log.new_request_id()):
        try:
            RUN[command.kind](desk, command, token)
        except Unreachable as fault:
            _put_off(desk, command, token, fault)
        except Unknown as fault:
            _lost(desk, command, token, fault)
        except Rejected as fault:
            _refused(desk, command, token, fault)
        except Exception as fault:  # noqa: BLE001 (a command that cannot be run holds up no other)
            _put_off(desk, command, token, fault)


def _set(desk: Desk, command: Row, token: UUID) -> None:
    """The code is looked for by its own name before it is made: there is no idempotency key."""
    if command.state not in ("requested", "missing"):
        _superseded(desk, command, token)
        return
    code = desk.locks.find_code(command.device_id, command.code_name)
    if code is None:
        code = desk.locks.create_code(
            device_id=command.device_id,
            name=command.code_name,
            pin=seal.unseal(command.pin_sealed),
            starts_at=command.starts_at,
            ends_at=command.ends_at,
        )
    _heard(desk, command, token, code, "accepted")


def _update(desk: Desk, command: Row, token: UUID) -> None:
    """The same code, another end. An unclear update is read back before it is repeated."""
    if command.state not in LIVE or command.provider_code_id is None:
        _superseded(desk, command, token)
        return
    if command.unknown_at is not None:
        code = desk.locks.get_code(command.provider_code_id)
        if code is None or code.ends_at == command.ends_at:
            _heard(desk, command, token, code, "read back")
            return
    code = desk.locks.update_code(
        command.provider_code_id, starts_at=command.starts_at, ends_at=command.ends_at
    )
    _heard(desk, command, token, code, "accepted")


def _remove(desk: Desk, command: Row, token: UUID) -> None:
    """Gone only when the controller says so. A 404 on a delete is a removal."""
    code = _find(desk, command)
    if code is None and command.set_in_doubt:
        _wait(desk, command, token, "a lost set may still arrive")
        return
    if code is None:
        _heard(desk, command, token, None, "gone")
        return
    desk.locks.delete_code(code.id, device_id=command.device_id)
    _heard(desk, command, token, desk.locks.get_code(code.id), "accepted", code_id=code.id)


RUN = {"set": _set, "update": _update, "remove": _remove}


def _find(desk: Desk, command: Row) -> LockCode | None:
    if command.provider_code_id is not None:
        return desk.locks.get_code(command.provider_code_id)
    return desk.locks.find_code(command.device_id, command.code_name)


def _load(tx: Tx, command_id: UUID) -> Row | None:
    return tx.row(
        """
        select c.id, c.kind, c.key_id, c.attempts, c.unknown_at, c.request_id,
               k.state, k.code_name, k.pin_sealed, k.provider_code_id, k.starts_at, k.ends_at,
               d.device_id,
               exists (
                   select 1 from lock_commands s
                   where s.key_id = k.id and s.kind = 'set' and s.unknown_at > now() - :settles
               ) as set_in_doubt
        from lock_commands c
        join entry_keys k on k.id = c.key_id
        join doors d on d.id = k.door_id
        where c.id = :id
        """,
        id=command_id,
        settles=SETTLES,
    )


def _heard(
    desk: Desk,
    command: Row,
    token: UUID,
    code: LockCode | None,
    result: str,
    *,
    code_id: str | None = None,
) -> None:
    """One transaction: the controller's word moves the key, and the command is settled."""
    with desk.transaction() as tx:
        if not lock_commands.done(tx, command.id, token, result):
            return
        said = keys.observe(
            tx,
            command.key_id,
            status=code.status if code else None,
            errors=code.errors if code else (),
            code_id=code.id if code else code_id,
        )
        if command.kind == "update" and code is not None:
            keys.say_changed(tx, command.key_id)
        if not isinstance(said, Applied):
            tx.run(
                "update entry_keys set next_poll_at = now() + interval '2 seconds' where id = :id",
                id=command.key_id,
            )


def _superseded(desk: Desk, command: Row, token: UUID) -> None:
    with desk.transaction() as tx:
        lock_commands.supersede(tx, command.id, token)


def _wait(desk: Desk, command: Row, token: UUID, why: str) -> None:
    with desk.transaction() as tx:
        lock_commands.put_off(tx, command.id, token, SETTLES, why)


def _put_off(desk: Desk, command: Row, token: UUID, fault: Exception) -> None:
    with desk.transaction() as tx:
        if command.attempts >= backoff.DOOR_LIMIT:
            lock_commands.bury(tx, command.id, token, _said(fault))
        else:
            pause = backoff.wait(backoff.DOOR, command.attempts)
            lock_commands.put_off(tx, command.id, token, pause, _said(fault))


def _lost(desk: Desk, command: Row, token: UUID, fault: EdgeError) -> None:
    pause = backoff.wait(backoff.DOOR, command.attempts)
    with desk.transaction() as tx:
        if command.attempts >= backoff.DOOR_LIMIT:
            lock_commands.bury(tx, command.id, token, _said(fault))
        else:
            lock_commands.unknown(tx, command.id, token, pause, _said(fault))


def _refused(desk: Desk, command: Row, token: UUID, fault: EdgeError) -> None:
    """The controller said no. To a set that ends the key; anything else waits for a person."""
    with desk.transaction() as tx:
        if command.kind == "set" and lock_commands.done(tx, command.id, token, _said(fault)):
            keys.refuse(tx, command.key_id, fault.code or "rejected")
        else:
            lock_commands.bury(tx, command.id, token, _said(fault))
    logger.error("lock_refused", command=str(command.id), error=_said(fault))


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {getattr(fault, 'code', None) or ''} {fault}"[:500]


logger = log.get(__name__)
