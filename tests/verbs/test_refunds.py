"""Refunds: a row first, its id the provider's key, the ledger last."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.jobs.house import House
from portal.models import Payment, Refund
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import refund_answers, refunds, refunds_owed, stay_changes, stays
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, deliver, events, pay, receive, work
from tests.verbs.books import another_writes, intent_there, put_payment, put_refund
from tests.verbs.test_payments import HOUR, opened
from tests.verbs.test_stays import balance, do

CREATE = "^/v1/refunds$"
TOLD = ("refund.created", "payment_intent.succeeded")


@pytest.fixture
def stay(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> Booked:
    """10,000 yen, paid by card."""
    stay = cast.book(price=10_000)
    pay(stripe, opened(worker, cast, owner, stay))
    deliver(worker)
    assert balance(owner, stay.id) == 0
    return stay


def ask(
    worker: House, cast: Cast, owner: Owner, amount: int, form: UUID | None = None, **more: Any
) -> Outcome:
    house, payment = owner.row("select facility_id, id from payments")
    desk = worker.desk(house)
    return refunds.ask(desk, cast.sato.actor, payment, amount, form or uuid4(), **more)


def rows(owner: Owner) -> list[tuple[Any, ...]]:
    return owner.rows("select state, amount from refunds order by created_at")


def at_provider(stripe: StandIn) -> list[int]:
    return [refund["amount"] for refund in stripe.get("objects").get("refund", [])]


def refundable(cast: Cast, owner: Owner) -> int:
    with cast.transaction(cast.tokyo.id) as tx:
        payment = tx.get(Payment, owner.one("select id from payments"))
        assert payment is not None
        return refunds_owed.refundable(tx, payment)


def mails(owner: Owner, kind: str) -> int:
    return int(owner.one("select count(*) from outbox where event_type = %s", kind))


def test_a_part_is_returned(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    said = ask(worker, cast, owner, 3000)
    assert isinstance(said, Applied)
    assert (said.code, said.to) == (Code.REFUND_SENT, "succeeded")
    assert at_provider(stripe) == [3000]
    assert rows(owner) == [("succeeded", 3000)]
    assert owner.one("select state from payments") == "succeeded"
    assert (balance(owner, stay.id), refundable(cast, owner)) == (3000, 7000)
    (call,) = stripe.calls("/v1/refunds")
    assert call["idempotency_key"] == str(owner.one("select id from refunds"))


def test_a_whole_payment_is_refunded(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    assert isinstance(ask(worker, cast, owner, 4000), Applied)
    assert isinstance(ask(worker, cast, owner, 6000), Applied)
    assert owner.one("select state from payments") == "refunded"
    assert ask(worker, cast, owner, 1) == Refused(Code.NOTHING_TO_REFUND)
    assert mails(owner, "refund_sent") == 2


def test_a_concession_is_not_owed_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    assert isinstance(ask(worker, cast, owner, 2000, lowers_price=True), Applied)
    assert balance(owner, stay.id) == 0
    assert owner.one("select count(*) from ledger_lines where kind = 'charge_reversed'") == 1


@pytest.mark.parametrize("amount", [0, -1, 10_001, 10**12])
def test_c8_impossible_amounts(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, amount: int
) -> None:
    said = ask(worker, cast, owner, amount)
    assert said == Refused(Code.REFUND_EXCEEDS_PAID, {"amount": Money(10_000, "JPY")})
    assert rows(owner) == []
    assert stripe.calls("/v1/refunds") == []


def test_c8_two_people_refund_at_once(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    said = at_once(app, *[lambda: ask(worker, cast, owner, 6000)] * 2)
    refused = [one for one in said if isinstance(one, Refused)]
    assert refused == [Refused(Code.REFUND_EXCEEDS_PAID, {"amount": Money(4000, "JPY")})]
    assert sum(isinstance(one, Applied) for one in said) == 1
    assert at_provider(stripe) == [6000]
    assert balance(owner, stay.id) == 6000


def test_b11_two_forms_are_two_refunds_and_one_form_is_one(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    ask(worker, cast, owner, 1000)
    ask(worker, cast, owner, 1000)
    form = uuid4()
    said = at_once(app, *[lambda: ask(worker, cast, owner, 1000, form)] * 4)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.REFUND_ALREADY_ASKED] * 3 + [Code.REFUND_SENT]
    assert at_provider(stripe) == [1000, 1000, 1000]
    assert balance(owner, stay.id) == 3000


def test_a_provider_out_of_reach_refuses_and_the_person_may_ask_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.post("listening", open=False)
    assert ask(worker, cast, owner, 3000) == Refused(Code.REFUND_UNAVAILABLE)
    stripe.post("listening", open=True)
    assert rows(owner) == [("failed", 3000)]
    assert (balance(owner, stay.id), refundable(cast, owner)) == (0, 10_000)
    owner.make_due()
    work(worker, "refunds")
    assert at_provider(stripe) == []
    assert isinstance(ask(worker, cast, owner, 3000), Applied)
    assert at_provider(stripe) == [3000]


@pytest.mark.parametrize("mode", ["do_then_drop", "error_500_after"])
def test_b1_a_lost_answer_is_one_refund_under_one_key(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, mode: str
) -> None:
    stripe.fault(mode, CREATE)
    form = uuid4()
    assert ask(worker, cast, owner, 3000, form) == Refused(Code.REFUND_UNKNOWN)
    assert rows(owner) == [("unknown", 3000)]
    assert refundable(cast, owner) == 7000
    for _ in range(3):
        assert isinstance(ask(worker, cast, owner, 3000, form), Noop)
    owner.make_due()
    work(worker, "refunds")
    assert rows(owner) == [("succeeded", 3000)]
    assert at_provider(stripe) == [3000]
    assert (balance(owner, stay.id), refundable(cast, owner)) == (3000, 7000)


def test_b1_every_call_carries_the_same_key(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.fault("error_500_before", CREATE, times=3)
    assert ask(worker, cast, owner, 3000) == Refused(Code.REFUND_UNKNOWN)
    for _ in range(3):
        owner.make_due()
        work(worker, "refunds")
    assert len({call["idempotency_key"] for call in stripe.calls("/v1/refunds")}) == 1
    assert len(stripe.calls("/v1/refunds")) == 4
    assert at_provider(stripe) == [3000]
    assert rows(owner) == [("succeeded", 3000)]


def test_b7_a_key_that_the_provider_forgot_does_not_refund_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.fault("do_then_drop", CREATE)
    ask(worker, cast, owner, 3000)
    stripe.post("clock", advance=25 * 3600)
    owner.make_due()
    work(worker, "refunds")
    assert at_provider(stripe) == [3000]
    assert rows(owner) == [("succeeded", 3000)]


def test_b7_a_sender_that_died_a_day_ago_may_have_sent(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """The verb's process died between the provider's answer and its own transaction."""
    ask(worker, cast, owner, 3000)
    owner.run("delete from ledger_lines where kind = 'refund'")
    owner.run("set session_replication_role = replica")
    owner.run("update refunds set state = 'asked', provider_refund_id = null")
    owner.run("set session_replication_role = origin")
    stripe.post("clock", advance=25 * 3600)
    owner.make_due()
    work(worker, "refunds")
    assert at_provider(stripe) == [3000]
    assert rows(owner) == [("succeeded", 3000)]
    assert balance(owner, stay.id) == 3000


def test_the_provider_says_no(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """The charge was disputed; the provider refuses to refund it."""
    stripe.post("disputes", payment_intent=owner.one("select intent_id from payments"))
    assert ask(worker, cast, owner, 3000) == Refused(Code.REFUND_UNAVAILABLE)
    assert rows(owner) == [("failed", 3000)]
    assert owner.one("select failure from refunds") == "charge_disputed"
    assert balance(owner, stay.id) == 0
    assert mails(owner, "refund_sent") == 0


def sent(cast: Cast, worker: House, refund: UUID) -> Outcome:
    return refunds.send(worker.desk(cast.tokyo.id), cast.sato.actor, refund)


def kept(owner: Owner) -> tuple[Any, ...]:
    """Of the one refund: its state, why it failed, what went wrong last."""
    (row,) = owner.rows("select state, failure, last_error from refunds")
    return row


@pytest.mark.parametrize(
    ("state", "attempts", "by_a_person", "asked_first"),
    [
        ("asked", 0, False, False),
        ("asked", 1, False, False),
        ("asked", 2, False, True),
        ("asked", 0, True, False),
        ("asked", 1, True, True),
        ("unknown", 0, False, True),
    ],
)
def test_the_provider_is_asked_first_where_it_may_have_been_sent(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner,
    state: str, attempts: int, by_a_person: bool, asked_first: bool,
) -> None:  # fmt: skip
    """A person's own try is not counted as an attempt; the worker's first one is."""
    form = uuid4() if by_a_person else None
    payment = put_payment(owner, cast.book(), intent_id=intent_there(stripe))
    refund = put_refund(owner, payment, state, attempts=attempts, form_key=form)
    assert isinstance(sent(cast, worker, refund), Applied)
    assert len(stripe.calls("/v1/refunds", "GET")) == asked_first
    assert at_provider(stripe) == [1000]


def test_what_went_wrong_is_kept_with_the_refund(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    put_payment(owner, cast.book(), intent_id=intent_there(stripe))
    stripe.fault("do_then_drop", CREATE)
    ask(worker, cast, owner, 3000)
    state, failure, error = kept(owner)
    assert (state, failure) == ("unknown", None)
    assert "None" not in error
    stripe.post("listening", open=False)
    refund = owner.one("select id from refunds")
    assert sent(cast, worker, refund) == Refused(Code.REFUND_UNKNOWN)
    stripe.post("listening", open=True)
    assert kept(owner)[:2] == ("unknown", None)
    assert kept(owner)[2] not in (error, "None")


def test_a_refund_that_reached_nobody_is_over_and_says_so(
    cast: Cast, worker: House, owner: Owner
) -> None:
    payment = put_payment(owner, cast.book())
    assert ask(worker, cast, owner, 3000) == Refused(Code.REFUND_UNAVAILABLE)
    state, failure, error = kept(owner)
    assert (state, failure, "None" in error) == ("failed", "unreachable", False)
    owner.run("delete from refunds")
    for state, code in (
        ("asked", Code.REFUND_UNAVAILABLE),
        ("unknown", Code.REFUND_UNKNOWN),
        ("pending", Code.REFUND_PENDING),
    ):
        refund = put_refund(owner, payment, state, provider_refund_id=f"re_{state}")
        assert sent(cast, worker, refund) == Refused(code)
        assert owner.one("select state from refunds where id = %s", refund) == state


def test_a_refund_whose_payment_has_no_intent_yet_stays_asked(
    cast: Cast, worker: House, owner: Owner
) -> None:
    put_payment(owner, cast.book(), intent_id=None)
    assert ask(worker, cast, owner, 3000) == Refused(Code.NOT_FOUND)
    assert kept(owner) == ("asked", None, None)
    assert sent(cast, worker, uuid4()) == Refused(Code.NOT_FOUND)


def test_a_long_refusal_is_cut(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> None:
    put_payment(owner, cast.book(), intent_id="pi_" + 600 * "x")
    assert ask(worker, cast, owner, 3000) == Refused(Code.REFUND_UNAVAILABLE)
    state, failure, error = kept(owner)
    assert (state, failure) == ("failed", "resource_missing")
    assert len(error) == 500


@pytest.mark.parametrize("state", ["asked", "unknown"])
def test_a_refused_refund_leaves_its_payment_whole_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, state: str
) -> None:
    payment = put_payment(owner, cast.book(), state="refund_owed", intent_id="pi_never_was")
    refund = put_refund(owner, payment, state, 10_000)
    assert sent(cast, worker, refund) == Refused(Code.REFUND_UNAVAILABLE)
    assert owner.one("select state from refunds") == "failed"
    assert owner.one("select state from payments") == "succeeded"


def test_a_payment_that_closes_while_its_refund_fails_is_opened_again(
    cast: Cast, owner: Owner
) -> None:
    payment = put_payment(owner, cast.book(), state="refund_owed")
    refund, who = put_refund(owner, payment, "failed"), cast.sato.actor
    close = "update payments set state = 'refunded' where id = %s"
    with another_writes(owner, close, payment), cast.transaction(cast.tokyo.id) as tx:
        row = tx.get(Refund, refund)
        assert row is not None
        refund_answers.withdraw(tx, who, row)
    assert owner.one("select state from payments") == "succeeded"


def test_a_payment_that_opens_while_its_last_refund_lands_is_closed(
    cast: Cast, owner: Owner
) -> None:
    payment, who = put_payment(owner, cast.book(), state="refund_owed"), cast.sato.actor
    put_refund(owner, payment, "succeeded", 10_000)
    withdraw = "update payments set state = 'succeeded' where id = %s"
    with another_writes(owner, withdraw, payment), cast.transaction(cast.tokyo.id) as tx:
        row = tx.get(Payment, payment)
        assert row is not None
        refunds_owed.close_if_returned(tx, who, row)
    assert owner.one("select state from payments") == "refunded"


def test_what_another_owes_meanwhile_is_not_owed_twice(cast: Cast, owner: Owner) -> None:
    payment, who = put_payment(owner, cast.book()), cast.sato.actor
    another = (
        "with held as (update payments set reads = reads where id = %s returning *)"
        " insert into refunds (facility_id, payment_id, stay_id, amount, currency, state, reason)"
        " select facility_id, id, stay_id, amount, currency, 'asked', 'staff' from held"
    )
    with another_writes(owner, another, payment), cast.transaction(cast.tokyo.id) as tx:
        refunds_owed.owe(tx, who, payment, 10_000, reason="surplus")
    assert owner.rows("select amount, reason from refunds") == [(10_000, "staff")]


def test_c5_the_cumulative_total_is_not_added_up(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    intent = owner.one("select intent_id from payments")
    for amount in (2000, 3000):
        stripe.post("refunds", payment_intent=intent, amount=amount)
    charged = [one for one in events(worker) if one.type == "charge.refunded"]
    for order in (charged, charged, charged[::-1]):
        receive(*order)
        owner.make_due()
        work(worker, "inbox", "payments")
        assert sorted(amount for _, amount in rows(owner)) == [2000, 3000]
        assert (balance(owner, stay.id), refundable(cast, owner)) == (5000, 5000)
    assert owner.one("select state from payments") == "succeeded"
    stripe.post("refunds", payment_intent=intent)
    deliver(worker)
    work(worker, "payments")
    assert owner.one("select state from payments") == "refunded"


def test_an_external_refund_is_recorded_once(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.post("refunds", payment_intent=owner.one("select intent_id from payments"), amount=2500)
    deliver(worker)
    told = deliver(worker)
    for one in told:
        if one.type.startswith(("refund.", "charge.refund")):
            stripe.post("webhooks/twin", event=one.id)
    deliver(worker)
    work(worker, "payments")
    assert owner.rows("select state, amount, reason from refunds") == [
        ("succeeded", 2500, "external")
    ]
    owner.make_due()
    work(worker, "refunds")
    assert at_provider(stripe) == [2500]
    assert balance(owner, stay.id) == 2500


@pytest.mark.parametrize("reply_first", [True, False])
def test_c7_our_own_refund_is_booked_once(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, reply_first: bool
) -> None:
    if not reply_first:
        stripe.fault("do_then_drop", CREATE)
    ask(worker, cast, owner, 4000)
    deliver(worker)
    owner.make_due()
    work(worker, "payments", "refunds")
    assert rows(owner) == [("succeeded", 4000)]
    assert balance(owner, stay.id) == 4000
    assert mails(owner, "refund_sent") == 1


def test_c11_pending_is_neither_failure_nor_done(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.post("refunds/next", statuses=["pending"])
    said = ask(worker, cast, owner, 4000)
    assert isinstance(said, Applied)
    assert said.to == "pending"
    assert mails(owner, "refund_sent") == 0
    assert refundable(cast, owner) == 6000
    owner.make_due()
    work(worker, "refunds")
    assert rows(owner) == [("pending", 4000)]
    assert at_provider(stripe) == [4000]
    refund = owner.one("select provider_refund_id from refunds")
    stripe.post(f"refunds/{refund}", status="succeeded")
    deliver(worker)
    assert rows(owner) == [("succeeded", 4000)]
    assert mails(owner, "refund_sent") == 1
    assert balance(owner, stay.id) == 4000


def test_c11_a_refund_that_fails_later_is_owed_again(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    ask(worker, cast, owner, 10_000)
    assert owner.one("select state from payments") == "refunded"
    refund = owner.one("select provider_refund_id from refunds")
    stripe.post(f"refunds/{refund}", status="failed")
    deliver(worker)
    deliver(worker)
    assert rows(owner) == [("failed", 10_000)]
    assert owner.one("select state from payments") == "succeeded"
    assert (balance(owner, stay.id), refundable(cast, owner)) == (0, 10_000)
    assert (mails(owner, "refund_sent"), mails(owner, "refund_failed")) == (1, 1)


def test_c11_an_old_success_does_not_undo_a_failure(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    ask(worker, cast, owner, 4000)
    refund = owner.one("select provider_refund_id from refunds")
    stripe.post(f"refunds/{refund}", status="failed")
    told = [one for one in events(worker) if "refund" in one.type]
    receive(*told[::-1])
    work(worker, "inbox")
    for one in told:
        stripe.post("webhooks/twin", event=one.id)
    deliver(worker)
    assert rows(owner) == [("failed", 4000)]
    assert balance(owner, stay.id) == 0


def test_a_refund_event_of_another_amount_changes_nothing(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.post("refunds/next", statuses=["pending"])
    ask(worker, cast, owner, 4000)
    told = stripe.get(f"objects/{owner.one('select provider_refund_id from refunds')}")
    stripe.post(
        "webhooks/record",
        type="refund.updated",
        object={**told, "amount": 4001, "status": "succeeded"},
    )
    deliver(worker)
    assert rows(owner) == [("pending", 4000)]
    assert owner.one("select count(*) from dead_letters") == 1


def test_a_cancelled_stay_gives_the_card_its_money_back(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    assert isinstance(do(cast, stays.cancel, stay.id, 1, 1000), Applied)
    assert rows(owner) == [("asked", 9000)]
    work(worker, "refunds")
    deliver(worker)
    assert at_provider(stripe) == [9000]
    assert balance(owner, stay.id) == 0


def test_two_cuts_in_a_row_return_each_yen_once(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """The first refund has not been sent when the price falls again."""
    now = clock.now()
    for seen, hours, less in ((1, 5, -2000), (2, 4, -1000)):
        said = do(cast, stay_changes.change_times, stay.id, seen, now, now + hours * HOUR, less)
        assert isinstance(said, Applied)
    work(worker, "refunds")
    assert sum(at_provider(stripe)) == 3000
    assert balance(owner, stay.id) == 0
    assert isinstance(do(cast, stays.cancel, stay.id, 3), Applied)
    work(worker, "refunds")
    assert sum(at_provider(stripe)) == 10_000
    assert balance(owner, stay.id) == 0


def test_two_partial_refunds_heard_at_once_still_make_the_payment_refunded(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    stripe.post("refunds/next", statuses=["pending", "pending"])
    ask(worker, cast, owner, 4000)
    ask(worker, cast, owner, 6000)
    for (refund,) in owner.rows("select provider_refund_id from refunds"):
        stripe.post(f"refunds/{refund}", status="succeeded")
    receive(*events(worker))
    owner.run("update webhook_events set next_attempt_at = now() + interval '1 hour'")
    owner.run(
        "update webhook_events set next_attempt_at = now() where type = 'refund.updated'"
        " and convert_from(payload, 'utf8')::jsonb #>> '{data,object,status}' = 'succeeded'"
    )
    from portal.inbox import claim
    from portal.jobs import events as event_jobs
    from portal.jobs.applying import Applying

    token = uuid4()
    with cast.transaction(None) as tx:
        claimed = claim(tx, token)
    assert len(claimed) == 2
    at_once(
        app, *[lambda one=one: event_jobs.apply(worker, Applying(one, token)) for one in claimed]
    )  # type: ignore[misc]
    owner.make_due()
    work(worker, "inbox")
    assert owner.one("select state from payments") == "refunded"
    assert balance(owner, stay.id) == 10_000


def test_what_is_anothers_is_not_found(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    payment = owner.one("select id from payments")
    desk = worker.desk(cast.osaka.id)
    said = refunds.ask(desk, cast.tanaka.actor, payment, 1000, uuid4())
    assert said == Refused(Code.NOT_FOUND)
    assert rows(owner) == []
    assert json.dumps(at_provider(stripe)) == "[]"


@pytest.mark.parametrize("rest", [(4500, 4500), (1, 8999), (8999, 1)])
def test_c13_a_part_and_the_rest_in_two_steps_sum_exactly(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, rest: tuple[int, int]
) -> None:
    """No yen is made or lost on the way: here, at the provider, and in what may still go back."""
    left = 10_000
    for amount in (1000, *rest):
        assert isinstance(ask(worker, cast, owner, amount), Applied)
        left -= amount
        assert refundable(cast, owner) == left
    assert sorted(at_provider(stripe)) == sorted((1000, *rest))
    assert sum(at_provider(stripe)) == 10_000
    assert balance(owner, stay.id) == 10_000
    assert owner.one("select state from payments") == "refunded"
    assert ask(worker, cast, owner, 1) == Refused(Code.NOTHING_TO_REFUND)


def test_all_of_it_went_back_before_we_heard_that_it_came(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    """The dashboard returned everything, and its word overtakes that of the payment."""
    stay = cast.book(price=10_000)
    intent = opened(worker, cast, owner, stay)
    pay(stripe, intent)
    for amount in (4000, 6000):
        stripe.post("refunds", payment_intent=intent, amount=amount)
    told = {kind: [one for one in events(worker) if one.type == kind] for kind in TOLD}
    for kind in TOLD:
        receive(*told[kind])
        work(worker, "inbox")
    assert owner.rows("select state from payments") == [("refunded",)]
    assert rows(owner) == [("succeeded", 4000), ("succeeded", 6000)]
    assert balance(owner, stay.id) == 10_000
