"""The deadline of a deposit: another one by the desk, and the end of what it has not come for."""

from datetime import datetime
from uuid import UUID

from portal import outbox
from portal.db import Actor, Row, Tx
from portal.machines.stay import MACHINE
from portal.move import note, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import deposit_hold
from portal.verbs import deposit_reminders, facts, payments, stays
from portal.verbs.desk import Desk

WITHOUT_END = "-"
"""In the record: a booking that is held without end."""


def set_deadline(
    tx: Tx, actor: Actor, stay_id: UUID, seen: int, deposit_by: datetime | None
) -> Outcome:
    """Another deadline for one booking; None holds its space without end. The guest is told."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.deposit_by == deposit_by:
        return Noop(Code.DEPOSIT_DEADLINE_UNCHANGED, subject=stay_id)
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, stay_id))
    if not deposit_hold.is_awaited(stay.state, stay.deposit_to_come):
        return Refused(Code.DEPOSIT_NOT_AWAITED)
    if deposit_by is not None and not stay.asked_at < deposit_by <= stay.starts_at:
        return Refused(Code.DEPOSIT_DEADLINE_IMPOSSIBLE, {"starts_at": stay.starts_at})

    tx.run(
        "update stays set deposit_by = :by, version = version + 1 where id = :id",
        id=stay_id,
        by=deposit_by,
    )
    what = f"{_written(stay.deposit_by)} → {_written(deposit_by)}"
    note(tx, actor, MACHINE, stay_id, stay.state, "set_deadline", what)
    told = {"deposit_by": deposit_by and deposit_by.isoformat()}
    outbox.enqueue(tx, stay_id, "deposit_deadline", f"{stay_id}:{seen + 1}", told)
    deposit_reminders.put(tx, stay_id, stay.asked_at, deposit_by)
    return Applied(Code.DEPOSIT_DEADLINE_SET, to=stay.state, subject=stay_id)


def end_hold(desk: Desk, actor: Actor, stay_id: UUID) -> Outcome:
    """reserved → cancelled, where the deposit did not come in time. What is open at the provider is
    cancelled there first; money that may be on its way is waited for."""
    with desk.transaction() as tx:
        stay = facts.stay(tx, stay_id, lock=False)
        attempts = _attempts(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if held := _held(stay):
        return held
    for attempt in attempts:  # one a purpose at most
        said = payments.cancel_attempt(desk, actor, attempt)
        if isinstance(said, Refused | Conflict):
            return said
    with desk.transaction() as tx:
        return _end(tx, actor, stay_id)


def _end(tx: Tx, actor: Actor, stay_id: UUID) -> Outcome:
    """Everything is looked at again under the stay's lock: the guest may have paid meanwhile, or
    begun anew, and the desk may have given another deadline."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if held := _held(stay):
        return held
    if _attempts(tx, stay_id):
        return Refused(Code.PAYMENT_PENDING)
    return stays.miss_deposit(tx, actor, stay)


def _held(stay: Row) -> Outcome | None:
    """Why this booking is not to be ended."""
    if stay.state == "cancelled":
        return Noop(Code.STAY_ALREADY_CANCELLED, subject=stay.id)
    to_come = int(stay.deposit_to_come)
    if not deposit_hold.is_missed(stay.state, to_come, stay.deposit_by, stay.asked_at):
        return Refused(Code.DEPOSIT_NOT_MISSED)
    return None


def _attempts(tx: Tx, stay_id: UUID) -> list[UUID]:
    """By which money may still land."""
    rows = tx.rows(
        "select id from payments where stay_id = :stay and state = any(:live)",
        stay=stay_id,
        live=list(payments.LIVE),
    )
    return [row.id for row in rows]


def _written(deposit_by: datetime | None) -> str:
    return deposit_by.isoformat() if deposit_by else WITHOUT_END
