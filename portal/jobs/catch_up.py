"""Events that never arrived: listed at the provider since the last checkpoint, and put into the
inbox like any delivery."""

from datetime import datetime, timedelta

from portal import inbox, log
from portal.db import Tx, transaction
from portal.edges.errors import EdgeError
from portal.edges.payments.port import ProviderEvent
from portal.jobs.house import House
from portal.jobs.payment_events import HANDLERS

NAME = "stripe_events"

FIRST_LOOK = timedelta(days=3)
"""How far back a new installation looks: as long as the provider redelivers by itself."""

OVERLAP = timedelta(minutes=15)
"""An event may become visible later than its own time says."""


def fetch_missed(house: House) -> int:
    """How many events had never been received. The checkpoint moves to the newest one that was
    read, by the provider's own time: a clock of ours that is ahead would pass over what comes next.
    An unreachable provider, or a list cut at the edge's bound, leaves the rest for the next look.
    """
    found = 0
    reached = None
    try:
        for event in house.providers.payments.events_since(_since()):
            reached = event.created
            if event.type in HANDLERS:
                found += _receive(event)
    except EdgeError as fault:
        log.get(__name__).warning("catch_up_stopped", fault=type(fault).__name__)
    if reached is not None:
        _remember(reached)
    return found


def _remember(reached: datetime) -> None:
    with transaction(None) as tx:
        tx.run(
            """
            insert into checkpoints (name, reached) values (:name, :reached)
            on conflict (name) do update set reached = greatest(checkpoints.reached, :reached)
            """,
            name=NAME,
            reached=reached,
        )


def _since() -> datetime:
    with transaction(None) as tx:
        since: datetime = tx.scalar(
            """
            select coalesce((select reached from checkpoints where name = :name), now() - :first)
                   - cast(:overlap as interval)
            """,
            name=NAME,
            first=FIRST_LOOK,
            overlap=OVERLAP,
        )
    return since


def _receive(event: ProviderEvent) -> int:
    """1 when the event is new to us. What we hold already is left as it is."""
    with transaction(None) as tx:
        known = tx.scalar(
            "select 1 from webhook_events where source = 'stripe' and event_id = :id", id=event.id
        )
        if known:
            return 0
        put(tx, event)
    return 1


def put(tx: Tx, event: ProviderEvent) -> inbox.Held:
    """As the route does with a delivery; what we hold of it then."""
    return inbox.receive(
        tx,
        "stripe",
        event_id=event.id,
        kind=event.type,
        created=event.created,
        payload=event.raw,
        headers={"monban-source": "catch-up"},
        livemode=event.livemode,
        account=event.account,
        api_version=event.api_version,
    )
