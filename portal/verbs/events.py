"""What a person does with an event that could not be applied."""

from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.outcome import Applied, Code, Noop, Outcome, Refused


def replay(tx: Tx, actor: Actor, letter_id: UUID) -> Outcome:
    """The event of a dead letter goes through the same door again, as a new delivery. A completed
    event stays completed for ever."""
    letter = tx.row(
        "select id, source_id, closed_at from dead_letters where id = :id for update", id=letter_id
    )
    if letter is None:
        return Refused(Code.NOT_FOUND)
    if letter.closed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED, subject=letter_id)
    again = tx.run(
        """
        insert into webhook_events (source, event_id, type, state, created, livemode, account,
            api_version, payload, headers, request_id)
        select source, event_id || ':replay:' || :letter, type, 'processing', created, livemode,
               account, api_version, payload, headers, request_id
        from webhook_events where id = :event
        """,
        letter=str(letter_id),
        event=letter.source_id,
    )
    if again.rowcount == 0:
        return Refused(Code.NOT_FOUND)  # kept for 30 days, and over
    _close(tx, actor, letter_id, "replayed")
    tx.ring("inbox")
    return Applied(Code.EVENT_REPLAYED, to="processing", subject=letter_id)


def dismiss(tx: Tx, actor: Actor, letter_id: UUID) -> Outcome:
    """A person has looked and there is nothing to do."""
    letter = tx.row("select closed_at from dead_letters where id = :id for update", id=letter_id)
    if letter is None:
        return Refused(Code.NOT_FOUND)
    if letter.closed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED, subject=letter_id)
    _close(tx, actor, letter_id, "dismissed")
    return Applied(Code.EVENT_DISMISSED, to="closed", subject=letter_id)


def _close(tx: Tx, actor: Actor, letter_id: UUID, how: str) -> None:
    tx.run(
        "update dead_letters set closed_at = :at, closed_by = :by, closed_how = :how"
        " where id = :id",
        at=clock.now(),
        by=actor.name,
        how=how,
        id=letter_id,
    )
