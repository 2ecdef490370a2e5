"""Differences of money: the provider is asked anew, and nothing is done on an old word."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal.edges.errors import Rejected
from portal.edges.payments.adapter import StripePayments
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Refused
from portal.verbs import divergences, money_differences
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.outside import Owner
from tests.verbs.books import another_writes, intent_there, put_payment, put_refund
from tests.verbs.test_differences import AGREED, OPEN, by_its_verb, ended, put, row_of


def unpaid(owner: Owner, stay: Booked, intent: str | None) -> UUID:
    """An open attempt of an hour ago."""
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    return put_payment(
        owner,
        stay,
        state="open",
        intent_id=intent,
        succeeded_at=None,
        created_at=an_hour_ago,
        next_read_at=an_hour_ago,
    )


def of_payment(cast: Cast, owner: Owner, worker: House, verb: Any, payment: UUID) -> Any:
    row = put(cast, owner, "payment_differs", payment, payment_id=payment)
    return by_its_verb(cast, worker, verb, row)


def its_records(owner: Owner, subject: UUID) -> list[tuple[Any, ...]]:
    return owner.rows(
        "select verb, event, from_state, to_state, actor_name from transitions"
        " where subject_id = %s order by id",
        subject,
    )


def test_a_payment_is_asked_after_by_the_person_who_asks(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(), None)
    said = of_payment(cast, owner, worker, money_differences.ask_payment, payment)
    assert said == Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment)
    assert its_records(owner, payment) == [
        ("resolve", "provider_canceled", "open", "canceled", cast.sato.name)
    ]


def test_an_attempt_at_an_intent_that_never_was_is_over(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(), "pi_never_was")
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    assert said == Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment)
    assert owner.row("select state, next_read_at from payments") == ("canceled", None)
    assert its_records(owner, payment) == [
        ("resolve", "provider_canceled", "open", "canceled", cast.sato.name)
    ]


def test_an_attempt_that_is_over_on_both_sides_is_no_difference_any_more(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    """The first press was cut off after the attempt was over, and is made again."""
    payment = put_payment(
        owner, cast.book(), state="canceled", intent_id="pi_never_was", succeeded_at=None
    )
    row = put(cast, owner, "payment_not_there", payment, payment_id=payment)
    said = divergences.resolve(worker.desk(cast.tokyo.id), cast.sato.actor, row)
    assert said == Noop(Code.PAYMENT_RESOLVED, subject=payment)
    assert (its_records(owner, payment), ended(owner, row)) == ([], AGREED)


@pytest.mark.parametrize("state", ["succeeded", "refund_owed", "refunded"])
def test_money_that_we_have_booked_is_not_unbooked_by_its_absence_there(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, state: str
) -> None:
    payment = put_payment(owner, cast.book(), state=state, intent_id="pi_never_was")
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    assert said == Refused(Code.PAYMENT_NOT_THERE)
    assert its_records(owner, payment) == []


def test_an_intent_that_is_there_after_all_is_heard(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(price=10_000), intent_there(stripe, paid=False))
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    # It bears no name of ours: heard, and believed in nothing.
    assert said == Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment)})
    assert its_records(owner, payment) == []


@pytest.mark.parametrize("change", ["state = 'processing'", "intent_id = 'pi_another'"])
def test_an_attempt_that_moved_while_the_provider_was_asked_is_not_given_up(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, change: str
) -> None:
    payment = unpaid(owner, cast.book(), "pi_never_was")
    row = put(cast, owner, "payment_not_there", payment, payment_id=payment)
    with another_writes(owner, f"update payments set {change} where id = %s", payment):
        said = by_its_verb(cast, worker, money_differences.ask_lost_payment, row)
    assert said == Refused(Code.PAYMENT_NOT_THERE)
    assert its_records(owner, payment) == []


def test_a_provider_that_refuses_for_another_reason_denies_nothing(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    """The key is another account's, or revoked."""
    payment = unpaid(owner, cast.book(), "pi_never_was")
    row = put(cast, owner, "payment_not_there", payment, payment_id=payment)
    wrong = StripePayments("another key", api_base=stripe.base)
    desk = replace(worker.desk(cast.tokyo.id), payments=wrong)
    with pytest.raises(Rejected):
        money_differences.ask_lost_payment(desk, cast.sato.actor, row_of(cast, row))
    said = divergences.resolve(desk, cast.sato.actor, row)
    assert said == Refused(Code.BILLING_UNAVAILABLE)
    assert (its_records(owner, payment), ended(owner, row)) == ([], OPEN)


@pytest.mark.parametrize("verb", ["ask_lost_payment", "hear_refunds", "ask_lost_refund"])
def test_what_has_no_payment_or_no_intent_is_not_found(
    cast: Cast, owner: Owner, worker: House, verb: str
) -> None:
    payment = unpaid(owner, cast.book(), None)
    refund = put_refund(owner, payment, "pending")
    act = getattr(money_differences, verb)
    for of in ({}, {"payment_id": payment}):
        row = put(cast, owner, "refund_not_there", refund, **of)
        assert by_its_verb(cast, worker, act, row) == Refused(Code.NOT_FOUND)
        owner.run("delete from divergences")


def test_each_refund_of_the_charge_is_heard(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    hear = money_differences.hear_refunds
    assert of_payment(cast, owner, worker, hear, payment) == Noop(
        Code.REFUND_RECORDED, subject=payment
    )
    owner.run("delete from divergences")
    for amount in (700, 800):
        stripe.post("refunds", payment_intent=intent, amount=amount)
    recorded = Applied(Code.REFUND_RECORDED, to="recorded", subject=payment)
    assert of_payment(cast, owner, worker, hear, payment) == recorded
    assert owner.rows("select state, amount, reason from refunds order by amount") == [
        ("succeeded", 700, "external"),
        ("succeeded", 800, "external"),
    ]


def test_of_several_refunds_one_that_does_not_agree_is_told(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refunds_there = [
        stripe.post("refunds", payment_intent=intent, amount=amount)["id"] for amount in (700, 800)
    ]
    refund = put_refund(owner, payment, "pending", 801, provider_refund_id=refunds_there[1])
    said = of_payment(cast, owner, worker, money_differences.hear_refunds, payment)
    assert said == Refused(Code.AMOUNT_MISMATCH, {"refund": str(refund)})
    assert owner.rows("select state, amount from refunds order by amount") == [
        ("succeeded", 700),
        ("pending", 801),
    ]


def ask_lost(cast: Cast, owner: Owner, worker: House, payment: UUID, refund: UUID) -> Any:
    row = put(cast, owner, "refund_not_there", refund, payment_id=payment)
    return by_its_verb(cast, worker, money_differences.ask_lost_refund, row)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_refund_that_is_there_under_another_id_takes_it(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, by_name: bool
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refund = put_refund(owner, payment, "pending", provider_refund_id="re_never_was")
    stripe.post("refunds", payment_intent=intent, amount=300)
    there = worker.providers.payments.create_refund(
        key=str(uuid4()),
        intent_id=intent,
        amount=1000,
        metadata={"refund_id": str(refund)} if by_name else {},
    )
    if not by_name:
        owner.run("update refunds set provider_refund_id = %s", there.id)
    said = ask_lost(cast, owner, worker, payment, refund)
    assert said == Applied(Code.REFUND_RECORDED, to="recorded", subject=payment)
    assert owner.rows("select id, state, provider_refund_id from refunds") == [
        (refund, "succeeded", there.id)
    ]


@pytest.mark.parametrize("state", ["pending", "succeeded"])
def test_a_refund_that_is_nowhere_has_failed_by_the_word_of_whom(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, state: str
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refund = put_refund(owner, payment, state, provider_refund_id="re_never_was")
    stripe.post("refunds", payment_intent=intent, amount=1000)
    said = ask_lost(cast, owner, worker, payment, refund)
    assert said == Applied(Code.REFUND_FAILED, to="failed", subject=refund)
    assert owner.rows("select state, failure, provider_refund_id from refunds") == [
        ("failed", "not_at_provider", "re_never_was")
    ]
    assert its_records(owner, refund) == [
        ("refund", "provider_failed", state, "failed", cast.sato.name)
    ]


def test_a_refund_of_no_row_is_not_found(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = put_payment(owner, cast.book())
    assert ask_lost(cast, owner, worker, payment, uuid4()) == Refused(Code.NOT_FOUND)
