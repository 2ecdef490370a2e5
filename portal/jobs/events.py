"""Webhook events: claimed, then applied in one transaction each, completion included."""

from contextlib import AbstractContextManager
from uuid import uuid4

from sqlalchemy.exc import DBAPIError

from portal import inbox, log
from portal.db import Row, Tx, transaction
from portal.inbox import Source
from portal.jobs import lock_events, payment_events
from portal.jobs.applying import Applying, Handled, NotYetError, PermanentFaultError
from portal.jobs.house import House
from portal.policies import backoff
from portal.verbs.payment_answers import PROVIDER

TRIES = 3
"""A serialization failure or deadlock is tried again inside the claim, this often."""

TRANSIENT_SQLSTATES = ("40001", "40P01")

ORPHANED_AFTER_ATTEMPTS = 10
"""An event that overtook our own commit is applied within seconds; past this it is nobody's."""


class LostClaimError(Exception):
    """Another worker has the event now; nothing of ours may be committed."""


def apply_due(house: House) -> int:
    """Claim one batch and apply it: in one transaction, or, where that cannot commit, each event in
    its own. Returns how many were claimed."""
    token = uuid4()
    with transaction(None) as tx:
        claimed = inbox.claim(tx, token)
    batch = [Applying(event, token) for event in claimed]
    if len(batch) < 2 or not _in_one_batch(house, batch):
        for work in batch:
            with _request(work):
                apply(house, work)
    return len(batch)


def apply_now(house: House, source: Source, event_id: str) -> bool:
    """Inline mode: claim and apply this one event in the request. False when it stays undone, or
    when another process has it."""
    token = uuid4()
    with transaction(None) as tx:
        claimed = inbox.claim(tx, token, at_most=1, only=(source, event_id))
    return bool(claimed) and all(apply(house, Applying(event, token)) for event in claimed)


def apply(house: House, work: Applying) -> bool:
    """One claimed event to its completion. False when its claim was released for another try, or
    lost: who has it now may die with it, so the provider must not be told that it is done."""
    for attempt in range(1, TRIES + 1):
        try:
            _in_one_transaction(house, work)
            return True
        except LostClaimError:
            logger.warning("claim_lost", event_id=work.event.event_id)
            return False
        except PermanentFaultError as fault:
            return _bury(work, str(fault))
        except NotYetError as fault:
            return _not_yet(work, str(fault))
        except DBAPIError as fault:
            if not _transient(fault) or attempt == TRIES:
                return _release(work, fault)
        except Exception as fault:  # noqa: BLE001 (a fault of ours must not lose the event)
            return _release(work, fault)
    return False


def _in_one_batch(house: House, batch: list[Applying]) -> bool:
    """A commit for all of them. False when one of them could not be applied: nothing of the batch
    stands, and what is to become of that one is decided when it is applied by itself."""
    try:
        with transaction(None, isolation="REPEATABLE READ") as tx:
            for work in batch:
                with _request(work):
                    _apply_and_complete(house, tx, work)
                tx.leave()
    except Exception as fault:  # noqa: BLE001 (which of them it was comes out one by one)
        logger.info("batch_divided", events=len(batch), fault=type(fault).__name__)
        return False
    return True


def _in_one_transaction(house: House, work: Applying) -> None:
    with transaction(None, isolation="REPEATABLE READ") as tx:
        _apply_and_complete(house, tx, work)


def _apply_and_complete(house: House, tx: Tx, work: Applying) -> None:
    event, handled = work.event, _handle(house, tx, work)
    if not inbox.complete(tx, event.id, work.token, PROVIDER, handled.result, handled.detail):
        raise LostClaimError(event.event_id)
    if handled.result == "dead_letter":
        inbox.dead_letter(tx, "webhook_event", event.id, _title(event), handled.detail)
    for kind in handled.rings:
        tx.ring(kind)


def _handle(house: House, tx: Tx, work: Applying) -> Handled:
    if work.event.source == "seam":
        return lock_events.handle(tx, work)
    return payment_events.handle(tx, work, live=house.config.stripe_live)


def _request(work: Applying) -> AbstractContextManager[None]:
    return log.request(work.event.request_id or log.new_request_id())


def _bury(work: Applying, error: str) -> bool:
    """A permanent fault completes the event and leaves a dead letter, both or neither."""
    event = work.event
    with transaction(None) as tx:
        if inbox.complete(tx, event.id, work.token, PROVIDER, "dead_letter", error):
            inbox.dead_letter(tx, "webhook_event", event.id, _title(event), error)
    logger.error("event_dead", event_id=event.event_id, error=error)
    return True


def _not_yet(work: Applying, error: str) -> bool:
    """It may have overtaken our own commit: wait for the row, then leave it to a person."""
    if work.event.attempts < ORPHANED_AFTER_ATTEMPTS:
        return _release(work, NotYetError(error))
    event = work.event
    with transaction(None) as tx:
        if inbox.complete(tx, event.id, work.token, PROVIDER, "orphan", error):
            inbox.dead_letter(tx, "webhook_event", event.id, _title(event), error)
    return True


def _release(work: Applying, fault: Exception) -> bool:
    """Let the next attempt in after a pause. A fault that outlasts them all needs a person."""
    event = work.event
    if event.attempts >= backoff.EVENT_LIMIT:
        return _bury(work, f"{type(fault).__name__}: {fault}"[:500])
    pause = backoff.wait(backoff.EVENT, event.attempts)
    with transaction(None) as tx:
        inbox.release(tx, event.id, work.token, pause, f"{type(fault).__name__}: {fault}"[:500])
    logger.warning("event_released", event_id=event.event_id, fault=type(fault).__name__)
    return False


def _transient(fault: DBAPIError) -> bool:
    return getattr(fault.orig, "sqlstate", None) in TRANSIENT_SQLSTATES


def _title(event: Row) -> str:
    return f"{event.source} {event.type} {event.event_id}"


logger = log.get(__name__)
