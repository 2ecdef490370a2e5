"""The provider's objects into ours: what is read, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from portal.edges.payments import (
    Intent,
    Refund,
    UnreadablePayload,
    intent_from_payload,
    refund_from_payload,
)

INTENT: dict[str, Any] = {
    "id": "pi_1",
    "object": "payment_intent",
    "status": "succeeded",
    "amount": 500,
    "amount_received": 500,
    "currency": "jpy",
    "client_secret": "pi_1_secret_x",
    "metadata": {"payment_id": "p1"},
    "latest_charge": "ch_1",
    "livemode": False,
    "created": 1_793_599_230,
    "last_payment_error": None,
}
REFUND: dict[str, Any] = {
    "id": "re_1",
    "object": "refund",
    "status": "pending",
    "amount": 300,
    "currency": "jpy",
    "payment_intent": "pi_1",
    "charge": "ch_1",
    "metadata": {"refund_id": "r1"},
    "created": 1_793_599_230,
}
CREATED = datetime.fromtimestamp(1_793_599_230, UTC)


def test_an_intent() -> None:
    assert intent_from_payload(INTENT) == Intent(
        id="pi_1",
        status="succeeded",
        amount=500,
        amount_received=500,
        currency="JPY",
        client_secret="pi_1_secret_x",
        metadata={"payment_id": "p1"},
        latest_charge="ch_1",
        livemode=False,
        created=CREATED,
        decline_code=None,
    )


def test_the_client_secret_is_not_shown() -> None:
    assert "secret" not in repr(intent_from_payload(INTENT))


def test_a_refund() -> None:
    assert refund_from_payload(REFUND) == Refund(
        id="re_1",
        status="pending",
        amount=300,
        currency="JPY",
        intent_id="pi_1",
        charge_id="ch_1",
        metadata={"refund_id": "r1"},
        failure_reason=None,
        created=CREATED,
    )


def test_an_expanded_charge_is_its_id() -> None:
    expanded = {**INTENT, "latest_charge": {"id": "ch_1", "object": "charge"}}
    assert intent_from_payload(expanded).latest_charge == "ch_1"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": "card_declined", "decline_code": "insufficient_funds"}, "insufficient_funds"),
        (
            {"code": "payment_intent_authentication_failure"},
            "payment_intent_authentication_failure",
        ),
        ({}, None),
    ],
)
def test_why_it_was_declined(error: dict[str, Any], code: str | None) -> None:
    assert intent_from_payload({**INTENT, "last_payment_error": error}).decline_code == code


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": ""},
        {"id": "x" * 256},
        {"object": "charge"},
        {"status": "paid"},
        {"status": None},
        {"amount": "500"},
        {"amount": 500.0},
        {"amount": -1},
        {"amount": True},
        {"amount": None},
        {"amount_received": None},
        {"currency": "yen!"},
        {"currency": None},
        {"client_secret": 1},
        {"metadata": ["a"]},
        {"metadata": "text"},
        {"metadata": {"a": 1}},
        {"metadata": {"a": None}},
        {"latest_charge": 1},
        {"latest_charge": {}},
        {"livemode": None},
        {"livemode": "true"},
        {"created": "1"},
        {"created": 10**20},
        {"last_payment_error": "declined"},
        {"last_payment_error": {"decline_code": 1}},
    ],
)
def test_an_intent_that_cannot_be_read(change: dict[str, Any]) -> None:
    with pytest.raises(UnreadablePayload):
        intent_from_payload({**INTENT, **change})


@pytest.mark.parametrize("name", [name for name in INTENT if name != "last_payment_error"])
def test_an_intent_with_something_missing(name: str) -> None:
    rest = {key: value for key, value in INTENT.items() if key != name}
    if name in ("client_secret", "metadata", "latest_charge"):
        assert intent_from_payload(rest).id == "pi_1"
        return
    with pytest.raises(UnreadablePayload):
        intent_from_payload(rest)


@pytest.mark.parametrize(
    "change",
    [
        {"object": "payment_intent"},
        {"status": None},
        {"status": "done"},
        {"amount": None},
        {"payment_intent": 7},
        {"failure_reason": 7},
        {"created": None},
    ],
)
def test_a_refund_that_cannot_be_read(change: dict[str, Any]) -> None:
    with pytest.raises(UnreadablePayload):
        refund_from_payload({**REFUND, **change})


@pytest.mark.parametrize("payload", [None, [], "pi_1", 7])
def test_no_object_at_all(payload: Any) -> None:
    with pytest.raises(UnreadablePayload):
        intent_from_payload(payload)
