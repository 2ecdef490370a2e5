"""Subscriptions: the adapter and the real SDK against the stand-in, over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.edges.billing.adapter import StripeBilling
from portal.edges.billing.port import Billing, FirstPayment, Subscription
from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.fence import TransactionOpenError, transaction_began, transaction_ended
from sandbox.stripe.testing import StandIn, client, running

KEY = "sk_test_monban"
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
def billing(stand_in: StandIn) -> Billing:
    return StripeBilling(KEY, api_base=stand_in.base, connect_seconds=1, read_seconds=3)


@pytest.fixture
def api(stand_in: StandIn) -> Any:
    return client(stand_in.base, KEY)


def a_price(billing: Billing, amount: int = 1_980, key: str = "price") -> str:
    return billing.create_price(
        key=key,
        name="月会員",
        amount=amount,
        currency="JPY",
        interval="month",
        metadata={"plan_id": "p1"},
    )


def a_customer(billing: Billing, key: str = "customer") -> str:
    return billing.create_customer(
        key=key, name="山田 花子", email="hanako@guest.example", metadata={"member_id": "g1"}
    )


def subscribe(billing: Billing, key: str = "leg-1", membership: str = "m1") -> FirstPayment:
    return billing.subscribe(
        key=key,
        customer_id=a_customer(billing),
        price_id=a_price(billing),
        metadata={"membership_id": membership},
    )


def pay(api: Any, first: FirstPayment, card: str = "pm_card_visa") -> None:
    """What the guest does on the page."""
    api.payment_intents.confirm(
        first.intent_id, {"payment_method": card, "return_url": "https://example.com/back"}
    )


@pytest.fixture
def active(billing: Billing, api: Any) -> Subscription:
    first = subscribe(billing)
    pay(api, first)
    return billing.retrieve_subscription(first.subscription.id)


# --- the ordinary


def test_it_waits_for_its_first_payment_and_then_runs(billing: Billing, api: Any) -> None:
    first = subscribe(billing)
    assert (first.subscription.status, first.subscription.amount) == ("incomplete", 1_980)
    assert first.intent_id is not None
    assert first.client_secret is not None
    assert first.client_secret.startswith(first.intent_id)
    assert billing.first_payment(first.subscription.id) == first
    pay(api, first)
    paid = billing.first_payment(first.subscription.id)
    assert (paid.subscription.status, paid.intent_id) == ("active", first.intent_id)
    (invoice,) = billing.invoices_of(first.subscription.id)
    assert (invoice.status, invoice.amount_paid, invoice.subscription_id) == (
        "paid",
        1_980,
        first.subscription.id,
    )
    assert invoice.metadata == {"membership_id": "m1"}
    assert (invoice.period_start, invoice.period_end) == (
        paid.subscription.period_start,
        paid.subscription.period_end,
    )
    (payment,) = billing.payments_of(invoice.id)
    assert (payment.intent_id, payment.status) == (first.intent_id, "paid")
    assert billing.retrieve_invoice(invoice.id) == invoice


def test_the_card_is_kept_for_the_next_periods(
    stand_in: StandIn, billing: Billing, active: Subscription
) -> None:
    stand_in.post("clock", advance=35 * DAY)
    renewed = billing.retrieve_subscription(active.id)
    assert (renewed.status, renewed.period_start) == ("active", active.period_end)
    invoices = billing.invoices_of(active.id)
    assert [(one.status, one.reason) for one in invoices] == [
        ("paid", "subscription_create"),
        ("paid", "subscription_cycle"),
    ]


def test_an_end_is_set_and_taken_back(billing: Billing, active: Subscription) -> None:
    ending = billing.end_at_period_end(key="k1", subscription_id=active.id)
    assert ending.ends_at == active.period_end
    assert billing.end_at_period_end(key="k2", subscription_id=active.id) == ending
    assert billing.go_on(key="k3", subscription_id=active.id).ends_at is None


def test_an_end_at_an_instant_is_taken_back_as_well(billing: Billing, active: Subscription) -> None:
    at = (active.period_start + timedelta(days=10)).replace(microsecond=0)
    ending = billing.end_at(key="k1", subscription_id=active.id, at=at)
    assert (ending.ends_at, ending.cancel_at_period_end) == (at, False)
    assert billing.go_on(key="k2", subscription_id=active.id).ends_at is None


def test_an_instant_that_is_past_is_no_end(billing: Billing, active: Subscription) -> None:
    with pytest.raises(Rejected):
        billing.end_at(key="k1", subscription_id=active.id, at=active.created - timedelta(days=1))
    assert billing.retrieve_subscription(active.id).ends_at is None


def test_ended_now_and_once_more(billing: Billing, active: Subscription) -> None:
    ended = billing.end_now(active.id)
    assert (ended.status, ended.over) == ("canceled", True)
    again = billing.end_now(active.id)
    assert replace(again, told_at=ended.told_at) == ended, "but for when it was said"


def test_what_never_was_is_not_ended(billing: Billing) -> None:
    with pytest.raises((Rejected, Unreachable)):
        billing.end_now("sub_nothing")


def test_d13_a_switch_changes_the_one_subscription(
    stand_in: StandIn, billing: Billing, active: Subscription
) -> None:
    dearer = a_price(billing, 2_980, "price-2")
    switched = billing.switch(
        key="k1", subscription_id=active.id, item_id=active.items[0].id, price_id=dearer
    )
    assert (switched.id, switched.amount) == (active.id, 2_980)
    assert switched.period_end == active.period_end
    assert stand_in.creates("subscription") == 1
    assert len(billing.invoices_of(active.id)) == 1


def test_an_open_invoice_is_voided_and_cannot_be_paid(billing: Billing, api: Any) -> None:
    first = subscribe(billing)
    (invoice,) = billing.invoices_of(first.subscription.id)
    assert billing.void_invoice(invoice.id).status == "void"
    assert billing.void_invoice(invoice.id).status == "void"
    assert billing.end_now(first.subscription.id).over
    with pytest.raises(Exception, match="canceled"):
        pay(api, first)


@pytest.mark.parametrize("card", ["pm_card_visa", "pm_card_processing"])
def test_money_that_came_or_is_on_its_way_is_not_voided(
    billing: Billing, api: Any, card: str
) -> None:
    first = subscribe(billing)
    pay(api, first, card)
    (invoice,) = billing.invoices_of(first.subscription.id)
    with pytest.raises(Rejected):
        billing.void_invoice(invoice.id)


def test_a_subscription_is_found_by_our_own_id(billing: Billing, api: Any) -> None:
    old = subscribe(billing, "leg-1")
    customer = old.subscription.customer_id
    billing.end_now(old.subscription.id)
    assert billing.find_subscription(customer_id=customer, membership_id="m1") is not None
    new = subscribe(billing, "leg-2")
    subscribe(billing, "leg-3", membership="m2")
    found = billing.find_subscription(customer_id=customer, membership_id="m1")
    assert found is not None
    assert found.id == new.subscription.id
    assert billing.find_subscription(customer_id=customer, membership_id="m3") is None


def test_those_that_name_a_membership_are_listed(
    stand_in: StandIn, billing: Billing, api: Any
) -> None:
    since = datetime.now(UTC)
    mine = subscribe(billing)
    billing.end_now(mine.subscription.id)
    api.subscriptions.create(
        {"customer": mine.subscription.customer_id, "items": [{"price": a_price(billing)}]}
    )
    listed = billing.subscriptions_since(since)
    assert [(one.id, one.over) for one in listed.rows] == [(mine.subscription.id, True)]
    assert listed.since == since


# --- what goes wrong


def all_calls(billing: Billing, subscription: str, invoice: str) -> dict[str, Callable[[], Any]]:
    now = datetime.now(UTC)
    return {
        "create_customer": lambda: a_customer(billing, "another"),
        "create_price": lambda: a_price(billing, key="another"),
        "subscribe": lambda: billing.subscribe(
            key="s", customer_id="cus_1", price_id="price_1", metadata={}
        ),
        "end_at_period_end": lambda: billing.end_at_period_end(
            key="k", subscription_id=subscription
        ),
        "end_at": lambda: billing.end_at(
            key="k", subscription_id=subscription, at=now + timedelta(days=3)
        ),
        "end_now": lambda: billing.end_now(subscription),
        "void_invoice": lambda: billing.void_invoice(invoice),
        "switch": lambda: billing.switch(
            key="k", subscription_id=subscription, item_id="si_1", price_id="price_1"
        ),
        # It reads which end there is before it writes.
        "go_on": lambda: billing.go_on(key="k", subscription_id=subscription),
        "find_subscription": lambda: billing.find_subscription(
            customer_id="cus_1", membership_id="m1"
        ),
        "retrieve_subscription": lambda: billing.retrieve_subscription(subscription),
        "first_payment": lambda: billing.first_payment(subscription),
        "retrieve_invoice": lambda: billing.retrieve_invoice(invoice),
        "invoices_of": lambda: billing.invoices_of(subscription),
        "payments_of": lambda: billing.payments_of(invoice),
        "subscriptions_since": lambda: billing.subscriptions_since(now),
    }


WRITES = (
    "create_customer",
    "create_price",
    "subscribe",
    "end_at_period_end",
    "end_at",
    "end_now",
    "void_invoice",
    "switch",
)
CALLS = tuple(all_calls(StripeBilling("sk_test_x"), "sub_1", "in_1"))


def failing(call: Callable[[], Any]) -> EdgeError:
    with pytest.raises(EdgeError) as failure:
        call()
    return failure.value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mode", ["do_then_drop", "error_500_before", "rate_limit"])
def test_faults_on_the_wire(stand_in: StandIn, billing: Billing, name: str, mode: str) -> None:
    first = subscribe(billing)
    (invoice,) = billing.invoices_of(first.subscription.id)
    stand_in.post("faults", method=".*", times=None, mode=mode)
    error = failing(all_calls(billing, first.subscription.id, invoice.id)[name])
    lost = name in WRITES and mode != "rate_limit"
    assert type(error) is (Unknown if lost else Unreachable)


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_connection_is_unreachable(name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = StripeBilling(KEY, api_base=f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert type(failing(all_calls(nobody, "sub_1", "in_1")[name])) is Unreachable


@pytest.mark.parametrize("name", CALLS)
def test_not_while_a_transaction_is_open(name: str) -> None:
    call = all_calls(StripeBilling("sk_test_x"), "sub_1", "in_1")[name]
    transaction_began()
    try:
        with pytest.raises(TransactionOpenError):
            call()
    finally:
        transaction_ended()


def test_d13_a_reply_that_was_lost_is_one_subscription_under_its_key(
    stand_in: StandIn, billing: Billing
) -> None:
    stand_in.fault("do_then_drop", "/v1/subscriptions")
    assert type(failing(lambda: subscribe(billing))) is Unknown
    customer = a_customer(billing)
    found = billing.find_subscription(customer_id=customer, membership_id="m1")
    assert found is not None
    assert subscribe(billing).subscription.id == found.id
    assert stand_in.creates("subscription") == 1


def test_an_end_whose_reply_was_lost_is_found_by_reading(
    stand_in: StandIn, billing: Billing, active: Subscription
) -> None:
    stand_in.fault("do_then_drop", f"/v1/subscriptions/{active.id}")
    error = failing(lambda: billing.end_at_period_end(key="k", subscription_id=active.id))
    assert type(error) is Unknown
    assert billing.retrieve_subscription(active.id).ends_at == active.period_end
