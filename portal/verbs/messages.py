"""What a person does with a message that waits for one."""

from uuid import UUID

from portal.db import Actor, Tx
from portal.outcome import Applied, Code, Noop, Outcome, Refused


def resend(tx: Tx, actor: Actor, message_id: UUID) -> Outcome:
    """A dead message, or one whose delivery is unknown, is sent once more."""
    return _decide(
        tx,
        message_id,
        "dead_at = null, unknown_at = null, sending_at = null, attempts = 0,"
        " next_attempt_at = now(), claimed_at = null, claim_token = null",
        Applied(Code.MESSAGE_REQUEUED, to="waiting", subject=message_id),
    )


def drop(tx: Tx, actor: Actor, message_id: UUID) -> Outcome:
    """A dead message, or one whose delivery is unknown, is let be."""
    return _decide(
        tx,
        message_id,
        "dead_at = null, unknown_at = null, dropped_at = now()",
        Applied(Code.MESSAGE_DROPPED, to="dropped", subject=message_id),
    )


def _decide(tx: Tx, message_id: UUID, change: str, applied: Applied) -> Outcome:
    decided = tx.run(
        f"""
        update outbox set {change}
        where id = :id and (dead_at is not null or unknown_at is not null)
        """,
        id=message_id,
    )
    if decided.rowcount == 0:
        known = tx.scalar("select 1 from outbox where id = :id", id=message_id)
        return Noop(Code.MESSAGE_NOT_WAITING) if known else Refused(Code.NOT_FOUND)
    if applied.code is Code.MESSAGE_REQUEUED:
        tx.ring("outbox")
    return applied
