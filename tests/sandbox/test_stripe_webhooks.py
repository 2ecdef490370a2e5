"""Webhook deliveries: signed, retried, doubled, turned round, and bodies of the test's own."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from sandbox.stripe.testing import Receiver, StandIn, client, running

SECRET = "whsec_first"
OTHER = "whsec_second"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def started(receiver: Receiver) -> Iterator[StandIn]:
    with running("--webhook-url", receiver.url, "--webhook-secret", SECRET) as stand_in:
        yield stand_in


@pytest.fixture
def stand_in(started: StandIn, receiver: Receiver) -> StandIn:
    started.post("reset")
    started.post("webhooks", retry_delays=[0.05, 0.1])
    receiver.received.clear()
    receiver.answers.clear()
    return started


@pytest.fixture
def api(stand_in: StandIn) -> Any:
    return client(stand_in.base)


def pay(api: Any) -> Any:
    wanted = {"amount": 500, "currency": "jpy", "description": "素泊まり"}
    return api.payment_intents.create({**wanted, "confirm": True, "payment_method": "pm_card_visa"})


def test_a_payment_is_told_in_signed_events(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    intent = pay(api)
    stand_in.wait_delivered()
    assert receiver.types() == [
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.succeeded",
    ]
    last = receiver.received[-1]
    event = stripe.Webhook.construct_event(last.body, last.headers["Stripe-Signature"], SECRET)
    assert event.data.object["id"] == intent.id
    assert "素泊まり" in last.body.decode()
    listed = api.events.retrieve(event.id)
    assert json.loads(listed.last_response.body) == last.event


def test_another_secret_does_not_verify(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    pay(api)
    stand_in.wait_delivered()
    last = receiver.received[-1]
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(last.body, last.headers["Stripe-Signature"], OTHER)


def test_an_endpoint_that_fails_is_tried_again(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    receiver.answers[:] = [500, 503, 200]
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    (row,) = stand_in.wait_delivered()
    assert (row["attempts"], row["status"], row["state"]) == (3, 200, "delivered")
    assert len({received.event["id"] for received in receiver.received}) == 1


def test_a_redirect_is_a_failure_and_tries_end(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    receiver.answers[:] = [302, 302, 302]
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    (row,) = stand_in.wait_delivered()
    assert (row["attempts"], row["state"]) == (3, "given_up")


def test_paused_reversed_flushed(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    stand_in.post("webhooks", paused=True)
    pay(api)
    time.sleep(0.3)
    assert receiver.received == []
    assert stand_in.post("webhooks/reverse") == {"waiting": 3}
    assert len(stand_in.post("webhooks/flush")) == 3
    assert receiver.types()[0] == "payment_intent.succeeded"
    assert receiver.types()[-1] == "payment_intent.created"


def test_flush_once_leaves_retries_waiting(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    stand_in.post("webhooks", paused=True)
    receiver.answers[:] = [500, 500, 500]
    pay(api)
    assert len(stand_in.post("webhooks/flush", once=True)) == 3
    waiting = [row["state"] for row in stand_in.get("webhooks/deliveries")]
    assert waiting == ["waiting"] * 3


def test_duplicates(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    stand_in.post("webhooks", duplicate=2)
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    stand_in.wait_delivered()
    assert len(receiver.received) == 3
    assert len({received.body for received in receiver.received}) == 1


def test_redelivery_one_by_one_and_at_once(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    stand_in.wait_delivered()
    event_id = receiver.received[0].event["id"]
    for concurrent in (False, True):
        answers = stand_in.post(
            "webhooks/redeliver", event=event_id, times=3, concurrent=concurrent
        )
        assert [answer["status"] for answer in answers] == [200, 200, 200]
    assert {received.event["id"] for received in receiver.received} == {event_id}


def test_a_twin_is_the_same_object_under_another_id(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    stand_in.wait_delivered()
    stand_in.post("webhooks/twin", event=receiver.received[0].event["id"])
    first, second = (received.event for received in receiver.received)
    assert first["id"] != second["id"]
    assert first["data"] == second["data"]


def test_a_body_of_ones_own(stand_in: StandIn, receiver: Receiver) -> None:
    event = {"id": "evt_x", "object": "event", "type": "foo.bar", "data": {"object": {}}}
    stand_in.post("webhooks/send", event=event)
    stand_in.post("webhooks/send", event=event, secret=OTHER)
    stand_in.post("webhooks/send", event=event, signature="t=1,v1=nonsense")
    raw = b'{"b": 1, "a": "\xff"}\n'
    stand_in.post("webhooks/send", raw_base64=base64.b64encode(raw).decode())
    ours, theirs, replaced, odd = receiver.received
    check = stripe.WebhookSignature.verify_header
    check(ours.body, ours.headers["Stripe-Signature"], SECRET)
    check(theirs.body, theirs.headers["Stripe-Signature"], OTHER)
    assert replaced.headers["Stripe-Signature"] == "t=1,v1=nonsense"
    assert odd.body == raw


def test_two_endpoints_with_their_own_events(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    second = Receiver()
    try:
        stand_in.post(
            "webhooks/endpoints", url=second.url, secret=OTHER, enabled_events=["charge.*"]
        )
        pay(api)
        stand_in.wait_delivered()
        assert second.types() == ["charge.succeeded"]
        assert len(receiver.received) == 3
    finally:
        second.close()


def test_an_update_names_what_it_changed(stand_in: StandIn, api: Any, receiver: Receiver) -> None:
    customer = api.customers.create({"name": "旧"})
    api.customers.update(customer.id, {"name": "新"})
    stand_in.wait_delivered()
    assert receiver.received[-1].event["data"]["previous_attributes"] == {"name": "旧"}


def test_an_event_of_any_type_through_the_queue(
    stand_in: StandIn, api: Any, receiver: Receiver
) -> None:
    event = stand_in.post("webhooks/record", type="customer.tax_id.created", object={"id": "txi_1"})
    stand_in.wait_delivered()
    assert receiver.received[0].event == event
    assert [row.id for row in api.events.list().data] == [event["id"]]


def test_nobody_there(stand_in: StandIn, api: Any) -> None:
    stand_in.delete("webhooks/endpoints")
    stand_in.post("webhooks/endpoints", url="http://127.0.0.1:9/hook", secret=OTHER)
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    (row,) = stand_in.wait_delivered()
    assert (row["status"], row["state"]) == (0, "given_up")
