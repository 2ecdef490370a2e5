"""Memberships at the provider: incomplete, active, renewed, paused, behind, ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import stripe

from sandbox.stripe.testing import StandIn, client, running

DAY = 86_400


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


def price(api: Any, amount: int = 3_000, interval: str = "month") -> Any:
    return api.prices.create(
        {
            "unit_amount": amount,
            "currency": "jpy",
            "recurring": {"interval": interval},
            "product_data": {"name": "Plus"},
        }
    )


def subscribe(api: Any, **more: Any) -> Any:
    """Incomplete: nobody has paid yet."""
    customer = api.customers.create({"email": "sato@example.com"})
    return api.subscriptions.create(
        {
            "customer": customer.id,
            "items": [{"price": price(api).id}],
            "payment_behavior": "default_incomplete",
            "payment_settings": {"save_default_payment_method": "on_subscription"},
            "metadata": {"membership_id": "m1"},
            "expand": ["latest_invoice.payments", "latest_invoice.confirmation_secret"],
            **more,
        }
    )


def pay_first(api: Any, subscription: Any, card: str = "pm_card_visa") -> Any:
    intent_id = subscription.latest_invoice.payments.data[0].payment.payment_intent
    api.payment_intents.confirm(intent_id, {"payment_method": card})
    return api.subscriptions.retrieve(subscription.id)


def types(api: Any) -> list[str]:
    events = api.events.list({"limit": 100}).auto_paging_iter()
    return [event.type for event in events]


def test_the_first_payment_starts_it(api: Any) -> None:
    subscription = subscribe(api)
    assert subscription.status == "incomplete"
    assert subscription.latest_invoice.confirmation_secret.client_secret
    active = pay_first(api, subscription)
    assert active.status == "active"
    assert active.default_payment_method
    invoice = api.invoices.retrieve(active.latest_invoice)
    assert (invoice.status, invoice.amount_paid, invoice.billing_reason) == (
        "paid",
        3_000,
        "subscription_create",
    )
    assert invoice.parent.subscription_details.subscription == active.id
    assert invoice.parent.subscription_details.metadata["membership_id"] == "m1"


def test_a_declined_first_payment_leaves_it_incomplete(api: Any) -> None:
    subscription = subscribe(api)
    with pytest.raises(stripe.CardError):
        pay_first(api, subscription, "pm_card_visa_chargeDeclined")
    assert api.subscriptions.retrieve(subscription.id).status == "incomplete"
    assert "invoice.payment_failed" in types(api)
    assert pay_first(api, subscription).status == "active"


def test_never_paid_expires(stand_in: StandIn, api: Any) -> None:
    subscription = subscribe(api)
    stand_in.post("clock", advance=DAY)
    assert api.subscriptions.retrieve(subscription.id).status == "incomplete_expired"


def test_time_renews_it(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    (item,) = active["items"].data
    stand_in.post("clock", set=item.current_period_end + 1)
    renewed = api.subscriptions.retrieve(active.id)
    assert renewed["items"].data[0].current_period_start == item.current_period_end
    invoice = api.invoices.retrieve(renewed.latest_invoice)
    assert (invoice.billing_reason, invoice.status) == ("subscription_cycle", "paid")
    (line,) = invoice.lines.data
    assert line.period.start == item.current_period_end


def test_a_long_leap_renews_every_period_at_its_own_time(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    stand_in.post("clock", advance=100 * DAY)
    invoices = api.invoices.list({"subscription": active.id}).data
    cycles = [row for row in invoices if row.billing_reason == "subscription_cycle"]
    assert len(cycles) == 3
    for invoice in cycles:
        assert abs(invoice.created - invoice.lines.data[0].period.start) <= 1


def test_months_keep_the_day_of_the_anchor(stand_in: StandIn, api: Any) -> None:
    stand_in.post("clock", set=int(datetime(2027, 1, 31, 9, tzinfo=UTC).timestamp()))
    active = pay_first(api, subscribe(api))
    ends = []
    for _ in range(3):
        (item,) = api.subscriptions.retrieve(active.id)["items"].data
        ends.append(datetime.fromtimestamp(item.current_period_end, UTC).strftime("%m-%d"))
        stand_in.post(f"subscriptions/{active.id}/renew")
    assert ends == ["02-28", "03-31", "04-30"]


def test_a_renewal_that_is_declined_falls_behind_and_recovers(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    bad = api.payment_methods.create({"type": "card", "card": {"number": "4000000000000341"}})
    api.subscriptions.update(active.id, {"default_payment_method": bad.id})
    invoice = stand_in.post(f"subscriptions/{active.id}/renew")
    assert invoice["status"] == "open"
    assert api.subscriptions.retrieve(active.id).status == "past_due"
    api.invoices.pay(invoice["id"], {"payment_method": "pm_card_visa"})
    assert api.subscriptions.retrieve(active.id).status == "active"


def test_cancel_at_period_end_and_back(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    end = active["items"].data[0].current_period_end
    leaving = api.subscriptions.update(active.id, {"cancel_at_period_end": True})
    assert (leaving.status, leaving.cancel_at) == ("active", end)
    staying = api.subscriptions.update(active.id, {"cancel_at_period_end": False})
    assert (staying.cancel_at, staying.canceled_at) == (None, None)
    api.subscriptions.update(active.id, {"cancel_at_period_end": True})
    stand_in.post("clock", set=end + 1)
    assert api.subscriptions.retrieve(active.id).status == "canceled"
    assert types(api)[0] == "customer.subscription.deleted"
    assert stand_in.creates("invoice") == 1


def test_paused_collection_voids_the_renewal(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    paused = api.subscriptions.update(active.id, {"pause_collection": {"behavior": "void"}})
    assert (paused.status, paused.pause_collection.behavior) == ("active", "void")
    assert stand_in.post(f"subscriptions/{active.id}/renew")["status"] == "void"
    resumed = api.subscriptions.update(active.id, {"pause_collection": ""})
    assert resumed.pause_collection is None
    assert stand_in.post(f"subscriptions/{active.id}/renew")["status"] == "paid"


def test_switching_the_plan(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    dearer = price(api, 5_000)
    (item,) = active["items"].data
    switched = api.subscriptions.update(
        active.id, {"items": [{"id": item.id, "price": dearer.id}], "proration_behavior": "none"}
    )
    (changed,) = switched["items"].data
    assert (changed.id, changed.price.id) == (item.id, dearer.id)
    assert changed.current_period_end == item.current_period_end
    assert stand_in.post(f"subscriptions/{active.id}/renew")["amount_due"] == 5_000


def test_ended_now(api: Any) -> None:
    active = pay_first(api, subscribe(api))
    ended = api.subscriptions.cancel(active.id)
    assert (ended.status, bool(ended.ended_at)) == ("canceled", True)
    with pytest.raises(stripe.InvalidRequestError):
        api.subscriptions.update(active.id, {"cancel_at_period_end": True})
    assert [row.id for row in api.subscriptions.list().data] == []
    assert [row.id for row in api.subscriptions.list({"status": "all"}).data] == [active.id]


def test_the_invoice_of_an_intent_can_be_found(api: Any) -> None:
    active = pay_first(api, subscribe(api))
    (payment,) = api.invoice_payments.list({"invoice": active.latest_invoice}).data
    intent_id = payment.payment.payment_intent
    wanted = {"payment": {"type": "payment_intent", "payment_intent": intent_id}}
    (found,) = api.invoice_payments.list(wanted).data
    assert (found.invoice, found.status) == (active.latest_invoice, "paid")


def test_a_trial_is_invoiced_for_nothing_and_then_for_its_price(
    stand_in: StandIn, api: Any
) -> None:
    trial = subscribe(api, trial_period_days=14)
    assert (trial.status, trial.latest_invoice.amount_due) == ("trialing", 0)
    assert trial["items"].data[0].current_period_end == trial.trial_end
    methods = {"default_payment_method": "pm_card_visa"}
    api.subscriptions.update(trial.id, methods)
    stand_in.post("clock", advance=15 * DAY)
    after = api.subscriptions.retrieve(trial.id, {"expand": ["latest_invoice"]})
    assert (after.status, after.latest_invoice.amount_paid) == ("active", 3_000)
    assert [kind for kind in types(api) if kind == "invoice.paid"] == ["invoice.paid"] * 2


def test_an_end_at_an_instant_comes_in_the_middle_of_a_period(stand_in: StandIn, api: Any) -> None:
    active = pay_first(api, subscribe(api))
    at = active.created + 10 * DAY
    api.subscriptions.update(active.id, {"cancel_at": at})
    api.subscriptions.update(active.id, {"cancel_at_period_end": False})
    assert api.subscriptions.retrieve(active.id).cancel_at == at
    stand_in.post("clock", advance=11 * DAY)
    ended = api.subscriptions.retrieve(active.id)
    assert ended.status == "canceled"
    assert at <= ended.ended_at < at + DAY


def test_what_expires_can_no_longer_be_paid(stand_in: StandIn, api: Any) -> None:
    subscription = subscribe(api)
    stand_in.post("clock", advance=24 * 3600)
    assert api.invoices.retrieve(subscription.latest_invoice.id).status == "void"
    intent = subscription.latest_invoice.payments.data[0].payment.payment_intent
    assert api.payment_intents.retrieve(intent).status == "canceled"
