"""Intents, charges, refunds, disputes and lists, through the official SDK.

STRIPE_API_BASE points these at another server of Stripe's shape; what needs the control door is
then skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from sandbox.stripe.testing import StandIn, client, running


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn | str]:
    elsewhere = os.environ.get("STRIPE_API_BASE")
    if elsewhere:
        yield elsewhere
        return
    with running() as started:
        yield started


@pytest.fixture
def stand_in(server: StandIn | str) -> StandIn:
    if isinstance(server, str):
        pytest.skip("another server has no control door")
    server.post("reset")
    return server


@pytest.fixture(scope="module")
def api(server: StandIn | str) -> Any:
    base = server if isinstance(server, str) else server.base
    return client(base, os.environ.get("STRIPE_SECRET_KEY") or "sk_test_monban")


def pay(api: Any, card: str = "pm_card_visa", amount: int = 10_000, **more: Any) -> Any:
    wanted = {"amount": amount, "currency": "jpy", "confirm": True, "payment_method": card}
    plain = {"automatic_payment_methods": {"enabled": True, "allow_redirects": "never"}}
    return api.payment_intents.create({**wanted, **plain, **more})


# --- money


@pytest.mark.parametrize("amount", [50, 500, 99_999_999])
def test_c1_yen_are_whole_at_the_provider(api: Any, amount: int) -> None:
    intent = pay(api, amount=amount)
    charge = api.charges.retrieve(intent.latest_charge)
    assert (intent.amount, intent.amount_received, intent.currency) == (amount, amount, "jpy")
    assert (charge.amount, charge.amount_captured) == (amount, amount)


@pytest.mark.parametrize(
    ("amount", "code"),
    [
        ("49", "amount_too_small"),
        ("1", "amount_too_small"),
        ("0", "parameter_invalid_integer"),
        ("-50", "parameter_invalid_integer"),
        ("1.5", "parameter_invalid_integer"),
        ("５００", "parameter_invalid_integer"),
        ("100000000", "amount_too_large"),
    ],
)
def test_c4_an_amount_that_cannot_be_charged(stand_in: StandIn, api: Any, amount: str, code: str):
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.payment_intents.create({"amount": amount, "currency": "jpy"})
    assert (refusal.value.code, refusal.value.param) == (code, "amount")
    assert stand_in.creates("payment_intent") == 0


def test_a_currency_that_is_not_ours(api: Any) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.payment_intents.create({"amount": 500, "currency": "xyz"})
    assert refusal.value.param == "currency"


def test_a_declined_card(api: Any) -> None:
    with pytest.raises(stripe.CardError) as refusal:
        pay(api, "pm_card_visa_chargeDeclinedInsufficientFunds")
    error = refusal.value.error
    assert refusal.value.http_status == 402
    assert (error.code, error.decline_code) == ("card_declined", "insufficient_funds")
    intent = api.payment_intents.retrieve(error.payment_intent.id)
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error.decline_code == "insufficient_funds"
    assert api.charges.retrieve(intent.latest_charge).status == "failed"


def test_another_card_after_a_decline_pays_the_same_intent(api: Any) -> None:
    intent = api.payment_intents.create({"amount": 500, "currency": "jpy"})
    with pytest.raises(stripe.CardError):
        api.payment_intents.confirm(
            intent.id,
            {
                "payment_method": "pm_card_visa_chargeDeclined",
                "return_url": "https://example.com/back",
            },
        )
    paid = api.payment_intents.confirm(
        intent.id, {"payment_method": "pm_card_visa", "return_url": "https://example.com/back"}
    )
    assert (paid.status, paid.last_payment_error) == ("succeeded", None)


def test_three_d_secure_asks_for_the_person(stand_in: StandIn, api: Any) -> None:
    intent = pay(api, "pm_card_authenticationRequired")
    assert (intent.status, intent.next_action.type) == ("requires_action", "redirect_to_url")
    stand_in.post(f"payment_intents/{intent.id}/challenge", approve=True)
    assert api.payment_intents.retrieve(intent.id).status == "succeeded"


def test_nobody_there_to_authenticate(stand_in: StandIn, api: Any) -> None:
    with pytest.raises(stripe.CardError) as refusal:
        pay(api, "pm_card_authenticationRequired", off_session=True)
    assert refusal.value.code == "authentication_required"


@pytest.mark.parametrize(
    ("outcome", "status"), [("succeeded", "succeeded"), ("declined", "requires_payment_method")]
)
def test_processing_is_decided_later(
    stand_in: StandIn, api: Any, outcome: str, status: str
) -> None:
    intent = pay(api, "pm_card_processing")
    assert (intent.status, intent.amount_received) == ("processing", 0)
    stand_in.post(f"payment_intents/{intent.id}/finish", outcome=outcome)
    assert api.payment_intents.retrieve(intent.id).status == status


def test_a_changed_amount_updates_the_open_intent(api: Any) -> None:
    intent = api.payment_intents.create(
        {"amount": 12_000, "currency": "jpy", "metadata": {"a": "1", "b": "2"}}
    )
    changed = api.payment_intents.update(intent.id, {"amount": 9_000, "metadata": {"b": ""}})
    assert (changed.amount, changed.metadata.to_dict()) == (9_000, {"a": "1"})


def test_a_paid_intent_can_be_neither_changed_nor_cancelled(api: Any) -> None:
    intent = pay(api)
    for refused in (
        lambda: api.payment_intents.update(intent.id, {"amount": 9_000}),
        lambda: api.payment_intents.cancel(intent.id),
    ):
        with pytest.raises(stripe.InvalidRequestError) as refusal:
            refused()
        assert refusal.value.code == "payment_intent_unexpected_state"


def test_hold_then_capture_a_part(api: Any) -> None:
    intent = pay(api, capture_method="manual")
    assert (intent.status, intent.amount_capturable) == ("requires_capture", 10_000)
    captured = api.payment_intents.capture(intent.id, {"amount_to_capture": 7_000})
    assert (captured.status, captured.amount_received) == ("succeeded", 7_000)


# --- refunds and disputes


def test_refunds_add_up_and_never_past_the_charge(api: Any) -> None:
    intent = pay(api)
    api.refunds.create({"payment_intent": intent.id, "amount": 3_000})
    with pytest.raises(stripe.InvalidRequestError):
        api.refunds.create({"payment_intent": intent.id, "amount": 7_001})
    rest = api.refunds.create({"payment_intent": intent.id})
    assert rest.amount == 7_000
    charge = api.charges.retrieve(intent.latest_charge)
    assert (charge.amount_refunded, charge.refunded) == (10_000, True)
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.refunds.create({"payment_intent": intent.id, "amount": 1})
    assert refusal.value.code == "charge_already_refunded"
    amounts = [row.amount for row in api.refunds.list({"payment_intent": intent.id}).data]
    assert sorted(amounts) == [3_000, 7_000]


def test_c11_a_refund_that_fails_later_gives_its_amount_back(stand_in: StandIn, api: Any) -> None:
    intent = pay(api)
    stand_in.post("refunds/next", statuses=["pending"])
    refund = api.refunds.create({"payment_intent": intent.id, "amount": 4_000})
    assert (refund.status, refund.pending_reason) == ("pending", "processing")
    assert api.charges.retrieve(intent.latest_charge).amount_refunded == 4_000
    stand_in.post(f"refunds/{refund.id}", status="failed", failure_reason="lost_or_stolen_card")
    failed = api.refunds.retrieve(refund.id)
    assert (failed.status, failed.failure_reason) == ("failed", "lost_or_stolen_card")
    assert api.charges.retrieve(intent.latest_charge).amount_refunded == 0
    types = [event.type for event in api.events.list({"limit": 3}).data]
    assert types == ["refund.failed", "charge.refund.updated", "refund.updated"]


def test_a_refund_of_the_dashboard_carries_nothing_of_ours(stand_in: StandIn, api: Any) -> None:
    intent = pay(api, metadata={"payment_id": "p1"})
    stand_in.post("refunds", payment_intent=intent.id, amount=2_500)
    (refund,) = api.refunds.list({"payment_intent": intent.id}).data
    assert (refund.amount, refund.metadata.to_dict()) == (2_500, {})


def test_c10_a_dispute_stops_refunds_until_it_is_won(stand_in: StandIn, api: Any) -> None:
    intent = pay(api)
    api.refunds.create({"payment_intent": intent.id, "amount": 4_000})
    dispute = stand_in.post("disputes", payment_intent=intent.id)
    assert dispute["amount"] == 6_000
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.refunds.create({"payment_intent": intent.id, "amount": 6_000})
    assert refusal.value.code == "charge_disputed"
    stand_in.post(f"disputes/{dispute['id']}/close", status="won")
    assert api.refunds.create({"payment_intent": intent.id, "amount": 6_000}).amount == 6_000


def test_a_lost_dispute_stops_refunds_for_good(stand_in: StandIn, api: Any) -> None:
    intent = pay(api)
    dispute = stand_in.post("disputes", payment_intent=intent.id, amount=6_000)
    stand_in.post(f"disputes/{dispute['id']}/close", status="lost")
    with pytest.raises(stripe.InvalidRequestError):
        api.refunds.create({"payment_intent": intent.id, "amount": 1})


# --- lists


def test_pages_are_newest_first_and_whole(stand_in: StandIn, api: Any) -> None:
    made = [api.payment_intents.create({"amount": 500, "currency": "jpy"}).id for _ in range(7)]
    page = api.payment_intents.list({"limit": 3})
    assert ([row.id for row in page.data], page.has_more) == (made[:3:-1], True)
    assert [row.id for row in page.auto_paging_iter()] == made[::-1]
    forward = api.payment_intents.list({"limit": 3, "ending_before": made[0]})
    assert [row.id for row in forward.auto_paging_iter()] == made[1:]


def test_created_bounds(stand_in: StandIn, api: Any) -> None:
    api.payment_intents.create({"amount": 500, "currency": "jpy"})
    later = stand_in.post("clock", advance=3_600)["now"]
    new = api.payment_intents.create({"amount": 500, "currency": "jpy"})
    listed = api.payment_intents.list({"created": {"gte": later}}).data
    assert [row.id for row in listed] == [new.id]
    assert len(api.payment_intents.list({"created": {"lt": later}}).data) == 1


def test_events_by_type(stand_in: StandIn, api: Any) -> None:
    pay(api)
    events = api.events.list({"types": ["payment_intent.succeeded", "charge.*"]}).data
    assert [event.type for event in events] == ["payment_intent.succeeded", "charge.succeeded"]
    assert events[0].request.idempotency_key


def test_expanding(api: Any) -> None:
    intent = pay(api)
    shown = api.payment_intents.retrieve(intent.id, {"expand": ["latest_charge.refunds"]})
    assert shown.latest_charge.refunds.data == []
    with pytest.raises(stripe.InvalidRequestError):
        api.payment_intents.retrieve(intent.id, {"expand": ["nothing"]})


# --- refusals of the door itself


@pytest.mark.parametrize("key", ["sk_live_monban", "pk_test_monban", "nonsense"])
def test_a_bad_key(stand_in: StandIn, key: str) -> None:
    with pytest.raises(stripe.AuthenticationError) as refusal:
        client(stand_in.base, key).payment_intents.list()
    assert refusal.value.http_status == 401


def test_an_object_that_does_not_exist(api: Any) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.payment_intents.retrieve("pi_nothing")
    assert (refusal.value.http_status, refusal.value.code) == (404, "resource_missing")


def test_a_parameter_that_does_not_exist(api: Any) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refusal:
        api.payment_intents.create({"amount": 500, "currency": "jpy", "colour": "red"})
    assert (refusal.value.code, refusal.value.param) == ("parameter_unknown", "colour")


def test_metadata_limits(api: Any) -> None:
    wanted = {"amount": 500, "currency": "jpy"}
    whole = api.payment_intents.create({**wanted, "metadata": {"k" * 40: "髙" * 500}})
    assert whole.metadata["k" * 40] == "髙" * 500
    for metadata in ({"k": "x" * 501}, {"k" * 41: "x"}, {str(i): "x" for i in range(51)}):
        with pytest.raises(stripe.InvalidRequestError):
            api.payment_intents.create({**wanted, "metadata": metadata})


def test_state_survives_a_restart(tmp_path: Any) -> None:
    file = str(tmp_path / "stripe.json")
    with running("--state-file", file) as first:
        intent = pay(client(first.base))
    with running("--state-file", file) as second:
        again = client(second.base).payment_intents.retrieve(intent.id)
        assert again.status == "succeeded"
        assert client(second.base).refunds.create({"payment_intent": intent.id}).amount == 10_000
