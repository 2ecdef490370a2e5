"""Disputes: the bank takes a payment back and may give it up; our books say so, in every order."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask

from portal import clock
from portal.jobs.house import House
from portal.models import Payment
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.queries import attention
from portal.queries import payments as listed
from portal.verbs import cash, disputes, refunds_owed, stays
from sandbox.stripe.testing import StandIn
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, deliver, events, receive, work
from tests.verbs.test_refunds import ask, at_provider, refundable, stay
from tests.verbs.test_stays import balance, do

__all__ = ["stay"]


def dispute(stripe: StandIn, owner: Owner, **more: Any) -> str:
    intent = owner.one("select intent_id from payments")
    return str(stripe.post("disputes", payment_intent=intent, **more)["id"])


def close(stripe: StandIn, dispute_id: str, status: str) -> None:
    stripe.post(f"disputes/{dispute_id}/close", status=status)


def folio(owner: Owner) -> list[tuple[str, int]]:
    return owner.rows(
        "select kind, amount from ledger_lines where kind like 'chargeback%%' order by id"
    )


def ask_after(worker: House, cast: Cast, owner: Owner) -> Outcome:
    house, payment = owner.row("select facility_id, id from payments")
    return disputes.ask(worker.desk(house), cast.sato.actor, payment)


def test_c10_dispute_and_refund_are_not_both_deducted(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    assert isinstance(ask(worker, cast, owner, 4000), Applied)
    opened = dispute(stripe, owner)
    deliver(worker)
    assert owner.row("select amount, status from disputes") == (6000, "needs_response")
    assert refundable(cast, owner) == 0
    calls = len(stripe.calls("/v1/refunds"))
    assert ask(worker, cast, owner, 6000) == Refused(Code.PAYMENT_DISPUTED)
    assert len(stripe.calls("/v1/refunds")) == calls, "refused without asking the provider"
    close(stripe, opened, "won")
    deliver(worker)
    assert refundable(cast, owner) == 6000
    assert isinstance(ask(worker, cast, owner, 6000), Applied)
    assert at_provider(stripe) == [4000, 6000]
    assert folio(owner) == [("chargeback", 6000), ("chargeback_reversed", -6000)]
    assert balance(owner, stay.id) == 10_000, "price less payment, and all of it is back"


def test_c10_a_lost_dispute_leaves_nothing_to_return(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    opened = dispute(stripe, owner)
    close(stripe, opened, "lost")
    deliver(worker)
    assert folio(owner) == [("chargeback", 10_000)]
    assert (balance(owner, stay.id), refundable(cast, owner)) == (10_000, 0)
    assert ask(worker, cast, owner, 1) == Refused(Code.PAYMENT_DISPUTED)


def test_what_the_bank_has_is_not_owed_by_the_house_as_well(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """The stay is cancelled meanwhile: the guest has the money from the bank."""
    opened = dispute(stripe, owner)
    deliver(worker)
    do(cast, stays.cancel, stay.id, 1)
    work(worker, "refunds")
    assert (at_provider(stripe), balance(owner, stay.id)) == ([], 0)
    close(stripe, opened, "won")
    deliver(worker)
    work(worker, "refunds")
    deliver(worker)
    assert at_provider(stripe) == [10_000], "given back to the house, it is the guest's"
    assert balance(owner, stay.id) == 0


def test_who_paid_twice_gets_the_second_back(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    """Paid anew in cash while the bank had the first; then the house wins."""
    opened = dispute(stripe, owner)
    deliver(worker)
    assert isinstance(do(cast, cash.take, stay.id, 10_000, uuid4()), Applied)
    close(stripe, opened, "won")
    deliver(worker)
    work(worker, "refunds")
    deliver(worker)
    assert (at_provider(stripe), balance(owner, stay.id)) == ([10_000], 0)


@pytest.mark.parametrize("status", ["won", "lost"])
def test_every_order_of_its_events_comes_to_the_same(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, status: str
) -> None:
    """Doubled, and with any of them never delivered: only the last word counts."""
    opened = dispute(stripe, owner)
    close(stripe, opened, status)
    told = [one for one in events(worker) if one.type.startswith("charge.dispute")]
    assert len(told) == (4 if status == "won" else 3)
    for order in permutations(told):
        owner.run("delete from ledger_lines where dispute_id is not null")
        owner.run("delete from disputes")
        owner.run("delete from webhook_events where type like 'charge.dispute%%'")
        receive(*order)
        work(worker, "inbox")
        receive(*(_twin(one) for one in order))
        work(worker, "inbox")
        assert owner.rows("select status, refundable from disputes") == [(status, status == "won")]
        assert sum(amount for _, amount in folio(owner)) == (0 if status == "won" else 10_000)


def _twin(event: Any) -> Any:
    payload = {**event.payload, "id": f"evt_{uuid4().hex}"}
    return replace(event, id=payload["id"], payload=payload, raw=json.dumps(payload).encode())


def test_eight_words_at_once_book_once(
    cast: Cast, worker: House, app: Flask, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    dispute(stripe, owner)
    said = at_once(app, *[lambda: ask_after(worker, cast, owner)] * 8)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.DISPUTE_ALREADY_RECORDED] * 7 + [Code.DISPUTE_RECORDED]
    assert folio(owner) == [("chargeback", 10_000)]


def test_a_question_of_the_bank_moves_no_money(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    told = _told(worker, stripe, owner)
    for status in ("warning_needs_response", "warning_under_review"):
        assert isinstance(_hear(cast, owner, told, status=status, refundable=True), Applied)
    assert (folio(owner), refundable(cast, owner)) == ([], 10_000)
    assert isinstance(_hear(cast, owner, told, status="needs_response"), Applied)
    assert (folio(owner), refundable(cast, owner)) == ([("chargeback", 10_000)], 0)
    assert isinstance(_hear(cast, owner, told, status="warning_closed"), Applied)
    assert isinstance(_hear(cast, owner, told, status="won"), Noop), "what is decided stays so"


def _told(worker: House, stripe: StandIn, owner: Owner) -> Any:
    intent = owner.one("select intent_id from payments")
    dispute(stripe, owner)
    (told,) = worker.providers.payments.disputes_of(intent)
    return told


def _hear(cast: Cast, owner: Owner, told: Any, **more: Any) -> Outcome:
    with cast.transaction(cast.tokyo.id) as tx:
        payment = owner.one("select id from payments")
        return disputes.hear(tx, payment, replace(told, **more))


@pytest.mark.parametrize("wrong", [{"amount": 10_001}, {"amount": 0}, {"currency": "USD"}])
def test_money_that_does_not_agree_is_a_persons_matter(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked, wrong: dict[str, Any]
) -> None:
    said = _hear(cast, owner, _told(worker, stripe, owner), **wrong)
    assert isinstance(said, Refused)
    assert said.code == Code.AMOUNT_MISMATCH
    assert owner.rows("select 1 from disputes") == []


def test_it_waits_for_a_person_until_it_is_decided(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    opened = dispute(stripe, owner)
    deliver(worker)
    with cast.transaction(cast.tokyo.id) as tx:
        [one] = attention.look(tx, clock.now()).disputes
        assert (one.amount, one.guest, one.status) == (10_000, "山田 花子", "needs_response")
        assert one.answer_by > clock.now() + timedelta(days=5)
        page = listed.load(tx, owner.one("select id from payments"))
        assert page is not None
        assert (page.disputed, page.refundable) == (True, 0)
    close(stripe, opened, "lost")
    deliver(worker)
    with cast.transaction(cast.tokyo.id) as tx:
        assert attention.look(tx, clock.now()).disputes == []


def test_the_provider_is_asked_and_may_be_away(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    assert ask_after(worker, cast, owner) == Noop(
        Code.DISPUTE_ALREADY_RECORDED, subject=owner.one("select id from payments")
    )
    dispute(stripe, owner)
    stripe.post("down", down=True)
    assert ask_after(worker, cast, owner) == Refused(Code.BILLING_UNAVAILABLE)
    stripe.post("down", down=False)
    with statements() as said:
        assert isinstance(ask_after(worker, cast, owner), Applied)
    assert len(said) <= 10, said


def test_another_houses_payment_is_not_there(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked
) -> None:
    desk, payment = worker.desk(cast.osaka.id), owner.one("select id from payments")
    assert disputes.ask(desk, cast.tanaka.actor, payment) == Refused(Code.NOT_FOUND)
    with cast.transaction(cast.osaka.id) as tx:
        assert not refunds_owed.disputed(tx, payment)
        assert tx.get(Payment, payment) is None
