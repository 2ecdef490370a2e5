"""Everything that the stand-in says, held against the official SDK's own annotations."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import stripe

from sandbox.stripe import API_VERSION
from sandbox.stripe.shape_check import problems
from sandbox.stripe.testing import StandIn, running

KINDS = {
    "charge",
    "customer",
    "dispute",
    "event",
    "invoice",
    "invoice_payment",
    "payment_intent",
    "payment_method",
    "price",
    "product",
    "refund",
    "subscription",
}


class Listening(stripe.RequestsClient):
    """Keeps every answer as it came over the wire."""

    def __init__(self) -> None:
        super().__init__(timeout=(3.0, 5.0))
        self.answers: list[dict[str, Any]] = []

    def request(self, method: str, url: str, headers: Any, post_data: Any = None) -> Any:
        content, status, received = super().request(method, url, headers, post_data)
        if status == 200:
            self.answers.append(json.loads(content))
        return content, status, received


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def answers(stand_in: StandIn) -> list[dict[str, Any]]:
    """A life with everything in it: paid, declined, challenged, refunded, disputed, renewed."""
    ear = Listening()
    client = stripe.StripeClient(
        "sk_test_monban",
        base_addresses={"api": stand_in.base},
        max_network_retries=0,
        http_client=ear,
    ).v1
    live_through_payments(client, stand_in)
    live_through_membership(client, stand_in)
    client.charges.list({"limit": 100, "expand": ["data.refunds", "data.payment_intent"]})
    client.payment_intents.list({"limit": 100, "expand": ["data.latest_charge"]})
    client.invoices.list({"limit": 100, "expand": ["data.payments"]})
    client.invoice_payments.list({"limit": 100})
    client.disputes.list({"limit": 100})
    client.refunds.list({"limit": 100})
    list(client.events.list({"limit": 100}).auto_paging_iter())
    return ear.answers


def live_through_payments(client: Any, stand_in: StandIn) -> None:
    def pay(card: str, **more: Any) -> Any:
        wanted = {"amount": 10_000, "currency": "jpy", "confirm": True, "payment_method": card}
        return client.payment_intents.create({**wanted, "metadata": {"payment_id": "p"}, **more})

    paid = pay("pm_card_visa")
    held = pay("pm_card_visa", capture_method="manual")
    client.payment_intents.capture(held.id)
    client.payment_intents.cancel(pay("pm_card_visa", capture_method="manual").id)
    challenged = pay("pm_card_authenticationRequired", return_url="http://example.com/back")
    stand_in.post(f"payment_intents/{challenged.id}/challenge", approve=False)
    waiting = pay("pm_card_processing")
    stand_in.post(f"payment_intents/{waiting.id}/finish", outcome="declined")
    for card in ("pm_card_visa_chargeDeclined", "pm_card_chargeDeclinedExpiredCard"):
        with pytest.raises(stripe.CardError):
            pay(card)
    client.refunds.create({"payment_intent": paid.id, "amount": 1_000, "reason": "duplicate"})
    stand_in.post("refunds/next", statuses=["pending"])
    late = client.refunds.create({"payment_intent": paid.id, "amount": 500})
    stand_in.post(f"refunds/{late.id}", status="failed")
    dispute = stand_in.post("disputes", payment_intent=paid.id)
    stand_in.post(f"disputes/{dispute['id']}/close", status="won")


def live_through_membership(client: Any, stand_in: StandIn) -> None:
    customer = client.customers.create({"email": "sato@example.com", "name": "佐藤"})
    method = client.payment_methods.create({"type": "card", "card": {"token": "tok_visa"}})
    client.payment_methods.attach(method.id, {"customer": customer.id})
    client.payment_methods.detach(method.id)
    monthly = {"interval": "month"}
    wanted = {"unit_amount": 3000, "currency": "jpy", "product_data": {"name": "Plus"}}
    price = client.prices.create({**wanted, "recurring": monthly})
    client.products.retrieve(price.product)
    expand = ["latest_invoice.payments", "latest_invoice.confirmation_secret", "customer"]
    subscription = client.subscriptions.create(
        {
            "customer": customer.id,
            "items": [{"price": price.id, "quantity": 2}],
            "payment_behavior": "default_incomplete",
            "payment_settings": {"save_default_payment_method": "on_subscription"},
            "expand": expand,
        }
    )
    payment = subscription.latest_invoice.payments.data[0].payment
    client.payment_intents.confirm(payment.payment_intent, {"payment_method": "pm_card_visa"})
    stand_in.post("clock", advance=32 * 86_400)
    client.subscriptions.update(
        subscription.id, {"pause_collection": {"behavior": "void"}, "cancel_at_period_end": True}
    )
    client.subscriptions.update(subscription.id, {"pause_collection": ""})
    client.subscriptions.cancel(subscription.id)


def test_the_version_is_the_one_the_sdk_pins() -> None:
    assert stripe.api_version == API_VERSION


def test_every_answer_is_what_the_sdk_expects(answers: list[dict[str, Any]]) -> None:
    found = sorted({problem for answer in answers for problem in problems(answer)})
    assert found == []


def test_every_kind_was_looked_at(answers: list[dict[str, Any]]) -> None:
    rows = [row for a in answers for row in (a["data"] if a["object"] == "list" else [a])]
    seen = {row["object"] for row in rows}
    seen |= {row["data"]["object"]["object"] for row in rows if row["object"] == "event"}
    assert seen >= KINDS


def test_every_stored_object_is_what_the_sdk_expects(
    stand_in: StandIn, answers: list[dict[str, Any]]
) -> None:
    shelves = stand_in.get("objects")
    found = sorted({p for rows in shelves.values() for row in rows for p in problems(row)})
    assert found == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"surprise": 1}, "payment_intent.surprise: unknown field"),
        ({"amount": "500"}, "payment_intent.amount: '500' is not int"),
        ({"livemode": 0}, "payment_intent.livemode: 0 is not bool"),
        ({"status": "paid"}, "payment_intent.status: 'paid' is no value of this field"),
        ({"metadata": {"a": 1}}, "payment_intent.metadata[a]: 1 is not str"),
        ({"currency": None}, "payment_intent.currency: None is not str"),
        ({"object": "charge"}, "charge.client_secret: unknown field"),
        (
            {"automatic_payment_methods": {"enabled": "yes"}},
            "payment_intent.automatic_payment_methods.enabled: 'yes' is not bool",
        ),
    ],
)
def test_a_bad_object_is_found(
    answers: list[dict[str, Any]], change: dict[str, Any], problem: str
) -> None:
    good = next(answer for answer in answers if answer["object"] == "payment_intent")
    assert problem in problems({**copy.deepcopy(good), **change})


def test_a_missing_field_is_found(answers: list[dict[str, Any]]) -> None:
    good = next(answer for answer in answers if answer["object"] == "refund")
    without = {name: value for name, value in good.items() if name != "amount"}
    assert problems(without) == ["refund.amount: missing"]


def test_a_bad_object_inside_a_list_is_found(answers: list[dict[str, Any]]) -> None:
    good = next(answer for answer in answers if answer["object"] == "subscription")
    bad = copy.deepcopy(good)
    bad["items"]["data"][0]["current_period_end"] = None
    assert problems(bad) == ["subscription.items.data[0].current_period_end: None is not int"]


def test_periods_are_not_top_level_any_more(answers: list[dict[str, Any]]) -> None:
    subscription = next(answer for answer in answers if answer["object"] == "subscription")
    assert "current_period_end" not in subscription
    assert problems({**subscription, "current_period_end": 1}) != []
