"""Payments: opened once, moved by the provider's word only, unknown where it cannot be known."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import stripe as sdk
from flask import Flask

from portal import clock, doorbell, ledger, seal
from portal.db import transaction
from portal.edges.errors import Rejected, Unknown, Unreachable
from portal.edges.payments.port import Intent
from portal.jobs.house import House
from portal.models import Payment
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import cash, payment_answers, payments, stay_changes, stays
from portal.verbs.desk import Desk
from portal.verbs.payment_answers import PROVIDER
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.conftest import psycopg_url
from tests.outside import Owner, at_once, deliver, events, pay, receive, recorded, work
from tests.verbs.books import another_writes
from tests.verbs.nearby import Nearby
from tests.verbs.test_stays import balance, do

CREATE = "^/v1/payment_intents$"
ATTEMPT = """
    insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount, currency,
        state, idempotency_key)
    values (%s, 'reservation_balance', %s, %s, 7, 6000, 'JPY', 'open', 'another writer')
"""
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


def test_whose_account_it_is_on_is_held_with_a_payment(
    worker: House, cast: Cast, stripe: StandIn, database: dict[str, str], inside: Flask
) -> None:
    stay = cast.book(price=6000)
    said = open_payment(worker, cast, stay)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    with (
        psycopg.connect(psycopg_url(database["DATABASE_OWNER_URL"])) as other,
        transaction(stay.facility_id) as tx,
    ):
        assert ledger.hold(tx, Payment, said.subject) is not None
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("select 1 from stays for no key update nowait")


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


# Between a call and its answer ------------------------------------------------------------------


def desk_with(nearby: Any, stay: Booked) -> Desk:
    nobody: Any = None  # no lock is asked
    return Desk(stay.facility_id, nearby, nobody, nobody, "http://here.example")


def begin(cast: Cast, nearby: Nearby, stay: Booked, part: Any = "balance") -> Outcome:
    return payments.open_payment(desk_with(nearby, stay), cast.sato.actor, stay.id, part)


def begun(cast: Cast, nearby: Nearby, stay: Booked, part: Any = "balance") -> UUID:
    said = begin(cast, nearby, stay, part)
    assert isinstance(said, Applied), said
    assert said == Applied(Code.PAYMENT_OPENED, to="open", subject=said.subject)
    assert said.subject is not None
    return said.subject


def ask(cast: Cast, nearby: Nearby, stay: Booked, payment: UUID) -> Outcome:
    return payment_answers.resolve(desk_with(nearby, stay), cast.sato.actor, payment)


def withdraw(cast: Cast, nearby: Nearby, stay: Booked, payment: UUID) -> Outcome:
    return payments.cancel_attempt(desk_with(nearby, stay), cast.sato.actor, payment)


def behind_our_back(owner: Owner, statement: str) -> Callable[[], None]:
    """A change that another process made, past the guard that lets verbs alone move states."""

    def change() -> None:
        owner.run(f"set session_replication_role = replica; {statement}")
        owner.run("set session_replication_role = origin")

    return change


def rung(kind: Any) -> int:
    return len(doorbell.queue(kind).jobs)


def payment_of(owner: Owner) -> tuple[Any, ...]:
    """(state, error, whether anybody will ask: None, "now" or "later") of the newest attempt."""
    found: tuple[Any, ...] = owner.row(
        "select state, last_error, case when next_read_at <= now() then 'now'"
        " when next_read_at > now() then 'later' end from payments order by created_at desc limit 1"
    )
    return found


def last_record(owner: Owner, payment: UUID) -> tuple[Any, ...]:
    found: tuple[Any, ...] = owner.row(
        "select verb, event, from_state, to_state, actor_kind, actor_name from transitions"
        " where subject_id = %s order by id desc limit 1",
        payment,
    )
    return found


FORGOTTEN = "update payments set intent_id = null, client_secret_sealed = null"
"""Our process died between the attempt's row and the note of its intent."""


def long_ago(owner: Owner, seconds: int = 180) -> None:
    """Whatever was lost on the way has arrived by now, or never will."""
    owner.run("update payments set created_at = created_at - %s * interval '1 second'", seconds)


@pytest.mark.parametrize("kind", [Rejected, Unreachable])
def test_an_attempt_that_the_provider_did_not_take_ends_with_its_reason(
    cast: Cast, nearby: Nearby, owner: Owner, kind: Any
) -> None:
    nearby.fault = kind("no " * 200)
    assert begin(cast, nearby, cast.book()) == Refused(Code.BILLING_UNAVAILABLE)
    assert payment_of(owner) == ("canceled", ("no " * 200)[:500], None)
    assert last_record(owner, owner.one("select id from payments")) == (
        *("open_payment", "provider_canceled", "open", "canceled"),
        *("staff", cast.sato.name),
    )
    assert rung("payments") == 0


def test_an_attempt_whose_answer_is_lost_is_asked_after_at_once(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    nearby.fault = Unknown("lost " * 200)
    assert begin(cast, nearby, cast.book()) == Refused(Code.PAYMENT_UNKNOWN)
    assert payment_of(owner) == ("unknown", ("lost " * 200)[:500], "now")
    assert last_record(owner, owner.one("select id from payments")) == (
        *("open_payment", "answer_lost", "open", "unknown"),
        *("staff", cast.sato.name),
    )
    assert rung("payments") == 1


def test_a_call_still_in_flight_is_waited_for_and_moves_nothing(
    cast: Cast, nearby: Nearby, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another page asked under the same key: the provider has its answer soon, or never."""
    waited: list[float] = []
    monkeypatch.setattr(payments, "sleep", waited.append)
    nearby.fault = Unknown("in use", code="idempotency_key_in_use")
    assert begin(cast, nearby, cast.book()) == Refused(Code.PAYMENT_PENDING)
    assert payment_of(owner) == ("open", None, "later")
    assert len(nearby.asked) == 4
    assert sum(waited) < 2


def test_an_answer_that_comes_on_the_second_asking_opens_the_attempt(
    cast: Cast, nearby: Nearby, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearby.fault = Unknown("in use", code="idempotency_key_in_use")
    monkeypatch.setattr(payments, "sleep", lambda _: setattr(nearby, "fault", None))
    begun(cast, nearby, cast.book())
    first, second = nearby.asked
    assert first == second
    assert attempts(owner) == [("open", 6000, True)]


@pytest.mark.parametrize("kind", [Unknown, Unreachable])
@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("intent_id = 'pi_known'", "open"),
        ("state = 'processing', intent_id = 'pi_known'", "processing"),
        ("state = 'canceled'", "canceled"),
    ],
)
def test_a_fault_does_not_undo_what_was_learned_meanwhile(
    cast: Cast, nearby: Nearby, owner: Owner, kind: Any, change: str, state: str
) -> None:
    """An event told us of the intent while the call was still under way."""
    nearby.meanwhile = behind_our_back(owner, f"update payments set {change}")
    nearby.fault = kind("late")
    begin(cast, nearby, cast.book())
    assert payment_of(owner) == (state, None, "later")
    assert rung("payments") == 0


@pytest.mark.parametrize("kind", [Unknown, Unreachable])
def test_a_fault_is_written_down_after_who_wrote_first(
    cast: Cast, nearby: Nearby, owner: Owner, first_writer: Any, kind: Any
) -> None:
    """What it writes is seen before it is decided whether there is an intent."""
    nearby.meanwhile = first_writer("update payments set intent_id = 'pi_known'")
    nearby.fault = kind("late")
    begin(cast, nearby, cast.book())
    assert attempts(owner) == [("open", 6000, True)]


def test_an_attempt_is_given_up_after_who_wrote_first(
    cast: Cast, nearby: Nearby, owner: Owner, first_writer: Any
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    owner.run(FORGOTTEN)
    long_ago(owner)
    nearby.intents = {}
    nearby.meanwhile = first_writer("update payments set intent_id = 'pi_found'")
    assert isinstance(ask(cast, nearby, stay, payment), Conflict)
    assert attempts(owner) == [("open", 6000, True)]


def test_an_attempt_whose_call_never_happened_is_used_again(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    """The same row, the same key, the same sum: the provider is told the same thing."""
    stay = cast.book(price=7000)
    payment = begun(cast, nearby, stay)
    owner.run(FORGOTTEN)
    assert begun(cast, nearby, stay) == payment
    first, second = nearby.asked
    assert first == second
    assert first["key"] == f"reservation_balance:{stay.id}:1"
    assert attempts(owner) == [("open", 7000, True)]


def test_each_purpose_counts_its_own_attempts(cast: Cast, nearby: Nearby, owner: Owner) -> None:
    stay = cast.book(price=6000, deposit_due=2000)
    for part in ("deposit", "balance", "deposit", "balance"):
        begun(cast, nearby, stay, part)
    assert owner.rows(
        "select purpose, attempt, amount, state, idempotency_key from payments order by created_at"
    ) == [
        (f"reservation_{part}", number, amount, state, f"reservation_{part}:{stay.id}:{number}")
        for part, number, amount, state in (
            ("deposit", 1, 2000, "canceled"),
            ("balance", 1, 6000, "canceled"),
            ("deposit", 2, 2000, "canceled"),
            ("balance", 2, 6000, "open"),
        )
    ]


def test_the_last_cards_refusal_is_forgotten_before_another_is_tried(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay, other = cast.book(), cast.book(space="A02")
    payment = begun(cast, nearby, stay)
    begun(cast, nearby, other)
    owner.run("update payments set decline_code = 'insufficient_funds'")
    assert begin(cast, nearby, stay) == Noop(Code.PAYMENT_ATTEMPT_OPEN, subject=payment)
    look = "select decline_code is null from payments order by stay_id = %s"
    assert owner.rows(look, stay.id) == [(False,), (True,)]


@pytest.mark.parametrize(("price", "refused"), [(0, False), (1, True), (49, True)])
def test_what_is_too_little_for_a_card_opens_nothing(
    cast: Cast, nearby: Nearby, owner: Owner, price: int, refused: bool
) -> None:
    stay = cast.book(price=price)
    little = Refused(Code.AMOUNT_BELOW_MINIMUM, {"amount": Money(price, "JPY")})
    nothing = Noop(Code.NOTHING_DUE, subject=stay.id)
    assert begin(cast, nearby, stay) == (little if refused else nothing)
    assert attempts(owner) == []


@pytest.mark.parametrize(
    ("state", "code"), [("unknown", Code.PAYMENT_UNKNOWN), ("processing", Code.PAYMENT_PENDING)]
)
def test_an_attempt_that_began_while_the_way_was_cleared_is_not_doubled(
    cast: Cast, nearby: Nearby, owner: Owner, state: str, code: Code
) -> None:
    """The deposit's page is open; while its intent is withdrawn, another page pays the balance."""
    stay = cast.book(price=6000, deposit_due=2000)
    begun(cast, nearby, stay, "deposit")
    nearby.meanwhile = behind_our_back(
        owner,
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key) select facility_id, 'reservation_balance', subject_id,"
        f" stay_id, 1, 6000, currency, '{state}', 'another' from payments",
    )
    assert begin(cast, nearby, stay) == Refused(code)
    assert sorted(attempts(owner)) == sorted([("canceled", 2000, True), (state, 6000, False)])


def test_an_open_intent_of_another_amount_that_cannot_be_withdrawn_stays(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book(price=6000, deposit_due=2000)
    begun(cast, nearby, stay, "deposit")
    nearby.fault = Unreachable("away")
    assert begin(cast, nearby, stay) == Refused(Code.BILLING_UNAVAILABLE)
    assert attempts(owner) == [("open", 2000, True)]


def test_an_attempt_is_cancelled_once_and_by_whom_it_was(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    assert withdraw(cast, nearby, stay, payment) == Applied(Code.PAYMENT_RECORDED, to="canceled")
    assert payment_of(owner) == ("canceled", None, None)
    assert last_record(owner, payment) == (
        *("record_intent", "provider_canceled", "open", "canceled"),
        *("staff", cast.sato.name),
    )
    assert withdraw(cast, nearby, stay, payment) == Refused(Code.PAYMENT_PENDING)


def test_an_attempt_that_the_provider_never_heard_of_cannot_be_cancelled_there(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    owner.run(FORGOTTEN)
    assert withdraw(cast, nearby, stay, payment) == Refused(Code.PAYMENT_PENDING)
    assert attempts(owner) == [("open", 6000, False)]


def test_a_paid_attempt_that_is_cancelled_is_recorded_as_paid(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = cast.book()
    pay(stripe, opened(worker, cast, owner, stay))
    payment = owner.one("select id from payments")
    said = payments.cancel_attempt(worker.desk(stay.facility_id), cast.sato.actor, payment)
    assert said == Applied(Code.PAYMENT_RECORDED, to="succeeded")
    assert balance(owner, stay.id) == 0


def test_a_cancellation_whose_answer_is_lost_leaves_the_attempt_open_and_asks(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay, other = cast.book(), cast.book(space="A02")
    payment = begun(cast, nearby, stay)
    begun(cast, nearby, other)
    nearby.fault = Unknown("lost")
    assert withdraw(cast, nearby, stay, payment) == Refused(Code.PAYMENT_UNKNOWN)
    look = "select state, next_read_at <= now() from payments order by stay_id = %s"
    assert owner.rows(look, stay.id) == [("open", False), ("open", True)]
    assert rung("payments") == 1
    nearby.fault = None
    assert ask(cast, nearby, stay, payment) == Applied(Code.PAYMENT_RECORDED, to="canceled")


def test_unknown_money_that_is_on_its_way_stands_in_the_way(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    nearby.fault = Unknown("lost")
    begin(cast, nearby, stay)
    nearby.fault = None
    nearby.change("pi_1", status="processing")
    assert begin(cast, nearby, stay) == Refused(Code.PAYMENT_PENDING)
    assert attempts(owner) == [("processing", 6000, True)]


def test_a_deposit_on_its_way_stands_in_the_way_of_the_balance(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book(deposit_due=2000)
    payment = begun(cast, nearby, stay, "deposit")
    record(cast, stay, payment, nearby.change("pi_1", status="processing"))
    assert begin(cast, nearby, stay) == Refused(Code.PAYMENT_PENDING)
    assert attempts(owner) == [("processing", 2000, True)]


def test_an_unknown_attempt_of_which_nothing_came_is_given_up_before_the_next(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    nearby.fault = Unknown("lost")
    begin(cast, nearby, stay)
    nearby.fault, nearby.intents = None, {}
    assert begin(cast, nearby, stay) == Refused(Code.PAYMENT_UNKNOWN)
    long_ago(owner)
    lost = owner.one("select id from payments")
    begun(cast, nearby, stay)
    assert attempts(owner) == [("canceled", 6000, False), ("open", 6000, True)]
    assert last_record(owner, lost) == (
        *("resolve", "provider_canceled", "unknown", "canceled"),
        *("staff", cast.sato.name),
    )


# The provider's word, answered ------------------------------------------------------------------


def record(
    cast: Cast, stay: Booked, payment: UUID, word: Intent, event_id: str | None = None
) -> Outcome:
    with cast.transaction(stay.facility_id) as tx:
        return payment_answers.record_intent(tx, PROVIDER, payment, word, event_id=event_id)


def word_kept(owner: Owner) -> tuple[Any, ...]:
    found: tuple[Any, ...] = owner.row(
        "select state, livemode, decline_code, next_read_at <= now(), succeeded_at is not null"
        " from payments"
    )
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 5999},
        {"amount_received": 5999},
        {"currency": "USD"},
        {"payment_id": str(uuid4())},
        {"purpose": "order"},
        {"subject": str(uuid4())},
        {"facility": str(uuid4())},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_money_that_does_not_agree_is_shown_to_a_person(
    cast: Cast, nearby: Nearby, owner: Owner, wrong: dict[str, Any]
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    paid = nearby.paid("pi_1")
    named = {name: value for name, value in wrong.items() if name in paid.metadata}
    said = {name: value for name, value in wrong.items() if name not in paid.metadata}
    word = replace(paid, metadata={**paid.metadata, **named}, **said)
    assert record(cast, stay, payment, word) == Refused(
        Code.AMOUNT_MISMATCH, {"payment": str(payment)}
    )
    assert word_kept(owner) == ("open", True, None, False, False)


def test_words_that_move_nothing_are_noted_where_they_are_news(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    """The bank's reason is news on an open attempt, and none on one whose money is under way."""
    stay, other = cast.book(), cast.book(space="A02")
    payment = begun(cast, nearby, stay)
    known = Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment)
    declined = replace(nearby.intents["pi_1"], decline_code="card_declined")
    begun(cast, nearby, other)
    assert record(cast, stay, payment, declined) == known
    look = "select decline_code from payments order by stay_id = %s"
    assert owner.rows(look, stay.id) == [(None,), ("card_declined",)]
    processing = replace(nearby.intents["pi_1"], status="processing")
    said = record(cast, stay, payment, replace(processing, livemode=False))
    assert said == Applied(Code.PAYMENT_RECORDED, to="processing")
    later = replace(processing, decline_code="of_an_earlier_card")
    assert record(cast, stay, payment, later) == known
    assert owner.rows(look, stay.id) == [(None,), (None,)]
    assert owner.one("select livemode from payments where id = %s", payment) is False


def test_another_intent_or_another_payment_is_not_found(cast: Cast, nearby: Nearby) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    paid = nearby.paid("pi_1")
    assert record(cast, stay, payment, replace(paid, id="pi_9")) == Refused(Code.NOT_FOUND)
    assert record(cast, stay, uuid4(), paid) == Refused(Code.NOT_FOUND)


def test_a_refusal_heard_by_an_event_is_asked_after_and_believed_when_read(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay, other = cast.book(), cast.book(space="A02")
    payment = begun(cast, nearby, stay)
    begun(cast, nearby, other)
    declined = replace(nearby.intents["pi_1"], decline_code="expired_card")
    record(cast, stay, payment, nearby.change("pi_1", status="processing"))
    assert record(cast, stay, payment, declined, "evt_1") == Noop(
        Code.PAYMENT_ALREADY_RECORDED, subject=payment
    )
    look = "select state, next_read_at <= now() from payments order by stay_id = %s"
    assert owner.rows(look, stay.id) == [("open", False), ("processing", True)]
    assert rung("payments") == 1
    assert record(cast, stay, payment, declined) == Applied(Code.PAYMENT_RECORDED, to="open")
    look = "select state, decline_code from payments order by stay_id = %s"
    assert owner.rows(look, stay.id) == [("open", None), ("open", "expired_card")]


def test_money_is_recorded_once_and_not_for_an_attempt_that_is_over(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    paid = nearby.paid("pi_1")
    known = Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment)
    assert record(cast, stay, payment, paid) == Applied(Code.PAYMENT_RECORDED, to="succeeded")
    assert word_kept(owner) == ("succeeded", True, None, None, True)
    assert record(cast, stay, payment, paid) == known
    behind_our_back(owner, "update payments set state = 'canceled', succeeded_at = null")()
    assert record(cast, stay, payment, replace(paid, status="canceled")) == known
    assert record(cast, stay, payment, paid) == Refused(
        Code.AMOUNT_MISMATCH, {"payment": str(payment)}
    )


def test_a_payment_in_doubt_is_answered_by_what_the_provider_has(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    assert ask(cast, nearby, stay, payment) == Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment)
    doubt = behind_our_back(owner, f"{FORGOTTEN}, state = 'unknown'")
    doubt()
    assert ask(cast, nearby, stay, payment) == Applied(Code.PAYMENT_RECORDED, to="open")
    assert owner.one("select intent_id from payments") == "pi_1"
    assert last_record(owner, payment) == (
        *("record_intent", "provider_declined", "unknown", "open"),
        *(PROVIDER.kind, PROVIDER.name),
    )
    doubt()
    nearby.change("pi_1", amount=5000)
    assert ask(cast, nearby, stay, payment) == Refused(Code.PAYMENT_STILL_UNKNOWN)
    nearby.fault = Unreachable("away")
    assert ask(cast, nearby, stay, payment) == Refused(Code.BILLING_UNAVAILABLE)


def test_a_secret_that_the_provider_does_not_repeat_is_kept(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    look = "select client_secret_sealed, intent_id, livemode from payments"
    kept = owner.one(look)
    assert seal.unseal(kept) == "a secret"
    nearby.change("pi_1", client_secret=None, livemode=False)
    ask(cast, nearby, stay, payment)
    assert owner.row(look) == (kept, "pi_1", False)


@pytest.mark.parametrize(
    "change",
    ["state = 'canceled'", "state = 'succeeded', succeeded_at = now()", "intent_id = 'pi_found'"],
)
def test_an_attempt_that_was_settled_while_it_was_looked_for_is_left_alone(
    cast: Cast, nearby: Nearby, owner: Owner, change: str
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    behind_our_back(owner, f"{FORGOTTEN}, state = 'unknown'")()
    long_ago(owner)
    nearby.intents = {}
    nearby.meanwhile = behind_our_back(owner, f"update payments set {change}")
    said = ask(cast, nearby, stay, payment)
    state, version = owner.row("select state, version from payments")
    assert isinstance(said, Conflict)
    now = said.current
    assert (said.code, now.machine, now.state, now.version, now.by) == (
        *(Code.PAYMENT_STATE_CHANGED, "payment", state, version, cast.sato.name),
    )
    assert recorded(owner, payment) == [("created", None, "open")]


def test_an_open_attempt_without_an_intent_is_given_up_by_whom_asked(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    """And not before two minutes: what was lost on the way may still arrive."""
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    owner.run(FORGOTTEN)
    nearby.intents = {}
    long_ago(owner, 110)
    assert ask(cast, nearby, stay, payment) == Refused(Code.PAYMENT_STILL_UNKNOWN)
    long_ago(owner, 10)
    assert ask(cast, nearby, stay, payment) == Applied(
        Code.PAYMENT_RESOLVED, to="canceled", subject=payment
    )
    assert payment_of(owner) == ("canceled", None, None)
    assert last_record(owner, payment) == (
        *("resolve", "provider_canceled", "open", "canceled"),
        *("staff", cast.sato.name),
    )


def test_a_writer_who_held_no_stay_is_met_at_the_schema(
    worker: House, cast: Cast, owner: Owner, stripe: StandIn
) -> None:
    """Two attempts at once are kept apart by the stay's lock; were one to write without it, the
    unique key refuses the second, and nothing is asked of the provider for it."""
    stay = cast.book()
    with another_writes(owner, ATTEMPT, stay.facility_id, stay.id, stay.id):
        assert open_payment(worker, cast, stay) == Refused(Code.PAYMENT_PENDING)
    assert attempts(owner) == [("open", 6000, False)]
    assert intents(stripe) == []
