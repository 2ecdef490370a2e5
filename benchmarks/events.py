"""Payment events: claimed and applied by one worker, beside a loop that says each by itself."""

from __future__ import annotations

import json
import os
from typing import Any
from uuid import UUID, uuid4

import psycopg

from benchmarks.ground import Ground, arrivals, worker
from benchmarks.pair import Figure, rates
from portal.jobs import events
from portal.jobs.house import House

EVENTS = 150


def measure(ground: Ground) -> list[Figure]:
    house = worker(ground)

    def ours() -> Any:
        stored(ground, paid(ground, EVENTS))
        return lambda: drain(house)

    def floor() -> Any:
        stored(ground, paid(ground, EVENTS))
        return lambda: _loop(ground.app_url)

    return [rates(ground, "webhook events applied", EVENTS, ours, floor)]


def drain(house: House) -> None:
    while events.apply_due(house):
        pass


def paid(ground: Ground, many: int) -> list[dict[str, Any]]:
    """So many stays with an open payment each, and the event that says that it succeeded."""
    rows = ground.owner.execute(
        """
        insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount, currency,
            state, idempotency_key, intent_id)
        select %(house)s, 'reservation_balance', stay, stay, 1, 5000, 'JPY', 'open',
            gen_random_uuid(), 'pi_' || gen_random_uuid()
        from unnest(%(stays)s) stay
        returning intent_id, id, stay_id
        """,
        {"house": ground.house, "stays": arrivals(ground, many, paid=False)},
    )
    return [_event(intent, payment, stay, ground.house) for intent, payment, stay in rows]


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
        "object": "event",
        "type": "payment_intent.succeeded",
        "api_version": "2026-10-29",
        "created": 1,
        "livemode": False,
        "data": {"object": obj},
    }


def stored(ground: Ground, told: list[dict[str, Any]]) -> None:
    """As the route stores them."""
    with ground.owner.cursor().copy(
        "copy webhook_events (source, event_id, type, state, created, livemode, payload, headers,"
        " request_id) from stdin"
    ) as rows:
        for one in told:
            raw = json.dumps(one).encode()
            rows.write_row(
                ("stripe", one["id"], one["type"], "processing", "now", False, raw, "{}", "bench")
            )


# The floor: what somebody writes who knows the tables and has no design to keep -------------------

_CLAIM = """
    update webhook_events set claimed_at = now(), claim_token = %(token)s, attempts = attempts + 1
    where id = (
        select id from webhook_events
        where state = 'processing' and next_attempt_at <= now() and claimed_at is null
        order by next_attempt_at limit 1 for update skip locked
    )
    returning id, payload
"""
_FIND = """
    select found.payment_id, set_config('app.facility_id', found.facility_id::text, true)
    from payment_by_intent(%(intent)s, null) found
"""
_LOCK = """
    select p.amount, p.currency, p.state, p.stay_id from payments p join stays s on s.id = p.stay_id
    where p.id = %(payment)s for no key update
"""
_MOVE = "select set_config('app.move', %(mark)s, true)"
_PAY = """
    update payments set state = 'succeeded', version = version + 1, succeeded_at = now(),
        livemode = false, next_read_at = null
    where id = %(payment)s and state = 'open'
"""
_AUDIT = """
    insert into transitions (facility_id, machine, subject_id, verb, event, from_state, to_state,
        actor_kind, actor_name, request_id, at)
    values (nullif(current_setting('app.facility_id'), '')::uuid, %(machine)s, %(subject)s,
        'loop', %(event)s, %(from)s, %(to)s, 'provider', 'loop', 'bench', now())
"""
_BOOK = """
    insert into ledger_lines (facility_id, stay_id, kind, amount, currency, payment_id, actor_kind,
        actor_name, request_id, at)
    values (current_facility(), %(stay)s, 'payment', -%(amount)s, %(currency)s, %(payment)s,
        'provider', 'loop', 'bench', now())
    on conflict do nothing
    returning (select sum(amount) from ledger_lines where stay_id = %(stay)s)
"""
_TELL = """
    insert into outbox (facility_id, stay_id, dedupe_key, consumer_key, event_type, channel,
        recipient, locale, payload, priority, request_id)
    select s.facility_id, s.id, %(key)s, %(key)s, 'payment_received', 'email', g.email,
        coalesce(g.preferred_locale, f.default_locale), '{}', 1, 'bench'
    from stays s join guests g on g.id = s.guest_id join facilities f on f.id = s.facility_id
    where s.id = %(stay)s
    on conflict do nothing
"""
_COMPLETE = """
    update webhook_events set state = 'completed', version = version + 1, outcome = 'applied',
        detail = '', completed_at = now(), claimed_at = null, claim_token = null
    where id = %(event)s and claim_token = %(token)s
"""


def _loop(url: str, *, forever: bool = False) -> None:
    token = uuid4()
    with psycopg.connect(url) as wire:
        while _one(wire, token) or forever:
            pass


def _one(wire: psycopg.Connection, token: UUID) -> bool:
    """Claim, apply, audit, enqueue and complete one event, in one transaction."""
    with wire.transaction():
        claimed = wire.execute(_CLAIM, {"token": token}).fetchone()
        if claimed is None:
            return False
        event_row, payload = claimed
        intent = json.loads(payload)["data"]["object"]
        found = wire.execute(_FIND, {"intent": intent["id"]}).fetchone()
        assert found is not None
        payment = found[0]
        row = wire.execute(_LOCK, {"payment": payment}).fetchone()
        assert row is not None
        amount, currency, state, stay = row
        assert (amount, state) == (intent["amount_received"], "open")
        wire.execute(_MOVE, {"mark": f"payments:{payment}:succeeded"})
        wire.execute(_PAY, {"payment": payment})
        audit = {"machine": "payment", "subject": payment, "event": "provider_succeeded"}
        wire.execute(_AUDIT, {**audit, "from": "open", "to": "succeeded"})
        line = {"stay": stay, "payment": payment, "amount": amount, "currency": currency}
        wire.execute(_BOOK, line)
        wire.execute(_TELL, {"stay": stay, "key": f"payment_received:{payment}"})
        wire.execute(_MOVE, {"mark": f"webhook_events:{event_row}:completed"})
        done = wire.execute(_COMPLETE, {"event": event_row, "token": token})
        assert done.rowcount == 1
        audit = {"machine": "webhook_event", "subject": event_row, "event": "completed"}
        wire.execute(_AUDIT, {**audit, "from": "processing", "to": "completed"})
    return True


if __name__ == "__main__":
    _loop(os.environ["BARE_DATABASE"], forever=True)
