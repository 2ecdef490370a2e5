"""Cancellation policies, and what a guest's own cancellation does by them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.cancellation import Step
from portal.verbs import cancellation_policies, cash, stay_changes, stays
from portal.verbs.cancellation_policies import NewPolicy, Terms
from sandbox.watch import statements
from tests.cast import GUEST, Booked, Cast
from tests.outside import Owner, at_once, recorded

HOUR = timedelta(hours=1)
TERMS = Terms("標準", "Standard", [Step(72, 30, True), Step(24, 50, False), Step(0, 100, False)])


def do(cast: Cast, verb: Any, *args: Any, house: UUID | None = None, **more: Any) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.suzuki.actor, *args, **more)
        return said


def made(cast: Cast, terms: Terms = TERMS, plan: str | None = "night") -> UUID:
    said = do(cast, cancellation_policies.create, NewPolicy(uuid4(), terms))
    assert isinstance(said, Applied), said
    assert said.subject is not None
    if plan:
        do(cast, cancellation_policies.choose, cast.tokyo.plans[plan], None, said.subject)
    return said.subject


def booked(cast: Cast, hours: float = 48, price: int = 9999, **more: Any) -> Booked:
    return cast.book(starts_at=clock.now() + hours * HOUR, price=price, plan="night", **more)


def leave(cast: Cast, stay: Booked, fee: int, returns: bool, seen: int = 1) -> Outcome:
    """The guest's own press, for what the page said."""
    with cast.transaction(stay.facility_id) as tx:
        return stays.cancel_as_agreed(tx, GUEST, stay.id, seen, fee, returns=returns)


def later(instant: datetime) -> None:
    clock.set_source(lambda: instant)


def folio(owner: Owner, stay: Booked) -> list[tuple[str, int]]:
    return owner.rows(
        "select kind, amount::int from ledger_lines where stay_id = %s order by id", stay.id
    )


# Policies ---------------------------------------------------------------------------------------


def test_a_policy_is_made_with_its_steps_and_told(cast: Cast, owner: Owner) -> None:
    policy = made(cast, plan=None)
    assert recorded(owner, policy) == [("created", None, "kept")]
    assert owner.rows(
        "select hours_before, fee_percent, returns_quota from cancellation_steps order by id"
    ) == [(72, 30, True), (24, 50, False), (0, 100, False)]


def test_h1_one_form_is_one_policy_however_often_it_is_sent(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    form = NewPolicy(uuid4(), TERMS)
    _ = cast.suzuki
    said = at_once(app, *[lambda: do(cast, cancellation_policies.create, form)] * 6)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.POLICY_ALREADY_CREATED] * 5 + [Code.POLICY_CREATED]
    assert owner.one("select count(*) from cancellation_policies") == 1
    assert owner.one("select count(*) from cancellation_steps") == 3


@pytest.mark.parametrize(
    "steps",
    [[], [Step(24, 50, True), Step(24, 60, True)], [Step(1, 101, True)], [Step(1, -1, True)]],
)
def test_steps_that_cannot_stand(cast: Cast, owner: Owner, steps: list[Step]) -> None:
    said = do(cast, cancellation_policies.create, NewPolicy(uuid4(), replace(TERMS, steps=steps)))
    assert said == Refused(Code.POLICY_STEPS_UNSOUND)
    policy = made(cast)
    changed = do(cast, cancellation_policies.change, policy, 1, replace(TERMS, steps=steps))
    assert changed == Refused(Code.POLICY_STEPS_UNSOUND)
    assert owner.one("select count(*) from cancellation_terms") == 1


def test_a_change_is_a_new_version_and_the_old_one_stays(cast: Cast, owner: Owner) -> None:
    policy = made(cast)
    said = do(cast, cancellation_policies.change, policy, 1, replace(TERMS, name_en="Strict"))
    assert isinstance(said, Applied)
    assert owner.rows("select version, name_en from cancellation_terms order by version") == [
        (1, "Standard"),
        (2, "Strict"),
    ]
    same = do(cast, cancellation_policies.change, policy, 1, replace(TERMS, name_en="Strict"))
    assert same == Noop(Code.POLICY_UNCHANGED, subject=policy)


def test_h7_a_policy_that_changed_meanwhile_is_not_overwritten(cast: Cast, owner: Owner) -> None:
    policy = made(cast)
    do(cast, cancellation_policies.change, policy, 1, replace(TERMS, name_en="Strict"))
    said = do(cast, cancellation_policies.change, policy, 1, replace(TERMS, name_en="Mild"))
    assert isinstance(said, Conflict)
    assert (said.code, said.current.version) == (Code.STALE_PAGE, 2)
    assert owner.one("select count(*) from cancellation_terms") == 2


def test_h7_a_plans_choice_that_changed_meanwhile(cast: Cast, owner: Owner) -> None:
    first, second, plan = made(cast), made(cast, plan=None), cast.tokyo.plans["night"]
    said = do(cast, cancellation_policies.choose, plan, None, second)
    assert isinstance(said, Conflict)
    assert said.code == Code.STALE_PAGE
    assert do(cast, cancellation_policies.choose, plan, first, first) == Noop(
        Code.POLICY_UNCHANGED, subject=plan
    )
    assert isinstance(do(cast, cancellation_policies.choose, plan, first, None), Applied)
    assert owner.one("select count(*) from plans where cancellation_policy_id is not null") == 0


def test_i10_another_houses_policy_and_plan_do_not_exist(cast: Cast) -> None:
    theirs, plan = cast.policy(house=cast.osaka), cast.tokyo.plans["night"]
    assert do(cast, cancellation_policies.change, theirs, 1, TERMS) == Refused(Code.NOT_FOUND)
    assert do(cast, cancellation_policies.choose, plan, None, theirs) == Refused(Code.NOT_FOUND)
    there = cast.osaka.plans["visit"]
    assert do(cast, cancellation_policies.choose, there, None, made(cast)) == (
        Refused(Code.NOT_FOUND)
    )


# By the guest -----------------------------------------------------------------------------------


def test_what_was_agreed_to_when_booking_is_what_counts_later(cast: Cast, owner: Owner) -> None:
    policy = made(cast)
    stay = booked(cast)
    dear = replace(TERMS, steps=[Step(500, 100, False)])
    do(cast, cancellation_policies.change, policy, 1, dear)
    after = booked(cast, space="A02")
    assert leave(cast, stay, 2999, True) == Applied(Code.STAY_CANCELLED, "cancelled", stay.id)
    assert folio(owner, stay) == [("charge", 9999), ("charge_reversed", -9999), ("fee", 2999)]
    assert leave(cast, after, 2999, True) == Refused(
        Code.CANCELLATION_CHANGED, {"amount": Money(9999, "JPY")}
    )


def test_fee_and_what_goes_back_are_the_price(cast: Cast, owner: Owner) -> None:
    made(cast)
    stay = booked(cast)
    do(cast, cash.take, stay.id, 9999, uuid4())
    assert isinstance(leave(cast, stay, 2999, True), Applied)
    assert sum(amount for _, amount in folio(owner, stay)) == -7000


def test_h1_two_presses_are_one_cancellation(cast: Cast, app: Flask, owner: Owner) -> None:
    made(cast)
    stay = booked(cast)
    said = at_once(app, *[lambda: leave(cast, stay, 2999, True)] * 6)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.STAY_ALREADY_CANCELLED] * 5 + [Code.STAY_CANCELLED]
    assert folio(owner, stay) == [("charge", 9999), ("charge_reversed", -9999), ("fee", 2999)]


def test_h7_a_step_that_began_meanwhile_is_told_and_not_taken(cast: Cast, owner: Owner) -> None:
    made(cast)
    stay = booked(cast)
    later(clock.now() + 24 * HOUR)
    said = leave(cast, stay, 2999, True)
    assert said == Refused(Code.CANCELLATION_CHANGED, {"amount": Money(4999, "JPY")})
    assert folio(owner, stay) == [("charge", 9999)]
    assert isinstance(leave(cast, stay, 4999, False), Applied)


@pytest.mark.parametrize("fee", [0, 2998, 3000, 9999, -1])
def test_another_fee_than_the_terms_ask_is_never_taken(cast: Cast, owner: Owner, fee: int) -> None:
    made(cast)
    stay = booked(cast)
    assert leave(cast, stay, fee, True) == Refused(
        Code.CANCELLATION_CHANGED, {"amount": Money(2999, "JPY")}
    )
    assert leave(cast, stay, 2999, False).code == Code.CANCELLATION_CHANGED
    assert folio(owner, stay) == [("charge", 9999)]


def test_h7_a_stay_that_changed_meanwhile(cast: Cast) -> None:
    made(cast)
    stay = booked(cast)
    do(cast, stay_changes.move_to, stay.id, 1, cast.tokyo.spaces["A02"])
    said = leave(cast, stay, 2999, True)
    assert isinstance(said, Conflict)
    assert said.code == Code.STALE_PAGE


def test_from_arrival_on_it_is_the_desks(cast: Cast, owner: Owner) -> None:
    """A no-show as well: its guest cannot cancel any more, and the desk can."""
    made(cast)
    stay = booked(cast)
    begins = owner.one("select starts_at from stays where id = %s", stay.id)
    later(begins)
    late = Refused(Code.CANCELLATION_TOO_LATE, {"starts_at": begins})
    assert leave(cast, stay, 9999, False) == late
    assert isinstance(do(cast, stays.mark_no_show, stay.id, 1), Applied)
    assert leave(cast, stay, 9999, False, seen=2) == late
    assert isinstance(do(cast, stays.cancel, stay.id, 2, 9999), Applied)
    assert sum(amount for _, amount in folio(owner, stay)) == 9999


def test_without_terms_the_desk_decides(cast: Cast, owner: Owner) -> None:
    stay = booked(cast)
    assert leave(cast, stay, 0, True) == Refused(Code.CANCELLATION_AT_DESK)
    assert isinstance(do(cast, stays.cancel, stay.id, 1, 1000), Applied)


def test_a_guest_cancels_in_at_most_ten_statements(cast: Cast, inside: Flask) -> None:
    made(cast)
    stay = booked(cast)
    with statements() as said:
        assert isinstance(leave(cast, stay, 2999, True), Applied)
    assert 0 < len(said) <= 10, said
