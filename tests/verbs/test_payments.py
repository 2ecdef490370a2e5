"""Payments: opened once, moved by the provider's word only, unknown where it cannot be known."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import stripe as sdk
from flask import Flask

from portal import clock
from portal.jobs.house import House
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import cash, payment_answers, payments, stay_changes, stays
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, deliver, events, pay, receive, recorded, work
from tests.verbs.test_stays import balance, do

CREATE = "^/v1/payment_intents$"
HOUR = timedelta(hours=1)


def open_payment(worker: House, cast: Cast, stay: Booked, part: Any = "balance") -> Outcome:
    return payments.open_payment(worker.desk(stay.facility_id), cast.sato.actor, stay.id, part)


def resolve(worker: House, cast: Cast, owner: Owner) -> Outcome:
    house, payment = owner.row("select facility_id, id from payments order by created_at limit 1")
    return payment_answers.resolve(worker.desk(house), cast.sato.actor, payment)


def attempts(owner: Owner) -> list[tuple[Any, ...]]:
    return owner.rows("select state, amount, intent_id is not null from payments order by attempt")


def intents(stripe: StandIn) -> list[dict[str, Any]]:
    found = stripe.get("objects").get("payment_intent", [])
    return list(found)


def opened(worker: House, cast: Cast, owner: Owner, stay: Booked, part: Any = "balance") -> str:
    said = open_payment(worker, cast, stay, part)
    assert isinstance(said, Applied), said
    return str(owner.one("select intent_id from payments where id = %s", said.subject))


def paid(worker: House, cast: Cast, owner: Owner, stripe: StandIn, stay: Booked) -> str:
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent)
    deliver(worker)
    return intent


# Opening ----------------------------------------------------------------------------------------


def test_c1_the_provider_is_told_whole_yen_and_whose_they_are(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book(price=500)
    said = open_payment(worker, cast, stay)
    assert isinstance(said, Applied)
    (intent,) = intents(stripe)
    assert (intent["amount"], intent["currency"]) == (500, "jpy")
    assert intent["metadata"] == {
        "payment_id": str(said.subject),
        "purpose": "reservation_balance",
        "subject": str(stay.id),
        "facility": str(stay.facility_id),
    }
    (call,) = stripe.calls("/v1/payment_intents")
    assert call["idempotency_key"] == f"reservation_balance:{stay.id}:1"
    assert owner.row("select state, intent_id, attempt from payments") == ("open", intent["id"], 1)
    secret = owner.one("select client_secret_sealed from payments")
    assert intent["client_secret"] not in secret


def test_the_ledger_hears_of_money_from_the_provider_only(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    pay(stripe, opened(worker, cast, owner, stay))
    assert balance(owner, stay.id) == 6000
    deliver(worker)
    assert balance(owner, stay.id) == 0
    assert attempts(owner) == [("succeeded", 6000, True)]
    payment = owner.one("select id from payments")
    assert recorded(owner, payment) == [
        ("created", None, "open"),
        ("provider_succeeded", "open", "succeeded"),
    ]
    assert owner.one("select count(*) from outbox where event_type = 'payment_received'") == 1
    assert open_payment(worker, cast, stay) == Noop(Code.NOTHING_DUE, subject=stay.id)


def test_only_what_the_deposit_does_not_cover_is_charged(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book(price=6000, deposit_due=2000)
    pay(stripe, opened(worker, cast, owner, stay, "deposit"))
    deliver(worker)
    assert open_payment(worker, cast, stay, "deposit") == Noop(Code.NOTHING_DUE, subject=stay.id)
    opened(worker, cast, owner, stay)
    assert [intent["amount"] for intent in intents(stripe)] == [2000, 4000]
    assert owner.rows("select kind, amount from ledger_lines order by id") == [
        ("charge", 6000),
        ("deposit", -2000),
    ]


def test_b8_a_second_page_uses_the_open_attempt(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    first = open_payment(worker, cast, stay)
    again = open_payment(worker, cast, stay)
    assert again == Noop(Code.PAYMENT_ATTEMPT_OPEN, subject=first.subject)  # type: ignore[union-attr]
    assert stripe.creates("payment_intent") == 1


def test_b5_eight_clicks_at_once_are_one_intent(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    _ = cast.sato
    stripe.fault("stall", CREATE, seconds=0.4, when="after")
    said = at_once(app, *[lambda: open_payment(worker, cast, stay)] * 8)
    codes = {getattr(one, "code", repr(one)) for one in said}
    assert codes <= {Code.PAYMENT_OPENED, Code.PAYMENT_ATTEMPT_OPEN}
    assert stripe.creates("payment_intent") == 1
    assert attempts(owner) == [("open", 6000, True)]
    assert len({call["idempotency_key"] for call in stripe.calls("/v1/payment_intents")}) == 1
    payment = owner.one("select id from payments")
    assert recorded(owner, payment) == [("created", None, "open")]


def test_a_walk_in_pays_as_one(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> None:
    stay = cast.book(source="walk_in")
    opened(worker, cast, owner, stay)
    assert intents(stripe)[0]["metadata"]["purpose"] == "walk_in"


@pytest.mark.parametrize("price", [1, 30, 49])
def test_c4_below_the_minimum_is_refused_before_the_provider(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, price: int
) -> None:
    stay = cast.book(price=price)
    said = open_payment(worker, cast, stay)
    assert said == Refused(Code.AMOUNT_BELOW_MINIMUM, {"amount": Money(price, "JPY")})
    assert stripe.get("calls") == []
    assert attempts(owner) == []


def test_c4_the_minimum_itself_is_charged(cast: Cast, worker: House, stripe: StandIn) -> None:
    assert isinstance(open_payment(worker, cast, cast.book(price=50)), Applied)


def test_c4_zero_is_settled_without_the_provider(
    cast: Cast, worker: House, stripe: StandIn
) -> None:
    stay = cast.book(price=0)
    assert open_payment(worker, cast, stay) == Noop(Code.NOTHING_DUE, subject=stay.id)
    assert stripe.get("calls") == []
    assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)


def test_i10_another_facilitys_stay_cannot_be_paid_here(
    cast: Cast, worker: House, stripe: StandIn
) -> None:
    theirs = cast.book(cast.osaka)
    desk = worker.desk(cast.tokyo.id)
    said = payments.open_payment(desk, cast.sato.actor, theirs.id, "balance")
    assert said == Refused(Code.NOT_FOUND)
    assert stripe.get("calls") == []


# Changed amounts and other cards ----------------------------------------------------------------


def test_b4_a_changed_amount_cancels_the_old_intent(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book(price=12_000)
    old = opened(worker, cast, owner, stay)
    now = clock.now()
    changed = do(cast, stay_changes.change_times, stay.id, 1, now, now + HOUR, -3000)
    assert isinstance(changed, Applied)
    new = opened(worker, cast, owner, stay)
    assert attempts(owner) == [("canceled", 12_000, True), ("open", 9000, True)]
    with pytest.raises(sdk.StripeError):
        pay(stripe, old)
    pay(stripe, new)
    deliver(worker)
    assert balance(owner, stay.id) == 0


def test_b4_a_changed_amount_after_a_lost_answer(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book(price=12_000)
    stripe.fault("do_then_drop", CREATE)
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_UNKNOWN)
    now = clock.now()
    assert isinstance(
        do(cast, stay_changes.change_times, stay.id, 1, now, now + HOUR, -3000), Applied
    )
    new = opened(worker, cast, owner, stay)
    assert [intent["status"] for intent in intents(stripe)] == [
        "canceled",
        "requires_payment_method",
    ]
    pay(stripe, new)
    deliver(worker)
    assert (balance(owner, stay.id), stripe.creates("charge")) == (0, 1)


def test_b4_another_part_cancels_the_open_one(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    """Two pages, deposit and balance: only one of them can take money."""
    stay = cast.book(price=6000, deposit_due=2000)
    deposit = opened(worker, cast, owner, stay, "deposit")
    opened(worker, cast, owner, stay, "balance")
    with pytest.raises(sdk.StripeError):
        pay(stripe, deposit)


def test_b2_another_card_after_a_decline(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    with pytest.raises(sdk.CardError):
        pay(stripe, intent, "pm_card_visa_chargeDeclinedInsufficientFunds")
    deliver(worker)
    assert owner.row("select state, decline_code from payments") == ("open", "insufficient_funds")
    assert balance(owner, stay.id) == 6000
    assert isinstance(open_payment(worker, cast, stay), Noop)
    pay(stripe, intent)
    deliver(worker)
    assert owner.row("select state, decline_code from payments") == ("succeeded", None)
    assert balance(owner, stay.id) == 0
    assert sum(charge["paid"] for charge in stripe.get("objects")["charge"]) == 1


def test_a_payment_in_processing_stands_in_the_way(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent, "pm_card_processing")
    deliver(worker)
    assert attempts(owner) == [("processing", 6000, True)]
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_PENDING)
    refused = do(cast, cash.take, stay.id, 6000, uuid4())
    assert refused == Refused(Code.PAYMENT_PENDING)
    stripe.post(f"payment_intents/{intent}/finish", outcome="declined")
    deliver(worker)
    work(worker, "payments")
    assert attempts(owner) == [("open", 6000, True)]
    assert isinstance(open_payment(worker, cast, stay), Noop)


def test_a1_an_old_decline_does_not_stop_the_next_cards_money(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    """The first card's refusal is delivered after the second card has begun to process."""
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    with pytest.raises(sdk.CardError):
        pay(stripe, intent, "pm_card_visa_chargeDeclined")
    pay(stripe, intent, "pm_card_processing")
    deliver(worker, "payment_intent.processing")
    deliver(worker, "payment_intent.payment_failed")
    work(worker, "payments")
    assert attempts(owner) == [("processing", 6000, True)]


# The provider fails -----------------------------------------------------------------------------


def test_a_provider_that_cannot_be_reached_moves_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    stripe.post("listening", open=False)
    assert open_payment(worker, cast, stay) == Refused(Code.BILLING_UNAVAILABLE)
    assert attempts(owner) == [("canceled", 6000, False)]
    stripe.post("listening", open=True)
    opened(worker, cast, owner, stay)
    assert attempts(owner) == [("canceled", 6000, False), ("open", 6000, True)]
    assert stripe.creates("payment_intent") == 1


def test_a_rate_limit_did_nothing(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> None:
    stay = cast.book()
    stripe.fault("rate_limit", CREATE)
    assert open_payment(worker, cast, stay) == Refused(Code.BILLING_UNAVAILABLE)
    assert isinstance(open_payment(worker, cast, stay), Applied)


@pytest.mark.parametrize("mode", ["do_then_drop", "error_500_after", "stall"])
def test_a_lost_answer_is_unknown_until_the_provider_is_asked(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, mode: str
) -> None:
    stay = cast.book()
    more = {"seconds": 3, "when": "after"} if mode == "stall" else {}
    stripe.fault(mode, CREATE, **more)
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_UNKNOWN)
    assert attempts(owner) == [("unknown", 6000, False)]
    work(worker, "payments")
    assert attempts(owner) == [("open", 6000, True)]
    assert stripe.creates("payment_intent") == 1
    pay(stripe, intents(stripe)[0]["id"])
    deliver(worker)
    assert balance(owner, stay.id) == 0


def test_a_lost_answer_is_resolved_by_the_next_click(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    stripe.fault("do_then_drop", CREATE)
    open_payment(worker, cast, stay)
    said = open_payment(worker, cast, stay)
    assert isinstance(said, Noop)
    assert said.code == Code.PAYMENT_ATTEMPT_OPEN
    assert stripe.creates("payment_intent") == 1


def test_a_lost_request_that_never_arrived_is_believed_only_later(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    stripe.fault("error_500_before", CREATE)
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_UNKNOWN)
    assert resolve(worker, cast, owner) == Refused(Code.PAYMENT_STILL_UNKNOWN)
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_UNKNOWN)
    owner.run("update payments set created_at = created_at - interval '3 minutes'")
    said = resolve(worker, cast, owner)
    assert isinstance(said, Applied)
    assert (said.code, said.to) == (Code.PAYMENT_RESOLVED, "canceled")
    assert isinstance(open_payment(worker, cast, stay), Applied)
    assert stripe.creates("payment_intent") == 1


def test_unknown_money_is_not_resolved_while_nobody_answers(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    stripe.fault("do_then_drop", CREATE)
    open_payment(worker, cast, stay)
    stripe.post("down", down=True)
    assert resolve(worker, cast, owner) == Refused(Code.BILLING_UNAVAILABLE)
    assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_UNKNOWN)
    assert attempts(owner) == [("unknown", 6000, False)]


def test_money_of_an_unknown_attempt_is_found_by_its_event(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    stripe.fault("do_then_drop", CREATE)
    open_payment(worker, cast, stay)
    pay(stripe, intents(stripe)[0]["id"])
    deliver(worker, "payment_intent.succeeded")
    assert attempts(owner) == [("succeeded", 6000, True)]
    assert balance(owner, stay.id) == 0


def test_b10_money_that_arrives_while_the_answer_is_under_way(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    _ = cast.sato
    stripe.fault("stall", CREATE, seconds=1.2, when="after")

    def guest() -> None:
        import time

        for _ in range(100):
            if found := intents(stripe):
                pay(stripe, found[0]["id"])
                deliver(worker, "payment_intent.succeeded")
                return
            time.sleep(0.02)

    said = at_once(app, lambda: open_payment(worker, cast, stay), guest)
    assert isinstance(said[0], Applied)
    assert said[1] is None
    assert attempts(owner) == [("succeeded", 6000, True)]
    assert balance(owner, stay.id) == 0


# What does not agree ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 5999},
        {"amount_received": 5999},
        {"currency": "usd"},
        {"metadata.purpose": "order"},
        {"metadata.subject": str(uuid4())},
        {"metadata.facility": str(uuid4())},
        {"id": "pi_somebody_elses"},
    ],
)
def test_an_echo_that_does_not_agree_confirms_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, wrong: dict[str, Any]
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent)
    told = {**stripe.get(f"objects/{intent}")}
    told["metadata"] = {**told["metadata"]}
    for name, value in wrong.items():
        where, _, field = name.rpartition(".")
        (told[where] if where else told)[field] = value
    forged = stripe.post("webhooks/record", type="payment_intent.succeeded", object=told)
    receive(*[one for one in events(worker) if one.id == forged["id"]])
    work(worker, "inbox")
    assert attempts(owner) == [("open", 6000, True)]
    assert balance(owner, stay.id) == 6000
    (outcome,) = owner.rows("select outcome from webhook_events")
    if "id" in wrong:
        assert outcome == ("ignored",)
    else:
        assert outcome == ("dead_letter",)
        assert owner.one("select count(*) from dead_letters where closed_at is null") == 1


def test_money_for_an_attempt_believed_over_waits_for_a_person(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    owner.run("set session_replication_role = replica")
    owner.run("update payments set state = 'canceled'")
    owner.run("set session_replication_role = origin")
    pay(stripe, intent)
    deliver(worker, "payment_intent.succeeded")
    assert attempts(owner)[0][0] == "canceled"
    assert owner.one("select count(*) from dead_letters where closed_at is null") == 1


# Money that the house may not keep --------------------------------------------------------------


def test_money_for_a_cancelled_stay_goes_back_in_full_once(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    assert isinstance(do(cast, stays.cancel, stay.id, 1), Applied)
    pay(stripe, intent)
    told = deliver(worker, "payment_intent.succeeded")
    assert attempts(owner) == [("refund_owed", 6000, True)]
    receive(*told)
    work(worker, "inbox", "refunds")
    deliver(worker)
    owner.make_due()
    work(worker, "refunds", "payments", "inbox")
    assert attempts(owner) == [("refunded", 6000, True)]
    assert stripe.creates("refund") == 1
    assert stripe.get("objects")["refund"][0]["amount"] == 6000
    assert balance(owner, stay.id) == 0
    assert owner.one("select count(*) from outbox where event_type = 'payment_received'") == 0
    assert owner.one("select count(*) from outbox where event_type = 'refund_sent'") == 1


def test_the_open_intent_of_a_cancelled_stay_is_withdrawn(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    do(cast, stays.cancel, stay.id, 1)
    owner.make_due()
    work(worker, "payments")
    assert attempts(owner) == [("canceled", 6000, True)]
    with pytest.raises(sdk.StripeError):
        pay(stripe, intent)


def test_an_attempt_that_died_before_its_call_does_not_outlive_its_stay(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    opened(worker, cast, owner, stay)
    owner.run("update payments set intent_id = null, client_secret_sealed = null")
    stripe.post("reset")
    do(cast, stays.cancel, stay.id, 1)
    owner.run("update payments set created_at = created_at - interval '3 minutes'")
    owner.make_due()
    work(worker, "payments")
    assert attempts(owner) == [("canceled", 6000, False)]


def test_paid_in_cash_and_by_card_returns_the_surplus(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    intent = opened(worker, cast, owner, stay)
    assert isinstance(do(cast, cash.take, stay.id, 4000, uuid4()), Applied)
    pay(stripe, intent)
    deliver(worker, "payment_intent.succeeded")
    work(worker, "refunds")
    assert balance(owner, stay.id) == 0
    (refund,) = stripe.get("objects")["refund"]
    assert refund["amount"] == 4000
    assert attempts(owner) == [("succeeded", 6000, True)]
    assert owner.one("select count(*) from outbox where event_type = 'payment_received'") == 1


def test_cash_and_card_at_the_same_instant_leave_no_surplus_behind(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner
) -> None:
    for number in range(6):
        stay = cast.book(
            starts_at=clock.now() - HOUR, ends_at=clock.now() + HOUR, price=6000 + number
        )
        intent = opened(worker, cast, owner, stay)
        pay(stripe, intent)
        receive(*[one for one in events(worker) if one.type == "payment_intent.succeeded"])
        at_once(
            app,
            lambda: work(worker, "inbox"),
            lambda stay=stay, due=6000 + number: do(cast, cash.take, stay.id, due, uuid4()),  # type: ignore[misc]
        )
        owner.make_due()
        work(worker, "inbox", "refunds")
        assert balance(owner, stay.id) == 0
        do(cast, stays.cancel, stay.id, 1)


def test_cancel_and_money_at_the_same_instant_keep_nothing(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner
) -> None:
    for _ in range(6):
        stay = cast.book()
        intent = opened(worker, cast, owner, stay)
        pay(stripe, intent)
        receive(*[one for one in events(worker) if one.type == "payment_intent.succeeded"])
        said = at_once(
            app,
            lambda: work(worker, "inbox"),
            lambda stay=stay: do(cast, stays.cancel, stay.id, 1),  # type: ignore[misc]
        )
        assert isinstance(said[1], Applied), said
        owner.make_due()
        work(worker, "inbox", "refunds")
        assert balance(owner, stay.id) == 0
        assert owner.one("select state from payments where stay_id = %s", stay.id) == "refunded"
    assert stripe.creates("refund") == 6


def test_the_database_refuses_a_second_attempt(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    from psycopg.errors import UniqueViolation

    stay = cast.book()
    opened(worker, cast, owner, stay)
    with pytest.raises(UniqueViolation, match="uq_payments_one_attempt_open"):
        owner.run(
            "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
            " currency, state, idempotency_key)"
            " select facility_id, purpose, subject_id, stay_id, 2, amount, currency, 'open', 'x'"
            " from payments"
        )


def test_what_is_not_there_is_not_found(cast: Cast, worker: House, stripe: StandIn) -> None:
    desk = worker.desk(cast.tokyo.id)
    unknown: UUID = uuid4()
    for verb in (payment_answers.resolve, payments.cancel_attempt):
        assert verb(desk, cast.sato.actor, unknown) == Refused(Code.NOT_FOUND)
