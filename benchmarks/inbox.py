"""How many payment events a second one process receives, and claims and applies."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from benchmarks import ground
from portal import clock, inbox
from portal.db import SYSTEM, transaction
from portal.edges.channels import Channels
from portal.edges.providers import Providers
from portal.jobs import events
from portal.jobs.house import House
from portal.machines.payment import MACHINE
from portal.move import create
from portal.verbs.stays import NewGuest, NewStay

EVENTS = 500


def main() -> None:
    with ground.opened() as app, app.app_context():
        house_id, spaces = ground.facility(EVENTS)
        bodies = [_paid(house_id, space) for space in spaces]
        with ground.timed("received", EVENTS):
            for body in bodies:
                _receive(body)
        # No provider is asked: what an event says is in the event.
        house: Any = House(
            app.extensions["monban.config"],
            Providers(None, None),  # type: ignore[arg-type]
            Channels(None, None),  # type: ignore[arg-type]
            nullcontext,
        )
        with ground.timed("claimed and applied", EVENTS):
            while events.apply_due(house):
                pass


def _paid(house: UUID, space: UUID) -> dict[str, Any]:
    """A stay with an open payment, and the event that says it succeeded."""
    now = clock.now()
    guest = NewGuest("計測 太郎", email="bench@example.com", locale="ja")
    times = (now, now + timedelta(days=1))
    stay = ground.book(house, NewStay(uuid4(), guest, space, None, *times, price=5000))
    payment, intent = uuid4(), f"pi_{uuid4().hex}"
    with transaction(house) as tx:
        create(
            tx,
            MACHINE,
            SYSTEM,
            "bench",
            {
                "id": payment,
                "facility_id": house,
                "purpose": "reservation_balance",
                "subject_id": stay,
                "stay_id": stay,
                "attempt": 1,
                "amount": 5000,
                "currency": "JPY",
                "idempotency_key": str(payment),
                "intent_id": intent,
            },
        )
    return _event(intent, payment, stay, house)


def _event(intent: str, payment: UUID, stay: UUID, house: UUID) -> dict[str, Any]:
    named = {
        "payment_id": str(payment),
        "purpose": "reservation_balance",
        "subject": str(stay),
        "facility": str(house),
    }
    obj = {
        "id": intent,
        "object": "payment_intent",
        "status": "succeeded",
        "amount": 5000,
        "amount_received": 5000,
        "currency": "jpy",
        "metadata": named,
        "created": 1,
        "livemode": False,
        "client_secret": None,
        "latest_charge": None,
    }
    return {
        "id": f"evt_{uuid4().hex}",
        "type": "payment_intent.succeeded",
        "data": {"object": obj},
    }


def _receive(body: dict[str, Any]) -> None:
    with transaction(None) as tx:
        inbox.receive(
            tx,
            "stripe",
            event_id=body["id"],
            kind=body["type"],
            created=datetime.now(UTC),
            payload=json.dumps(body).encode(),
            headers={},
            livemode=False,
        )


if __name__ == "__main__":
    main()
