"""Subscriptions and invoices of both shapes into ours, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from portal.edges.billing.port import Invoice, InvoicePayment, Item, Subscription
from portal.edges.billing.reading import (
    intent_of_invoice,
    invoice_from_payload,
    invoice_payment_from_payload,
    subscription_from_payload,
)
from portal.edges.payments import UnreadablePayload

DAY = 86_400
START = 1_793_599_230
END = START + 30 * DAY


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def item(name: str = "si_1", start: int = START, end: int = END, amount: int = 1_980) -> Any:
    return {
        "id": name,
        "object": "subscription_item",
        "current_period_start": start,
        "current_period_end": end,
        "price": {"id": "price_1", "object": "price", "unit_amount": amount},
        "quantity": 1,
    }


SUBSCRIPTION: dict[str, Any] = {
    "id": "sub_1",
    "object": "subscription",
    "status": "active",
    "customer": "cus_1",
    "currency": "jpy",
    "metadata": {"membership_id": "m1"},
    "livemode": False,
    "created": START,
    "items": {"object": "list", "data": [item()]},
    "cancel_at": None,
    "cancel_at_period_end": False,
    "canceled_at": None,
    "ended_at": None,
    "trial_end": None,
    "pause_collection": None,
    "latest_invoice": "in_1",
}


def legacy_subscription() -> dict[str, Any]:
    """As sent before 2025: the period is the subscription's own."""
    old = deepcopy(SUBSCRIPTION)
    for name in ("current_period_start", "current_period_end"):
        old[name] = old["items"]["data"][0].pop(name)
    return old


def changed(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(SUBSCRIPTION), **changes}


def test_a_subscription() -> None:
    assert subscription_from_payload(SUBSCRIPTION) == Subscription(
        id="sub_1",
        status="active",
        customer_id="cus_1",
        currency="JPY",
        metadata={"membership_id": "m1"},
        livemode=False,
        created=at(START),
        items=(Item("si_1", "price_1", 1_980, 1, at(START), at(END)),),
        period_start=at(START),
        period_end=at(END),
        cancel_at=None,
        cancel_at_period_end=False,
        canceled_at=None,
        ended_at=None,
        trial_end=None,
        paused=False,
        resumes_at=None,
        latest_invoice_id="in_1",
    )


def test_d11_the_period_is_the_same_in_both_shapes() -> None:
    assert subscription_from_payload(legacy_subscription()) == subscription_from_payload(
        SUBSCRIPTION
    )


def test_d11_of_several_items_the_earliest_end_counts() -> None:
    items = [item("si_1", START + DAY, END), item("si_2", START, END - 9 * DAY, 500)]
    read = subscription_from_payload(changed(items={"data": items}))
    assert (read.period_start, read.period_end) == (at(START), at(END - 9 * DAY))
    assert read.amount == 2_480


@pytest.mark.parametrize("items", [None, {}, {"data": []}, {"data": None}, {"data": ["si_1"]}])
def test_d11_without_items_it_cannot_be_read(items: Any) -> None:
    with pytest.raises(UnreadablePayload):
        subscription_from_payload(changed(items=items))


def test_d11_a_period_that_stands_nowhere_is_not_1970() -> None:
    bare = changed(items={"data": [{**item(), "current_period_end": None}]})
    with pytest.raises(UnreadablePayload, match="current_period"):
        subscription_from_payload(bare)


@pytest.mark.parametrize(
    ("changes", "ends_at"),
    [
        ({}, None),
        ({"cancel_at_period_end": True, "canceled_at": START + 5}, at(END)),
        ({"cancel_at": START + 10 * DAY, "canceled_at": START + 5}, at(START + 10 * DAY)),
        (
            {"status": "canceled", "canceled_at": START + 5, "ended_at": START + 9},
            at(START + 9),
        ),
        ({"status": "incomplete_expired", "ended_at": START + 9}, at(START + 9)),
        ({"status": "canceled", "canceled_at": START + 5}, at(START + 5)),
        ({"status": "past_due"}, None),
    ],
)
def test_d2_when_it_ends_is_not_when_it_was_asked(
    changes: dict[str, Any], ends_at: datetime | None
) -> None:
    assert subscription_from_payload(changed(**changes)).ends_at == ends_at


def test_d7_a_pause_is_read_though_the_status_stays_active() -> None:
    pause = {"behavior": "void", "resumes_at": END}
    read = subscription_from_payload(changed(pause_collection=pause))
    assert (read.status, read.paused, read.resumes_at) == ("active", True, at(END))


@pytest.mark.parametrize(
    "changes",
    [
        {"object": "invoice"},
        {"id": None},
        {"status": "asleep"},
        {"status": None},
        {"customer": None},
        {"currency": "yen!"},
        {"livemode": None},
        {"created": -1},
        {"cancel_at": "soon"},
        {"cancel_at_period_end": None},
        {"pause_collection": "yes"},
        {"metadata": ["m1"]},
        {"items": {"data": [{**item(), "quantity": None}]}},
        {"items": {"data": [{**item(), "price": None}]}},
        {"items": {"data": [{**item(), "price": {"id": "price_1", "unit_amount": 19.8}}]}},
    ],
)
def test_a_subscription_that_cannot_be_read(changes: dict[str, Any]) -> None:
    with pytest.raises(UnreadablePayload):
        subscription_from_payload(changed(**changes))


# --- invoices


def line(start: int = START, end: int = END, *, proration: bool = False) -> Any:
    return {
        "object": "line_item",
        "period": {"start": start, "end": end},
        "parent": {"subscription_item_details": {"proration": proration}},
    }


INVOICE: dict[str, Any] = {
    "id": "in_1",
    "object": "invoice",
    "status": "paid",
    "customer": "cus_1",
    "parent": {
        "type": "subscription_details",
        "subscription_details": {"subscription": "sub_1", "metadata": {"membership_id": "m1"}},
    },
    "amount_due": 1_980,
    "amount_paid": 1_980,
    "currency": "jpy",
    "livemode": False,
    "created": START,
    "billing_reason": "subscription_cycle",
    # The span before: what is paid for stands in the lines.
    "period_start": START - 30 * DAY,
    "period_end": START,
    "status_transitions": {"paid_at": START + 3},
    "lines": {"data": [line()]},
}


def legacy_invoice() -> dict[str, Any]:
    old = deepcopy(INVOICE)
    del old["parent"]
    del old["lines"]["data"][0]["parent"]
    old["lines"]["data"][0]["proration"] = False
    old["subscription"] = "sub_1"
    old["subscription_details"] = {"metadata": {"membership_id": "m1"}}
    old["payment_intent"] = "pi_1"
    return old


def billed(**changes: Any) -> dict[str, Any]:
    return {**deepcopy(INVOICE), **changes}


def test_an_invoice() -> None:
    assert invoice_from_payload(INVOICE) == Invoice(
        id="in_1",
        status="paid",
        subscription_id="sub_1",
        customer_id="cus_1",
        amount_due=1_980,
        amount_paid=1_980,
        currency="JPY",
        metadata={"membership_id": "m1"},
        livemode=False,
        created=at(START),
        paid_at=at(START + 3),
        reason="subscription_cycle",
        period_start=at(START),
        period_end=at(END),
    )


def test_d11_an_invoice_is_the_same_in_both_shapes() -> None:
    assert invoice_from_payload(legacy_invoice()) == invoice_from_payload(INVOICE)


def test_lines_of_a_change_do_not_name_the_period() -> None:
    lines = [line(START - 3 * DAY, START, proration=True), line()]
    assert invoice_from_payload(billed(lines={"data": lines})).period_end == at(END)
    only = [line(START - 3 * DAY, START, proration=True)]
    assert invoice_from_payload(billed(lines={"data": only})).period_end == at(START)


def test_an_invoice_of_no_subscription() -> None:
    assert invoice_from_payload(billed(parent=None)).subscription_id is None
    quote = {"type": "quote_details", "subscription_details": None}
    assert invoice_from_payload(billed(parent=quote)).subscription_id is None


@pytest.mark.parametrize(
    "changes",
    [
        {"object": "subscription"},
        {"status": "lost"},
        {"amount_paid": None},
        {"amount_due": "1980"},
        {"lines": {"data": []}},
        {"lines": None},
        {"lines": {"data": [{"period": {"start": START}}]}},
        {"parent": "sub_1"},
        {"status_transitions": 5},
    ],
)
def test_an_invoice_that_cannot_be_read(changes: dict[str, Any]) -> None:
    with pytest.raises(UnreadablePayload):
        invoice_from_payload(billed(**changes))


def test_what_pays_an_invoice() -> None:
    paid = {
        "object": "invoice_payment",
        "invoice": "in_1",
        "payment": {"type": "payment_intent", "payment_intent": "pi_1"},
        "amount_requested": 1_980,
        "status": "paid",
    }
    assert invoice_payment_from_payload(paid) == InvoicePayment("in_1", "pi_1", 1_980, "paid")
    by_hand = {**paid, "payment": {"type": "out_of_band"}}
    assert invoice_payment_from_payload(by_hand) is None
    with pytest.raises(UnreadablePayload):
        invoice_payment_from_payload({**paid, "invoice": None})
    assert intent_of_invoice(billed(payments={"data": [by_hand, paid]})) == "pi_1"
    assert intent_of_invoice(legacy_invoice()) == "pi_1"
    assert intent_of_invoice(INVOICE) is None
