"""Cash at the desk: in, and out again."""

from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal.jobs.house import House
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import cash, payments, stays
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.outside import Owner, at_once, deliver, pay, work
from tests.verbs.test_stays import balance, do


def take(cast: Cast, stay: UUID, amount: int, form: UUID | None = None) -> Outcome:
    return do(cast, cash.take, stay, amount, form or uuid4())


def hand_back(cast: Cast, stay: UUID, amount: int, form: UUID | None = None) -> Outcome:
    return do(cast, cash.hand_back, stay, amount, form or uuid4())


def test_cash_settles_the_stay(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    assert isinstance(take(cast, stay.id, 2500), Applied)
    assert isinstance(take(cast, stay.id, 3500), Applied)
    assert balance(owner, stay.id) == 0
    assert take(cast, stay.id, 1) == Noop(Code.NOTHING_DUE, subject=stay.id)


@pytest.mark.parametrize("amount", [0, -1, 6001, 10**12])
def test_impossible_amounts_are_refused(cast: Cast, owner: Owner, amount: int) -> None:
    stay = cast.book()
    said = take(cast, stay.id, amount)
    assert said == Refused(Code.CASH_EXCEEDS_DUE, {"amount": Money(6000, "JPY")})
    assert balance(owner, stay.id) == 6000


def test_h1_one_form_books_once(cast: Cast, owner: Owner) -> None:
    stay, form = cast.book(), uuid4()
    assert isinstance(take(cast, stay.id, 1000, form), Applied)
    assert take(cast, stay.id, 1000, form) == Noop(Code.CASH_ALREADY_BOOKED, subject=stay.id)
    assert balance(owner, stay.id) == 5000


def test_two_people_take_the_last_of_it_at_once(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = cast.book()
    said = at_once(app, *[lambda: take(cast, stay.id, 6000)] * 6)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.CASH_TAKEN] + [Code.NOTHING_DUE] * 5
    assert balance(owner, stay.id) == 0


def test_what_a_cancelled_guest_paid_in_cash_is_handed_back_once(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    stay = cast.book()
    take(cast, stay.id, 6000)
    do(cast, stays.cancel, stay.id, 1, 1000)
    said = at_once(app, *[lambda: hand_back(cast, stay.id, 5000)] * 4)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.CASH_EXCEEDS_OWED] * 3 + [Code.CASH_RETURNED]
    assert balance(owner, stay.id) == 0


@pytest.mark.parametrize("amount", [0, -1, 5001])
def test_no_more_than_is_owed_is_handed_back(cast: Cast, owner: Owner, amount: int) -> None:
    stay = cast.book()
    take(cast, stay.id, 6000)
    do(cast, stays.cancel, stay.id, 1, 1000)
    said = hand_back(cast, stay.id, amount)
    assert said == Refused(Code.CASH_EXCEEDS_OWED, {"amount": Money(5000, "JPY")})
    assert balance(owner, stay.id) == -5000


def test_nothing_is_handed_back_that_is_not_owed(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    take(cast, stay.id, 1000)
    said = hand_back(cast, stay.id, 1000)
    assert said == Refused(Code.CASH_EXCEEDS_OWED, {"amount": Money(0, "JPY")})


def test_money_that_goes_back_to_the_card_is_not_handed_out_as_well(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    """Card and cash for one bill: the surplus is on its way to the card."""
    stay = cast.book()
    desk = worker.desk(stay.facility_id)
    payments.open_payment(desk, cast.sato.actor, stay.id, "balance")
    pay(stripe, owner.one("select intent_id from payments"))
    assert isinstance(take(cast, stay.id, 6000), Applied)
    deliver(worker, "payment_intent.succeeded")
    assert balance(owner, stay.id) == -6000
    said = hand_back(cast, stay.id, 6000)
    assert said == Refused(Code.CASH_EXCEEDS_OWED, {"amount": Money(0, "JPY")})
    work(worker, "refunds")
    assert balance(owner, stay.id) == 0
    assert stripe.creates("refund") == 1


def test_another_facilitys_stay_is_not_found(cast: Cast, owner: Owner) -> None:
    theirs = cast.book(cast.osaka)
    assert take(cast, theirs.id, 100) == Refused(Code.NOT_FOUND)
    assert hand_back(cast, uuid4(), 100) == Refused(Code.NOT_FOUND)
    assert balance(owner, theirs.id) == 6000


def test_a_single_yen_goes_in_and_out(cast: Cast, owner: Owner) -> None:
    stay = cast.book(price=1)
    assert isinstance(take(cast, stay.id, 1), Applied)
    do(cast, stays.cancel, stay.id, 1)
    assert balance(owner, stay.id) == -1
    assert isinstance(hand_back(cast, stay.id, 1), Applied)
    assert balance(owner, stay.id) == 0


def test_what_came_in_as_cash_bounds_what_goes_out(cast: Cast, owner: Owner) -> None:
    """Owed 6000, of which 1000 came in as cash, and 400 of that went out again."""
    stay = cast.book()
    take(cast, stay.id, 1000)
    do(cast, stays.cancel, stay.id, 1)
    owner.run(
        "insert into ledger_lines (facility_id, stay_id, kind, amount, currency, actor_kind,"
        " actor_name, request_id, at) select facility_id, stay_id, 'charge_reversed', -5000,"
        " currency, actor_kind, actor_name, request_id, at from ledger_lines limit 1"
    )
    assert isinstance(hand_back(cast, stay.id, 400), Applied)
    assert hand_back(cast, stay.id, 601) == Refused(
        Code.CASH_EXCEEDS_OWED, {"amount": Money(600, "JPY")}
    )
    assert isinstance(hand_back(cast, stay.id, 600), Applied)


@pytest.mark.parametrize(
    ("state", "code"), [("processing", Code.PAYMENT_PENDING), ("unknown", Code.PAYMENT_UNKNOWN)]
)
def test_no_cash_is_taken_for_what_a_card_may_be_paying(
    cast: Cast, owner: Owner, state: str, code: Code
) -> None:
    stay = cast.book()
    owner.run("set session_replication_role = replica")
    owner.run(
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key)"
        " values (%s, 'reservation_balance', %s, %s, 1, 6000, 'JPY', %s, 'k')",
        stay.facility_id,
        stay.id,
        stay.id,
        state,
    )
    owner.run("set session_replication_role = origin")
    assert take(cast, stay.id, 6000) == Refused(code)
    assert balance(owner, stay.id) == 6000
