"""Idempotency as Stripe documents it, seen through the official SDK."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from sandbox.stripe.testing import StandIn, client, running

HOUR = 3_600
WANTED = {"amount": 500, "currency": "jpy"}


@pytest.fixture(scope="module")
def started() -> Iterator[StandIn]:
    with running() as stand_in:
        yield stand_in


@pytest.fixture
def stand_in(started: StandIn) -> StandIn:
    started.post("reset")
    return started


@pytest.fixture
def api(stand_in: StandIn) -> Any:
    return client(stand_in.base)


def create(api: Any, key: str, **more: Any) -> Any:
    return api.payment_intents.create({**WANTED, **more}, {"idempotency_key": key})


def test_a_repeat_is_answered_with_the_first_answer(stand_in: StandIn, api: Any) -> None:
    first = create(api, "k1")
    api.payment_intents.update(first.id, {"description": "changed meanwhile"})
    second = create(api, "k1")
    assert second.last_response.body == first.last_response.body
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.last_response.headers
    assert stand_in.creates("payment_intent") == 1


def test_parameters_in_another_order_are_the_same(stand_in: StandIn, api: Any) -> None:
    create(api, "k1", description="a", metadata={"x": "1", "y": "2"})
    create(api, "k1", metadata={"y": "2", "x": "1"}, description="a")
    assert stand_in.creates("payment_intent") == 1


def test_b4_changed_parameters_are_refused(stand_in: StandIn, api: Any) -> None:
    create(api, "k1")
    with pytest.raises(stripe.IdempotencyError) as refusal:
        create(api, "k1", amount=900)
    assert refusal.value.http_status == 400
    assert stand_in.creates("payment_intent") == 1


def test_the_same_key_at_another_endpoint_is_refused(api: Any) -> None:
    create(api, "k1")
    with pytest.raises(stripe.IdempotencyError):
        api.customers.create({"name": "a"}, {"idempotency_key": "k1"})


def test_b2_a_decline_is_replayed(stand_in: StandIn, api: Any) -> None:
    declined = {"confirm": True, "payment_method": "pm_card_visa_chargeDeclined"}
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            create(api, "k1", **declined)
    assert stand_in.creates("charge") == 1
    assert create(api, "k2", confirm=True, payment_method="pm_card_visa").status == "succeeded"


@pytest.mark.parametrize(
    ("mode", "kept", "made"),
    [("error_500_after", True, 1), ("error_500_before", False, 1)],
)
def test_a_500_is_kept_once_the_work_has_begun(
    stand_in: StandIn, api: Any, mode: str, kept: bool, made: int
) -> None:
    stand_in.fault(mode, "/v1/payment_intents")
    with pytest.raises(stripe.APIError):
        create(api, "k1")
    if kept:
        with pytest.raises(stripe.APIError):
            create(api, "k1")
    else:
        create(api, "k1")
    assert stand_in.creates("payment_intent") == made


def test_a_500_before_the_work_can_be_kept_too(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("error_500_before", "/v1/payment_intents", stored=True)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            create(api, "k1")
    assert stand_in.creates("payment_intent") == 0


def test_a_refusal_of_the_parameters_is_not_kept(stand_in: StandIn, api: Any) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        create(api, "k1", amount=10)
    assert create(api, "k1").amount == 500


def test_a_refusal_of_the_state_is_kept(stand_in: StandIn, api: Any) -> None:
    intent = create(api, "k1", confirm=True, payment_method="pm_card_visa")
    too_much = {"payment_intent": intent.id, "amount": 501}
    for _ in range(2):
        with pytest.raises(stripe.InvalidRequestError):
            api.refunds.create(too_much, {"idempotency_key": "r1"})
    assert [call["replayed"] for call in stand_in.calls("/v1/refunds")] == [False, True]


def test_b5_a_second_call_while_the_first_runs(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("stall", "/v1/payment_intents", seconds=0.7)
    first: list[Any] = []
    slow = threading.Thread(target=lambda: first.append(create(api, "k1")))
    slow.start()
    threading.Event().wait(0.2)
    with pytest.raises(stripe.APIError) as refusal:
        create(api, "k1")
    slow.join()
    assert refusal.value.http_status == 409
    assert refusal.value.error.code == "idempotency_key_in_use"
    assert create(api, "k1").id == first[0].id
    assert stand_in.creates("payment_intent") == 1


def test_b7_a_key_is_forgotten_after_a_day(stand_in: StandIn, api: Any) -> None:
    first = create(api, "k1")
    stand_in.post("clock", advance=23 * HOUR)
    assert create(api, "k1").id == first.id
    stand_in.post("clock", advance=2 * HOUR)
    assert create(api, "k1").id != first.id


def test_the_answer_of_a_dropped_call_is_kept(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("do_then_drop", "/v1/payment_intents")
    with pytest.raises(stripe.APIConnectionError):
        create(api, "k1")
    assert create(api, "k1").last_response.headers["Idempotent-Replayed"] == "true"
    assert stand_in.creates("payment_intent") == 1


def test_a_key_that_is_too_long(api: Any) -> None:
    assert create(api, "k" * 255).id
    with pytest.raises(stripe.IdempotencyError):
        create(api, "k" * 256)
