"""Every way to fail on order, as the official SDK really sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
import requests
import stripe

from sandbox.stripe.testing import StandIn, client, running


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
    return client(stand_in.base, read_seconds=0.6)


def create(api: Any) -> Any:
    return api.payment_intents.create({"amount": 500, "currency": "jpy"})


def failing(api: Any) -> stripe.StripeError:
    with pytest.raises(stripe.StripeError) as failure:
        create(api)
    return failure.value


@pytest.mark.parametrize(("mode", "made"), [("do_then_drop", 1), ("refuse", 0)])
def test_the_line_is_really_cut(stand_in: StandIn, api: Any, mode: str, made: int) -> None:
    stand_in.fault(mode)
    error = failing(api)
    assert isinstance(error, stripe.APIConnectionError)
    assert isinstance(error.__cause__, requests.exceptions.ConnectionError)
    assert stand_in.creates("payment_intent") == made
    assert create(api).id


@pytest.mark.parametrize(
    ("mode", "status", "made"),
    [("error_500_before", 500, 0), ("error_500_after", 500, 1), ("rate_limit", 429, 0)],
)
def test_errors_with_an_answer(
    stand_in: StandIn, api: Any, mode: str, status: int, made: int
) -> None:
    stand_in.fault(mode)
    assert failing(api).http_status == status
    assert stand_in.creates("payment_intent") == made


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_stall_outlasts_the_client_and_the_work_is_done(
    stand_in: StandIn, api: Any, when: str
) -> None:
    stand_in.fault("stall", seconds=1.0, when=when)
    error = failing(api)
    assert isinstance(error.__cause__, requests.exceptions.ReadTimeout)
    assert stand_in.creates("payment_intent") == (1 if when == "after" else 0)
    time.sleep(0.8)
    assert stand_in.creates("payment_intent") == 1


def test_a_rate_limit_says_when_to_come_back(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("rate_limit", retry_after=7)
    assert failing(api).headers["Retry-After"] == "7"


def test_down_cuts_everything_but_the_control_door(stand_in: StandIn, api: Any) -> None:
    stand_in.post("down", down=True)
    assert isinstance(failing(api), stripe.APIConnectionError)
    assert stand_in.get("faults")["down"] is True
    stand_in.post("down", down=False)
    assert create(api).id


def test_a_shut_port_refuses_connections(stand_in: StandIn, api: Any) -> None:
    assert create(api).id
    stand_in.post("listening", open=False)
    try:
        assert "Connection refused" in str(failing(api))
    finally:
        stand_in.post("listening", open=True)
    assert create(api).id


def test_only_what_matches_and_only_so_often(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("error_500_before", "/confirm$", times=2)
    intent = create(api)
    for _ in range(2):
        with pytest.raises(stripe.APIError):
            api.payment_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    paid = api.payment_intents.confirm(intent.id, {"payment_method": "pm_card_visa"})
    assert paid.status == "succeeded"
    assert [fault["hits"] for fault in stand_in.get("faults")["faults"]] == [2]


def test_faults_can_be_cleared(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("error_500_before", times=None)
    failing(api)
    failing(api)
    stand_in.delete("faults")
    assert create(api).id


def test_a_reset_leaves_nothing_of_a_call_still_stalled(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("stall", seconds=1.2)
    failing(api)
    stand_in.post("reset")
    time.sleep(0.9)
    assert stand_in.get("counters") == {"creates": {}, "calls": 0, "events": 0}


def test_nonsense_at_the_control_door(stand_in: StandIn) -> None:
    for door, body in (
        ("faults", {"mode": "explode"}),
        ("faults", {"mode": "stall", "colour": 1}),
        ("faults", {"mode": "stall", "path": "("}),
        ("nothing", {}),
        ("webhooks", {"colour": 1}),
    ):
        with pytest.raises(HTTPError) as refusal:
            stand_in.post(door, **body)
        assert refusal.value.code in (400, 404)


def test_what_was_asked_is_on_record(stand_in: StandIn, api: Any) -> None:
    api.payment_intents.create(
        {"amount": 500, "currency": "jpy", "metadata": {"a": "1"}}, {"idempotency_key": "k9"}
    )
    (call,) = stand_in.calls("/v1/payment_intents")
    assert call["idempotency_key"] == "k9"
    assert call["params"] == {"amount": "500", "currency": "jpy", "metadata": {"a": "1"}}
    assert (call["status"], call["fault"]) == (200, None)


def test_a_silence_instead_of_the_work(stand_in: StandIn, api: Any) -> None:
    stand_in.fault("stall", seconds=0.9, when="instead")
    error = failing(api)
    assert isinstance(error.__cause__, requests.exceptions.Timeout)
    assert create(api).id
    assert stand_in.creates("payment_intent") == 1
