"""The webhook inbox. A claim records receipt, completion records completion; they are never
confused. Two states only: processing, completed."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from portal import clock
from portal.db import Actor, Row, Tx
from portal.log import request_id
from portal.machines.webhook_event import MACHINE
from portal.move import move

Source = Literal["stripe", "seam"]
Held = Literal["received", "claimed", "completed"]
"""What we hold of an event after a delivery: received (and waiting or taken over), claimed by a
live worker, or completed."""

Result = Literal["applied", "ignored", "superseded", "orphan", "dead_letter"]

LEASE = timedelta(seconds=60)
"""A claim's expiry: twice the slowest handler, which may retry a transaction three times."""

BATCH = 50


def receive(
    tx: Tx,
    source: Source,
    *,
    event_id: str,
    kind: str,
    created: datetime,
    payload: bytes,
    headers: Mapping[str, str],
    livemode: bool | None = None,
    account: str | None = None,
    api_version: str | None = None,
) -> Held:
    """Store a verified event once, or tell what is held of it. `payload` is as received."""
    stored = tx.run(
        """
        insert into webhook_events (source, event_id, type, state, created, livemode, account,
            api_version, payload, headers, request_id)
        values (:source, :event_id, :type, 'processing', :created, :livemode, :account,
            :api_version, :payload, cast(:headers as jsonb), :request_id)
        on conflict (source, event_id) do nothing
        """,
        source=source,
        event_id=event_id,
        type=kind,
        created=created,
        livemode=livemode,
        account=account,
        api_version=api_version,
        payload=payload,
        headers=json.dumps(dict(headers)),
        request_id=request_id(),
    )
    return "received" if stored.rowcount else _held(tx, source, event_id)


def _held(tx: Tx, source: Source, event_id: str) -> Held:
    """A released claim, or one whose worker died, is let in at once: the event is made due."""
    row = tx.row(
        """
        with known as (
            select id, state, claimed_at is not null and claimed_at >= now() - :lease as live
            from webhook_events where source = :source and event_id = :event_id
        ), let_in as (
            update webhook_events e set next_attempt_at = now()
            from known where e.id = known.id and known.state = 'processing' and not known.live
        )
        select state, live from known
        """,
        source=source,
        event_id=event_id,
        lease=LEASE,
    )
    if row is None or row.state == "processing":
        return "claimed" if row is not None and row.live else "received"
    return "completed"


def claim(
    tx: Tx, token: UUID, *, at_most: int = BATCH, only: tuple[Source, str] | None = None
) -> Sequence[Row]:
    """Lease due events to `token`: unclaimed ones, and those whose claim has expired. One row
    updated means that it is ours. `only` names one event, for the inline mode. Materialized, or
    a join could look the due rows up anew for each row, each time others."""
    return tx.rows(
        """
        with due as materialized (
            select id from webhook_events
            where state = 'processing' and next_attempt_at <= now()
              and (claimed_at is null or claimed_at < now() - :lease)
              and (cast(:event_id as text) is null or (source, event_id) = (:source, :event_id))
            order by next_attempt_at, created
            limit :at_most
            for update skip locked
        ), claimed as (
            update webhook_events e
            set claimed_at = now(), claim_token = :token, attempts = e.attempts + 1
            from due
            where e.id = due.id
            returning e.id, e.source, e.event_id, e.type, e.created, e.livemode, e.account,
                      e.payload, e.attempts, e.received_at, e.request_id
        )
        select * from claimed order by created, received_at
        """,
        token=token,
        lease=LEASE,
        at_most=at_most,
        source=only[0] if only else None,
        event_id=only[1] if only else None,
    )


def complete(
    tx: Tx, event_row_id: UUID, token: UUID, actor: Actor, result: Result, detail: str = ""
) -> bool:
    """processing → completed, in the transaction of the grant. False when the claim is no longer
    ours: the caller must roll everything back."""
    moved = move(
        tx,
        MACHINE,
        event_row_id,
        event="completed",
        from_state="processing",
        actor=actor,
        verb="apply_event",
        reason=result,
        also={
            "outcome": result,
            "detail": detail,
            "completed_at": clock.now(),
            "claimed_at": None,
            "claim_token": None,
        },
        only_if={"claim_token": token},
    )
    return moved is not None


def release(tx: Tx, event_row_id: UUID, token: UUID, pause: timedelta, error: str) -> None:
    """Give the claim back after a transient fault; attempts and error are kept."""
    tx.run(
        """
        update webhook_events
        set claimed_at = null, claim_token = null, next_attempt_at = now() + :pause,
            last_error = :error
        where id = :id and claim_token = :token
        """,
        id=event_row_id,
        token=token,
        pause=pause,
        error=error,
    )


def dead_letter(tx: Tx, kind: str, source_id: UUID, title: str, error: str) -> None:
    """A row that waits for a person."""
    tx.run(
        """
        insert into dead_letters (facility_id, source_kind, source_id, title, error, at)
        values (:facility_id, :kind, :source_id, :title, :error, :at)
        """,
        facility_id=tx.facility_id,
        kind=kind,
        source_id=source_id,
        title=title,
        error=error,
        at=clock.now(),
    )


def prune(tx: Tx, older_than: timedelta) -> int:
    """Drop completed events. The provider redelivers for three days, so never below four."""
    if older_than < timedelta(days=4):
        raise ValueError("completed events must be kept for at least four days")
    gone = tx.run(
        "delete from webhook_events where state = 'completed' and completed_at < now() - :age",
        age=older_than,
    )
    return int(gone.rowcount)
