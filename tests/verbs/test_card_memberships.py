"""Memberships that the provider bills: its answer, its events and its silence, and what they leave
with us and there."""

import json
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask

from portal.jobs.house import House
from portal.jobs.reconcile import reconcile
from portal.outcome import Applied, Code, Noop, Refused
from portal.verbs import (
    billing_legs,
    divergences,
    membership_money,
    memberships,
    subscription_answers,
)
from sandbox.stripe.testing import StandIn, client
from sandbox.watch import statements
from tests.cast import GUEST, Cast
from tests.outside import STRIPE_KEY, Owner, at_once, deliver, events, receive, recorded, work
from tests.verbs.billing import Billed, running


@pytest.fixture
def billed(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> Billed:
    plan = cast.offer("card", "カード会員", "Card", billing="card", price=9800)
    return Billed(cast, worker, stripe, owner, cast.apply(plan))


# --- approved, paid, active


def test_an_approval_opens_a_checkout(billed: Billed) -> None:
    said = billed.approve()
    assert isinstance(said, Applied), said
    assert (said.code, said.to) == (Code.MEMBERSHIP_CHECKOUT, "checkout")
    assert billed.state == "checkout"
    assert billed.there["status"] == billed.mirror("status") == "incomplete"
    assert billed.owner.row(
        "select purpose, state, amount, currency, intent_id is not null,"
        " client_secret_sealed is not null from payments"
    ) == ("membership_initial", "open", 9800, "JPY", True, True)
    assert billed.letters() == ["membership_applied", "membership_checkout"]
    assert billed.owner.rows("select kind, progress from billing_legs") == [("subscribe", "done")]


def test_the_first_payment_makes_it_active_by_the_providers_word_alone(billed: Billed) -> None:
    billed.approve()
    billed.pay()
    assert billed.state == "checkout"  # nobody has told us
    billed.hear()
    assert billed.state == "active"
    assert billed.folio() == [("payment", -9800), ("charge", 9800)] or billed.folio() == [
        ("charge", 9800),
        ("payment", -9800),
    ]
    assert billed.owner.row("select amount, reason from membership_periods") == (
        9800,
        "subscription_create",
    )
    assert billed.letters() == [
        "membership_applied",
        "membership_checkout",
        "membership_approved",
        "membership_paid",
    ] or sorted(billed.letters()[2:]) == ["membership_approved", "membership_paid"]


def test_approved_twice_is_one_subscription(billed: Billed) -> None:
    assert isinstance(billed.approve(), Applied)
    assert billed.approve() == Noop(Code.MEMBERSHIP_ALREADY_APPROVED, subject=billed.id)
    assert billed.stripe.creates("subscription") == 1


def test_what_is_paid_once_more_is_heard_once(billed: Billed) -> None:
    running(billed)
    billed.hear()
    assert len(billed.folio()) == 2
    assert billed.letters().count("membership_paid") == 1
    assert billed.owner.one("select count(*) from membership_periods") == 1


def test_a_renewal_grants_a_period_and_finds_its_payment(billed: Billed) -> None:
    running(billed)
    billed.pass_time(days=32)
    billed.hear()
    assert billed.owner.one("select count(*) from membership_periods") == 2
    assert billed.owner.rows("select purpose, state from payments order by created_at") == [
        ("membership_initial", "succeeded"),
        ("membership_renewal", "succeeded"),
    ]
    assert sum(amount for _, amount in billed.folio()) == 0
    assert billed.letters().count("membership_paid") == 2
    assert billed.state == "active"


def test_a_renewal_that_no_event_told_is_read(billed: Billed) -> None:
    running(billed)
    billed.pass_time(days=32)
    billed.quiet()
    assert billed.owner.one("select count(*) from membership_periods") == 2
    assert sum(amount for _, amount in billed.folio()) == 0
    assert billed.mirror("period_end").timestamp() == max(
        item["current_period_end"] for item in billed.there["items"]["data"]
    )


# --- the provider cannot be reached, or its answer is lost


@pytest.mark.parametrize("path", ["/v1/customers", "/v1/prices", "/v1/subscriptions"])
@pytest.mark.parametrize("mode", ["refuse", "rate_limit", "error_500_before"])
def test_who_cannot_be_reached_moves_nothing(billed: Billed, mode: str, path: str) -> None:
    billed.stripe.fault(mode, path=path)
    said = billed.approve()
    assert said in (Refused(Code.BILLING_UNAVAILABLE), Refused(Code.BILLING_UNKNOWN))
    assert billed.state == "applying"
    billed.owner.run("update billing_legs set created_at = created_at - interval '3 minutes'")
    billed.quiet()
    assert isinstance(billed.approve(), Applied)
    assert billed.stripe.creates("subscription") == 1


def test_a_lost_answer_is_found_by_reading(billed: Billed) -> None:
    billed.stripe.fault("do_then_drop", path="/v1/subscriptions")
    assert billed.approve() == Refused(Code.BILLING_UNKNOWN)
    assert billed.state == "applying"
    assert billed.approve() == Refused(Code.CHECKOUT_IN_PROGRESS)
    billed.quiet()
    assert billed.state == "checkout"
    assert billed.there["status"] == "incomplete"
    assert billed.letters().count("membership_checkout") == 1


def test_what_never_arrived_can_be_asked_for_again(billed: Billed) -> None:
    billed.stripe.fault("stall", path="/v1/subscriptions", when="instead", seconds=0.1)
    assert billed.approve() == Refused(Code.BILLING_UNKNOWN)
    billed.quiet()
    assert billed.state == "applying"  # it may still land
    billed.owner.run("update billing_legs set created_at = created_at - interval '3 minutes'")
    billed.quiet()
    assert billed.owner.rows("select progress from billing_legs") == [("refused",)]
    assert isinstance(billed.approve(), Applied)
    assert billed.there["status"] == "incomplete"


@pytest.mark.parametrize(
    ("act", "ends_in"),
    [("later", "scheduled_to_end"), ("now", "ended"), ("resume", "active")],
)
def test_an_act_whose_answer_is_lost_is_settled_by_reading(
    billed: Billed, act: str, ends_in: str
) -> None:
    running(billed)
    if act == "resume":
        assert isinstance(billed.end("self_cancel"), Applied)
    ask: Any = {
        "later": lambda: billed.end("self_cancel"),
        "now": lambda: billed.end("force_cancel", note="test"),
        "resume": billed.resume,
    }[act]
    method = "DELETE" if act == "now" else "POST"
    billed.stripe.fault("do_then_drop", path="/v1/subscriptions/.*", method=method)
    before = billed.state
    assert ask() == Refused(Code.BILLING_UNKNOWN)
    assert billed.state == before
    billed.quiet()
    assert billed.state == ends_in
    assert billed.owner.one("select count(*) from billing_legs where progress <> 'done'") == 0


def test_an_event_that_overtakes_the_answer_settles_the_act(billed: Billed) -> None:
    running(billed)
    billed.stripe.fault("do_then_drop", path="/v1/subscriptions/.*")
    assert billed.end("self_cancel", when="period_end") == Refused(Code.BILLING_UNKNOWN)
    deliver(billed.worker, "customer.subscription.updated")
    billed.quiet()
    assert billed.state == "scheduled_to_end"
    assert (
        billed.owner.one("select end_reason from memberships where id = %s", billed.id)
        == "self_cancel"
    )
    assert billed.letters().count("membership_end_scheduled") == 1


# --- every act under every fault ends with us where the provider is


ACTS: dict[str, tuple[Any, str, str, str]] = {
    # what is asked, where it is asked, the state that follows, the letter of it
    "approve": (Billed.approve, "/v1/subscriptions", "checkout", "membership_checkout"),
    "end with the period": (
        lambda one: one.end("self_cancel", when="period_end"),
        "/v1/subscriptions/.*",
        "scheduled_to_end",
        "membership_end_scheduled",
    ),
    "end with the month": (
        lambda one: one.end("self_cancel"),
        "/v1/subscriptions/.*",
        "scheduled_to_end",
        "membership_end_scheduled",
    ),
    "end now": (
        lambda one: one.end("force_cancel", note="test"),
        "/v1/subscriptions/.*",
        "ended",
        "membership_ended",
    ),
    "resume": (Billed.resume, "/v1/subscriptions/.*", "active", "membership_resumed"),
    "give up, at the invoice": (
        lambda one: one.end("self_cancel"),
        "/v1/invoices/.*/void",
        "ended",
        "membership_not_begun",
    ),
    "give up, at the subscription": (
        lambda one: one.end("self_cancel"),
        "/v1/subscriptions/.*",
        "ended",
        "membership_not_begun",
    ),
}
FAULTS: dict[str, dict[str, Any]] = {
    "refused": {"mode": "refuse"},
    "too many": {"mode": "rate_limit"},
    "500 before": {"mode": "error_500_before"},
    "500 after": {"mode": "error_500_after"},
    "answer lost": {"mode": "do_then_drop"},
    "never arrived": {"mode": "stall", "when": "instead", "seconds": 0.1},
}
THERE = {
    "incomplete": {"checkout"},
    "incomplete_expired": {"ended"},
    "active": {"active", "scheduled_to_end"},
    "canceled": {"ended"},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("act", ACTS)
def test_every_act_under_every_fault(billed: Billed, act: str, fault: str) -> None:
    ask, path, state, letter = ACTS[act]
    if act.startswith("give up"):
        billed.approve()
    elif act != "approve":
        running(billed)
    if act == "resume":
        billed.end("self_cancel")
    before = billed.state
    billed.stripe.fault(path=path, method="POST|DELETE", **FAULTS[fault])
    assert not isinstance(ask(billed), Noop)
    billed.owner.run("update billing_legs set created_at = created_at - interval '3 minutes'")
    billed.hear()
    if billed.state == before:
        assert isinstance(ask(billed), Applied)  # nothing was done, and it can be asked for again
    billed.hear()
    assert billed.state == state
    assert state in THERE[billed.there["status"]]
    ends = billed.there["cancel_at"] or billed.there["cancel_at_period_end"] or None
    assert (state == "scheduled_to_end") == (ends is not None and state != "ended")
    assert billed.letters().count(letter) == 1
    assert billed.owner.rows("select id from billing_legs where settled_at is null") == []


# --- the end


def test_an_end_at_the_periods_end_is_the_providers(billed: Billed) -> None:
    running(billed)
    said = billed.end("self_cancel", when="period_end")
    assert isinstance(said, Applied), said
    assert billed.state == "scheduled_to_end"
    ends_at = billed.owner.one("select ends_at from memberships where id = %s", billed.id)
    assert int(ends_at.timestamp()) == billed.there["items"]["data"][0]["current_period_end"]
    billed.pass_time(days=32)
    billed.hear()
    assert billed.state == "ended"
    assert billed.there["status"] == "canceled"
    assert billed.owner.one("select count(*) from membership_periods") == 1
    assert billed.letters().count("membership_ended") == 1


def test_an_end_with_the_month_is_set_as_an_instant_there(billed: Billed) -> None:
    running(billed)
    assert isinstance(billed.end("self_cancel", when="month_boundary"), Applied)
    ends_at = billed.owner.one("select ends_at from memberships where id = %s", billed.id)
    assert billed.there["cancel_at"] == int(ends_at.timestamp())
    assert not billed.there["cancel_at_period_end"]


def test_an_end_that_is_taken_back_is_taken_back_there_first(billed: Billed) -> None:
    running(billed)
    billed.end("self_cancel")
    billed.stripe.fault("refuse", path="/v1/subscriptions/.*", method="GET")
    assert billed.resume() == Refused(Code.BILLING_UNAVAILABLE)
    assert billed.state == "scheduled_to_end"
    assert isinstance(billed.resume(), Applied)
    assert billed.there["cancel_at"] is None
    assert billed.state == "active"


def test_ended_now_is_over_there_and_leaves_no_invoice_open(billed: Billed) -> None:
    running(billed)
    billed.pass_time(days=32)
    billed.hear()
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    assert billed.there["status"] == "canceled"
    billed.quiet()
    assert (
        billed.owner.one("select proof from end_obligations where kind = 'invoices_closed'")
        == "no invoice is open"
    )


def test_a_checkout_can_be_given_up(billed: Billed) -> None:
    billed.approve()
    assert isinstance(billed.end("self_cancel"), Applied)
    assert billed.state == "ended"
    assert billed.there["status"] in ("canceled", "incomplete_expired")
    billed.hear()
    assert billed.owner.one("select state from payments") == "canceled"
    assert billed.stripe.get("objects")["invoice"][0]["status"] == "void"
    assert billed.letters()[-1] == "membership_not_begun"


def test_a_checkout_whose_money_is_on_its_way_is_not_given_up(billed: Billed) -> None:
    billed.approve()
    billed.pay()
    assert billed.end("self_cancel") == Refused(Code.CHECKOUT_IN_PROGRESS)
    assert billed.state == "checkout"
    billed.hear()
    assert billed.state == "active"


def test_a_checkout_that_nobody_pays_is_given_up_by_the_sweep(billed: Billed) -> None:
    billed.approve()
    billed.owner.run("update memberships set checkout_until = now() - interval '1 minute'")
    work(billed.worker, "memberships")
    assert billed.state == "ended"
    assert billed.owner.one("select end_reason from memberships") == "checkout_expired"


def test_no_end_overtakes_an_approval_on_its_way(billed: Billed) -> None:
    billed.stripe.fault("do_then_drop", path="/v1/subscriptions")
    billed.approve()
    assert billed.end("application_rejected") == Refused(Code.CHECKOUT_IN_PROGRESS)


# --- the provider's own word


def updated(billed: Billed, **changes: Any) -> None:
    client(billed.stripe.base, STRIPE_KEY).subscriptions.update(billed.there["id"], changes)
    billed.hear()


def test_d1_a_cancellation_that_is_withdrawn_there_is_withdrawn_here(billed: Billed) -> None:
    running(billed)
    updated(billed, cancel_at_period_end=True)
    assert billed.state == "scheduled_to_end"
    updated(billed, cancel_at_period_end=False)
    assert billed.state == "active"
    assert billed.owner.row("select ends_at, end_reason from memberships") == (None, None)


@pytest.mark.parametrize("how", ["period", "instant"])
def test_d2_the_end_is_not_the_request(billed: Billed, how: str) -> None:
    running(billed)
    at = billed.there["items"]["data"][0]["current_period_end"]
    if how == "instant":
        at -= 10 * 86_400
        updated(billed, cancel_at=at)
    else:
        updated(billed, cancel_at_period_end=True)
    assert billed.state == "scheduled_to_end"
    ends_at = billed.owner.one("select ends_at from memberships where id = %s", billed.id)
    assert int(ends_at.timestamp()) == at


def test_d4_the_old_subscriptions_end_leaves_the_new_one(billed: Billed) -> None:
    running(billed)
    billed.end("force_cancel", note="test")
    again = Billed(
        billed.cast,
        billed.worker,
        billed.stripe,
        billed.owner,
        billed.cast.apply(billed.owner.one("select plan_id from memberships limit 1")),
    )
    again.approve()
    again.pay()
    again.hear()
    assert (billed.state, again.state) == ("ended", "active")
    assert again.there["status"] == "active"


def test_d5_a_first_payment_that_never_comes_ends_it_once(billed: Billed) -> None:
    billed.approve()
    billed.pass_time(hours=24)
    for _ in range(5):
        billed.hear()
    assert billed.state == "ended"
    assert billed.letters().count("membership_not_begun") == 1
    plan = billed.owner.one("select plan_id from memberships limit 1")
    assert billed.cast.apply(plan).id != billed.id


def test_d7_paused_is_seen(billed: Billed) -> None:
    running(billed)
    updated(billed, pause_collection={"behavior": "void"})
    assert (billed.state, billed.mirror("paused")) == ("active", True)
    updated(billed, pause_collection="")
    assert billed.mirror("paused") is False


def test_d10_an_invoice_may_come_before_its_subscription(billed: Billed) -> None:
    billed.approve()
    billed.pay()
    deliver(billed.worker, "invoice.paid")
    deliver(billed.worker, "customer.subscription.updated")
    deliver(billed.worker, "customer.subscription.created")
    billed.hear()
    assert billed.state == "active"
    assert billed.owner.one("select count(*) from membership_periods") == 1
    assert billed.owner.one("select count(*) from payments where state = 'succeeded'") == 1


def test_d13_joined_twice_is_one_subscription(billed: Billed, inside: Flask) -> None:
    said = at_once(inside, *[billed.approve] * 2)
    assert billed.stripe.creates("subscription") == 1, said
    assert billed.state == "checkout"
    assert billed.letters().count("membership_checkout") == 1


def test_a_payment_that_fails_puts_it_behind_and_a_later_one_brings_it_back(
    billed: Billed,
) -> None:
    running(billed)
    card_fails_later(billed)
    billed.pass_time(days=32)
    billed.hear()
    assert billed.state == "past_due"
    assert "membership_overdue" in billed.letters()
    assert billed.owner.one("select count(*) from membership_periods") == 1

    said = membership_money.pay(billed.desk, GUEST, billed.id)
    assert isinstance(said, Applied), said
    again = membership_money.pay(billed.desk, GUEST, billed.id)
    assert again == Noop(Code.PAYMENT_ATTEMPT_OPEN, subject=said.subject)
    billed.pay()
    billed.hear()
    assert billed.state == "active"
    assert billed.owner.one("select count(*) from membership_periods") == 2
    assert sum(amount for _, amount in billed.folio()) == 0


def card_fails_later(billed: Billed) -> None:
    provider, there = client(billed.stripe.base, STRIPE_KEY), billed.there
    card = provider.payment_methods.attach(
        "pm_card_chargeCustomerFail", {"customer": there["customer"]}
    )
    provider.subscriptions.update(there["id"], {"default_payment_method": card.id})


@pytest.mark.parametrize("lost", ["nothing", "invoice.paid", "payment_intent.succeeded"])
def test_money_that_lands_after_the_end_is_returned_in_full(billed: Billed, lost: str) -> None:
    running(billed)
    card_fails_later(billed)
    billed.pass_time(days=32)
    billed.hear()
    membership_money.pay(billed.desk, GUEST, billed.id)
    billed.stripe.fault("refuse", path="/v1/invoices/.*/void", times=None)
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    billed.pass_time(minutes=5)
    billed.pay()  # a page that was open all the time
    billed.hear(*{"payment_intent.succeeded", "invoice.paid"} - {lost})
    assert billed.state == "ended"
    assert billed.owner.rows("select state, amount, reason from refunds") == [
        ("succeeded", 9800, "late_payment")
    ]
    assert billed.owner.one("select count(*) from membership_periods") == 1
    assert sum(amount for _, amount in billed.folio()) == 0
    assert "membership_refund_sent" in billed.letters()
    assert billed.letters().count("membership_paid") == 1  # the first one, which was kept


@pytest.mark.parametrize(
    "order",
    [
        ("payment_intent.succeeded", "invoice.paid"),
        ("invoice.paid", "payment_intent.succeeded"),
        ("payment_intent.succeeded",),
    ],
    ids=" then ".join,
)
def test_money_that_was_paid_before_the_end_and_heard_of_after_it_is_kept(
    billed: Billed, order: tuple[str, ...]
) -> None:
    running(billed)
    card_fails_later(billed)
    billed.pass_time(days=32)
    billed.hear()
    membership_money.pay(billed.desk, GUEST, billed.id)
    billed.pay()
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    for name in order:
        billed.hear(name)
    assert billed.state == "ended"
    assert billed.owner.rows("select state, amount, reason from refunds") == []
    assert billed.owner.one("select count(*) from membership_periods") == 2
    assert sum(amount for _, amount in billed.folio()) == 0
    assert billed.letters().count("membership_paid") == 2


def test_behind_and_ended_leaves_nothing_to_pay_there(billed: Billed) -> None:
    running(billed)
    card_fails_later(billed)
    billed.pass_time(days=32)
    billed.hear()
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    billed.quiet()
    assert [row["status"] for row in billed.stripe.get("objects")["invoice"]] == ["paid", "void"]
    assert billed.owner.one("select count(*) from end_obligations where proven_at is null") == 1


def test_late_older_event_never_rewinds(billed: Billed) -> None:
    running(billed)
    updated(billed, cancel_at_period_end=True)
    told = [one for one in events(billed.worker) if one.type == "customer.subscription.updated"]
    billed.owner.run(
        "update webhook_events set event_id = event_id || ':before' where event_id = any(%s)",
        [one.id for one in told],
    )
    billed.pass_time(minutes=5)
    updated(billed, metadata={"membership_id": str(billed.id), "note": "later"})
    receive(*told)
    billed.quiet()
    assert recorded(billed.owner, billed.id)[-1][0] == "end_scheduled"
    outcomes = billed.owner.rows(
        "select outcome from webhook_events where event_id = %s", told[0].id
    )
    assert outcomes == [("superseded",)]


def test_a_switch_is_the_same_subscription_at_another_price(billed: Billed) -> None:
    running(billed)
    gold = billed.cast.offer("gold", "ゴールド", "Gold", billing="card", price=14_800)
    said = memberships.switch_plan(
        billed.desk, billed.cast.sato.actor, billed.id, gold, billed.version
    )
    assert isinstance(said, Applied), said
    assert billed.stripe.creates("subscription") == 1
    assert billed.there["items"]["data"][0]["price"]["unit_amount"] == 14_800
    assert billed.owner.row("select plan_id, price from memberships") == (gold, 14_800)
    billed.hear()
    billed.pass_time(days=32)
    billed.hear()
    assert billed.owner.rows("select amount from membership_periods order by starts_at") == [
        (9800,),
        (14_800,),
    ]


def test_another_price_there_is_the_price_here(billed: Billed) -> None:
    running(billed)
    provider, there = client(billed.stripe.base, STRIPE_KEY), billed.there
    item = there["items"]["data"][0]
    dearer = provider.prices.create(
        {
            "unit_amount": 12_000,
            "currency": "jpy",
            "recurring": {"interval": "month"},
            "product": item["price"]["product"],
        }
    )
    provider.subscriptions.update(there["id"], {"items": [{"id": item["id"], "price": dearer.id}]})
    billed.hear()
    assert billed.owner.one("select price from memberships") == 12_000


def test_d8_a_trial_is_no_receipt(billed: Billed) -> None:
    """Begun there; its invoice of nothing grants the trial, and nobody is told of a payment."""
    running(billed)
    provider = client(billed.stripe.base, STRIPE_KEY)
    trial = provider.subscriptions.create(
        {
            "customer": billed.there["customer"],
            "items": [{"price": billed.there["items"]["data"][0]["price"]["id"]}],
            "trial_period_days": 14,
            "default_payment_method": billed.there["default_payment_method"],
        }
    )
    # As if the subscription of this membership had been the one with the trial from the beginning.
    billed.owner.run("delete from membership_periods")
    billed.owner.run("delete from outbox")
    billed.owner.run("update subscription_mirror set subscription_id = %s", trial.id)
    billed.quiet()
    assert billed.owner.rows("select amount from membership_periods") == [(0,)]
    assert billed.mirror("status") == "trialing"
    assert billed.letters() == []
    billed.pass_time(days=15)
    billed.quiet()
    assert billed.owner.rows("select amount from membership_periods order by starts_at") == [
        (0,),
        (9800,),
    ]
    assert billed.letters().count("membership_paid") == 1


def test_a_second_subscription_of_one_membership_is_for_a_person(billed: Billed) -> None:
    running(billed)
    client(billed.stripe.base, STRIPE_KEY).subscriptions.create(
        {
            "customer": billed.there["customer"],
            "items": [{"price": billed.there["items"]["data"][0]["price"]["id"]}],
            "metadata": {"membership_id": str(billed.id)},
        }
    )
    billed.hear()
    assert billed.state == "active"
    assert billed.owner.one("select count(*) from dead_letters where closed_at is null") >= 1


def test_d11_without_items_the_old_end_is_kept_and_a_person_is_told(billed: Billed) -> None:
    running(billed)
    known = billed.mirror("period_end")
    (newest, *_) = [
        one
        for one in reversed(events(billed.worker))
        if one.type == "customer.subscription.updated"
    ]
    told = json.loads(newest.raw)
    told |= {"id": "evt_without_items", "created": told["created"] + 60}
    told["data"]["object"]["items"]["data"] = []
    receive(replace(newest, id=told["id"], raw=json.dumps(told).encode()))
    work(billed.worker, "inbox")
    assert billed.mirror("period_end") == known
    assert billed.owner.one("select count(*) from dead_letters where closed_at is null") == 1


def test_each_needs_few_statements(billed: Billed) -> None:
    """All beats of an act together, however many members the house has."""
    _ = billed.cast.sato
    with statements() as made:
        billed.approve()
    assert len(made) <= 35, made
    billed.pay()
    billed.hear()
    acts: tuple[tuple[int, Any], ...] = (
        (19, lambda: billed.end("self_cancel")),
        (18, billed.resume),
        (21, lambda: billed.end("force_cancel", note="test")),
    )
    for most, act in acts:
        with statements() as made:
            assert isinstance(act(), Applied)
        assert len(made) <= most, (len(made), made)


def test_what_is_told_in_between_does_not_make_it_forget_to_look_for_a_payment(
    billed: Billed,
) -> None:
    """The invoice is heard of, and before anybody has read what paid it, it is ended."""
    running(billed)
    billed.pass_time(days=32)
    deliver(billed.worker, "invoice.paid")
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    work(billed.worker, "memberships")
    assert billed.owner.one("select count(*) from payments where succeeded_at is not null") == 2
    assert sum(amount for _, amount in billed.folio()) == 0


@pytest.mark.parametrize("path", ["/v1/customers", "/v1/prices"])
def test_a_fault_that_the_provider_repeats_under_its_key_is_not_met_again(
    billed: Billed, path: str
) -> None:
    billed.stripe.fault("error_500_after", path=path)
    assert billed.approve() == Refused(Code.BILLING_UNAVAILABLE)
    assert isinstance(billed.approve(), Applied)


def lost(billed: Billed) -> None:
    """Our row knows it by an id that the provider never gave."""
    billed.owner.run("update subscription_mirror set subscription_id = 'sub_never_was'")


def test_one_that_the_provider_has_under_another_id_is_found_by_its_name(billed: Billed) -> None:
    running(billed)
    lost(billed)
    row = billed.owner.one(
        "insert into divergences (facility_id, kind, subject, membership_id)"
        " values (%s, 'subscription_not_there', %s, %s) returning id",
        billed.joined.facility_id,
        str(billed.id),
        billed.id,
    )
    said = divergences.resolve(billed.desk, billed.cast.sato.actor, row)
    assert isinstance(said, Applied), said
    assert billed.mirror("subscription_id") == billed.there["id"]


@pytest.mark.parametrize("reason", ["end_reached", "self_cancel"])
def test_what_the_provider_does_not_have_is_ended_by_no_sweep(billed: Billed, reason: str) -> None:
    """It may be another account's, where a card goes on being charged."""
    running(billed)
    lost(billed)
    assert billed.end(reason) == Refused(Code.BILLING_UNAVAILABLE)
    assert billed.state == "active"


def test_a_checkout_whose_invoice_is_not_found_there_is_not_taken_for_over(billed: Billed) -> None:
    billed.approve()
    billed.owner.run("update subscription_mirror set latest_invoice_id = 'in_never_was'")
    billed.end("self_cancel")
    assert (billed.state, billed.there["status"]) == ("checkout", "incomplete")


def test_one_that_the_provider_does_not_have_can_still_be_ended(billed: Billed) -> None:
    running(billed)
    lost(billed)
    assert isinstance(billed.end("force_cancel", note="test"), Applied)
    assert billed.state == "ended"
    assert billed.mirror("status") == "canceled"
    assert billed.letters().count("membership_ended") == 1


def test_what_was_agreed_to_is_billed_though_the_plan_costs_more_by_now(billed: Billed) -> None:
    billed.owner.run("update membership_plans set price = 12800, version = version + 1")
    running(billed)
    assert billed.there["items"]["data"][0]["price"]["unit_amount"] == 9800
    assert billed.owner.one("select price from memberships") == 9800
    assert billed.owner.one("select amount from payments") == 9800


def test_the_next_one_is_billed_what_it_costs_by_then(billed: Billed) -> None:
    running(billed)
    billed.owner.run("update membership_plans set price = 12800, version = version + 1")
    plan = billed.owner.one("select plan_id from memberships")
    guest = {**billed.cast.emma, "email": "next@guest.example"}
    joined = billed.cast.apply(plan, guest, seen=2)
    later = replace(billed, joined=joined)
    later.approve()
    assert later.there["items"]["data"][0]["price"]["unit_amount"] == 12_800


def test_a_reading_costs_the_same_however_long_somebody_has_been_a_member(billed: Billed) -> None:
    running(billed)
    made = []
    for _ in range(3):
        billed.hear()
        with statements() as said:
            subscription_answers.read(billed.desk, billed.id)
        made.append(len(said))
        billed.pass_time(days=62)
    assert made[0] == made[1] == made[2], made
    assert made[0] <= 16, made


def compared(billed: Billed) -> dict[str, int]:
    return reconcile(billed.worker.providers, settle=0).new


def test_the_comparison_reads_every_page_of_ours(
    billed: Billed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page leaves out would be called not here."""
    plan = billed.owner.one("select plan_id from memberships")
    for number in range(3):
        guest = {**billed.cast.emma, "email": f"{number}@guest.example"}
        replace(billed, joined=billed.cast.apply(plan, guest)).approve()
    monkeypatch.setattr("portal.jobs.compare_money.PAGE", 2)
    billed.approve()
    assert compared(billed) == {}


def test_an_end_that_did_not_reach_the_provider_is_found_and_stopped(billed: Billed) -> None:
    """However it came about: it has ended here, and there a card goes on being charged."""
    running(billed)
    billed.owner.run("set session_replication_role = replica")
    billed.owner.run(
        "update memberships set state = 'ended', ended_at = now(), ends_at = now(),"
        " end_reason = 'force_cancel'"
    )
    billed.owner.run("set session_replication_role = origin")
    assert compared(billed) == {"subscription_differs": 1}
    row = billed.owner.one("select id from divergences")
    assert isinstance(divergences.resolve(billed.desk, billed.cast.sato.actor, row), Applied)
    assert billed.there["status"] == "canceled"
    assert compared(billed) == {}


def switched(billed: Billed) -> Any:
    gold = billed.cast.offer("gold", "ゴールド", "Gold", billing="card", price=14_800)
    who, seen = billed.cast.sato.actor, billed.version
    return memberships.switch_plan(billed.desk, who, billed.id, gold, seen)


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda one: one.end("self_cancel"), Code.MEMBERSHIP_END_SCHEDULED),
        (lambda one: one.end("force_cancel", note="test"), Code.MEMBERSHIP_ENDED),
        (switched, Code.MEMBERSHIP_SWITCHED),
    ],
    ids=["later", "now", "switch"],
)
def test_an_act_that_an_event_has_settled_is_not_settled_again_by_its_answer(
    billed: Billed, act: Any, code: Code
) -> None:
    """Whoever asked is told that it is done, and nothing follows from it twice."""
    running(billed)
    assert isinstance(act(billed), Applied)
    version, letters = billed.version, billed.letters()
    records = len(recorded(billed.owner, billed.id))
    leg = billed.owner.one("select id from billing_legs order by created_at desc limit 1")
    told = billed.desk.billing.retrieve_subscription(billed.there["id"])
    with billed.desk.transaction() as tx:
        said = billing_legs.settle(tx, leg, billing_legs.Answer.of(told))
    assert isinstance(said, Applied)
    assert said.code == code
    assert (billed.version, billed.letters()) == (version, letters)
    assert len(recorded(billed.owner, billed.id)) == records
