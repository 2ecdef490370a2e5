"""What stays are sold as: made, changed, withdrawn, sold again; what is booked keeps its own."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal.db import SYSTEM
from portal.money import LARGEST, Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.cancellation import Step
from portal.policies.lodging_tax import Band
from portal.verbs import (
    cancellation_policies,
    cash,
    documents,
    kiosk,
    lodging_taxes,
    stay_changes,
    stay_plans,
    stays,
)
from portal.verbs.documents import Folio
from portal.verbs.guests import NewGuest
from portal.verbs.stay_plans import NewPlan, Terms
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, recorded
from tests.verbs.test_entrances import opened

TERMS = Terms("個室", "Private room", "lodging", "night", 8000, 2000, "standard", False)


def do(cast: Cast, verb: Any, *args: Any, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.suzuki.actor, *args)
        return said


def form(**changes: Any) -> NewPlan:
    return NewPlan(uuid4(), changes.pop("code", "private"), replace(TERMS, **changes))


def made(cast: Cast, **changes: Any) -> UUID:
    wanted = form(**changes)
    said = do(cast, stay_plans.create, wanted)
    assert isinstance(said, Applied), said
    assert said.subject is not None
    cast.tokyo.plans[wanted.code] = said.subject
    return said.subject


def change(cast: Cast, plan: UUID, seen: int = 1, **changes: Any) -> Outcome:
    return do(cast, stay_plans.change, plan, seen, replace(TERMS, **changes))


def money(amount: int) -> dict[str, Money]:
    return {"amount": Money(amount, "JPY")}


# --- create


def test_a_plan_is_made_and_booked(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    assert owner.row(
        "select code, name_ja, name_en, kind, unit, unit_price, deposit, tax_class, members_only,"
        " active, version from plans where id = %s",
        plan,
    ) == ("private", "個室", "Private room", "lodging", "night", 8000, 2000, "standard", False,
          True, 1)  # fmt: skip
    assert recorded(owner, plan) == [("created", None, "sold")]
    stay = cast.book(plan="private", price=8000)
    assert owner.row("select plan_id, tax_class, unit_price from stays where id = %s", stay.id) == (
        plan,
        "standard",
        8000,
    )


def test_one_form_is_one_plan(cast: Cast, inside: Flask, owner: Owner) -> None:
    wanted = form()
    first, again = (do(cast, stay_plans.create, wanted) for _ in range(2))
    assert isinstance(first, Applied)
    assert again == Noop(Code.PLAN_ALREADY_CREATED, subject=first.subject)
    assert owner.one("select count(*) from plans where code = 'private'") == 1


@pytest.mark.parametrize("same_form", [True, False])
def test_eight_at_once_are_one_plan(cast: Cast, app: Flask, owner: Owner, same_form: bool) -> None:
    _ = cast.suzuki
    wanted = [form()] * 8 if same_form else [form() for _ in range(8)]
    said = at_once(app, *[partial(do, cast, stay_plans.create, one) for one in wanted])
    assert [type(one) for one in said].count(Applied) == 1
    told = Code.PLAN_ALREADY_CREATED if same_form else Code.PLAN_CODE_TAKEN
    assert [one.code for one in said if isinstance(one, Noop | Refused)] == [told] * 7
    assert owner.one("select count(*) from plans where code = 'private'") == 1


def test_a_code_is_one_plans_in_its_house(cast: Cast, inside: Flask) -> None:
    made(cast)
    assert do(cast, stay_plans.create, form()) == Refused(Code.PLAN_CODE_TAKEN)
    assert isinstance(do(cast, stay_plans.create, form(), house=cast.osaka.id), Applied)


UNFIT = [
    ({"unit_price": -1}, Refused(Code.STAY_PLAN_AMOUNT_IMPOSSIBLE, money(LARGEST))),
    ({"deposit": -1}, Refused(Code.STAY_PLAN_AMOUNT_IMPOSSIBLE, money(LARGEST))),
    ({"unit_price": LARGEST + 1}, Refused(Code.STAY_PLAN_AMOUNT_IMPOSSIBLE, money(LARGEST))),
    ({"unit_price": 1, "deposit": 0}, Refused(Code.STAY_PLAN_BELOW_MINIMUM, money(1))),
    ({"unit_price": 49, "deposit": 0}, Refused(Code.STAY_PLAN_BELOW_MINIMUM, money(49))),
    ({"deposit": 49}, Refused(Code.STAY_PLAN_BELOW_MINIMUM, money(49))),
    ({"deposit": 8001}, Refused(Code.DEPOSIT_EXCEEDS_PRICE)),
    ({"unit_price": 0, "deposit": 50}, Refused(Code.DEPOSIT_EXCEEDS_PRICE)),
]


@pytest.mark.parametrize(("amounts", "told"), UNFIT)
def test_amounts_that_nobody_could_pay(
    cast: Cast, inside: Flask, amounts: dict[str, int], told: Refused
) -> None:
    assert do(cast, stay_plans.create, form(**amounts)) == told
    assert change(cast, made(cast, code="other"), **amounts) == told


@pytest.mark.parametrize(("price", "deposit"), [(0, 0), (50, 0), (50, 50), (LARGEST, LARGEST)])
def test_amounts_that_can_be_paid(cast: Cast, inside: Flask, price: int, deposit: int) -> None:
    made(cast, unit_price=price, deposit=deposit)


# --- change


def test_a_change_is_recorded_with_what_was_and_is(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    said = change(cast, plan, unit_price=9000, members_only=True)
    assert said == Applied(Code.STAY_PLAN_UPDATED, to="sold", subject=plan)
    assert owner.row("select unit_price, members_only, version from plans where id = %s", plan) == (
        9000,
        True,
        2,
    )
    told = owner.one("select reason from transitions where event = 'changed'")
    assert told == '{"unit_price": [8000, 9000], "members_only": [false, true]}'


def test_a_change_sent_twice_is_calm(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    change(cast, plan, unit_price=9000)
    assert change(cast, plan, unit_price=9000) == Noop(Code.PLAN_UNCHANGED, subject=plan)
    assert owner.one("select version from plans where id = %s", plan) == 2


def test_a_page_that_is_out_of_date_changes_nothing(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    plan = made(cast)
    change(cast, plan, unit_price=9000)
    for late in (change(cast, plan, unit_price=7000), do(cast, stay_plans.withdraw, plan, 1)):
        assert isinstance(late, Conflict)
        assert (late.code, late.current.state, late.current.version, late.current.by) == (
            Code.STALE_PAGE,
            "sold",
            2,
            "鈴木 愛",
        )
    assert owner.row("select unit_price, active from plans where id = %s", plan) == (9000, True)


def test_two_who_change_at_once_are_one_change(cast: Cast, app: Flask, owner: Owner) -> None:
    plan = made(cast)
    changes = [partial(change, cast, plan, unit_price=9000 + n) for n in range(4)]
    said = at_once(app, *changes)
    assert sorted(type(one).__name__ for one in said) == ["Applied", *["Conflict"] * 3]
    assert owner.one("select version from plans where id = %s", plan) == 2


@pytest.mark.parametrize("what", [{"kind": "day_use"}, {"unit": "visit"}])
def test_kind_and_unit_stay_once_a_stay_was_booked(
    cast: Cast, inside: Flask, owner: Owner, what: dict[str, str]
) -> None:
    """Whatever has become of the stay: its register and its tax hang on them."""
    plan = made(cast)
    assert isinstance(change(cast, plan, **what), Applied)
    assert isinstance(change(cast, plan, 2), Applied)
    stay = cast.book(plan="private")
    with cast.transaction(cast.tokyo.id) as tx:
        stays.cancel(tx, SYSTEM, stay.id, 1)
    assert change(cast, plan, 3, **what) == Refused(Code.STAY_PLAN_KIND_FIXED)
    assert isinstance(change(cast, plan, 3, unit_price=9000), Applied)
    assert owner.row("select kind, unit from plans where id = %s", plan) == ("lodging", "night")


def test_whoever_books_while_the_kind_is_changed_books_what_it_became(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    plan = made(cast, deposit=0)
    do(cast, lodging_taxes.write_table, date(2020, 1, 1), [Band(0, None, 200)], uuid4())
    with ThreadPoolExecutor() as pool:
        with cast.transaction(cast.tokyo.id) as tx:
            other = replace(TERMS, kind="day_use", deposit=0)
            stay_plans.change(tx, cast.suzuki.actor, plan, 1, other)
            booking = pool.submit(cast.book, plan="private")
            with pytest.raises(TimeoutError):
                booking.result(0.5)
        stay = booking.result(10)
    assert [kind for kind, _, _ in lines(owner, stay)] == ["charge"], "day use is not taxed"


# --- what is booked keeps its own


def lines(owner: Owner, stay: Booked) -> list[tuple[Any, ...]]:
    return owner.rows(
        "select kind, amount, tax_rate from ledger_lines where stay_id = %s order by id", stay.id
    )


def stated(owner: Owner, stay: Booked) -> list[Any]:
    return owner.rows("select stated, amount from documents where stay_id = %s", stay.id)


def issue(cast: Cast, stay: Booked) -> Outcome:
    return do(cast, documents.issue, Folio(stay_id=stay.id), "", uuid4())


def test_another_price_and_tax_are_for_the_next_booking(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    plan = made(cast)
    stay = cast.book(plan="private", price=8000)
    do(cast, cash.take, stay.id, 8000, uuid4())
    issue(cast, stay)
    account, receipt = lines(owner, stay), stated(owner, stay)
    assert isinstance(change(cast, plan, unit_price=9000, tax_class="reduced"), Applied)
    assert (lines(owner, stay), stated(owner, stay)) == (account, receipt)
    later = cast.book(plan="private", price=9000, space="A02")
    assert lines(owner, later) == [("charge", 9000, 8)]
    assert owner.one("select unit_price from stays where id = %s", later.id) == 9000


def test_what_is_charged_more_of_an_older_booking_has_its_own_tax(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    """And so what is given back of it: its receipts state one rate for one stay."""
    plan = made(cast)
    stay = cast.book(plan="private", price=8000)
    change(cast, plan, tax_class="untaxed")
    begins, ends = owner.row("select starts_at, ends_at from stays where id = %s", stay.id)
    day = timedelta(days=1)
    for seen, times, more in ((1, (begins, ends + day), 8000), (2, (begins, ends), -8000)):
        said = do(cast, stay_changes.change_times, stay.id, seen, *times, more)
        assert isinstance(said, Applied), said
    assert {rate for _, _, rate in lines(owner, stay)} == {10}


# --- on sale or not


def test_what_is_withdrawn_is_not_booked_and_what_is_booked_stays(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    plan = made(cast, members_only=False)
    stay = cast.book(plan="private", price=0)
    said = do(cast, stay_plans.withdraw, plan, 1)
    assert said == Applied(Code.STAY_PLAN_WITHDRAWN, to="withdrawn", subject=plan)
    assert do(cast, stay_plans.withdraw, plan, 1) == Noop(
        Code.STAY_PLAN_ALREADY_WITHDRAWN, subject=plan
    )
    with pytest.raises(AssertionError, match="STAY_PLAN_NOT_ON_SALE"):
        cast.book(plan="private", space="A02")
    assert owner.one("select count(*) from stays") == 1
    assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)


def test_a_tablet_sells_nothing_that_is_withdrawn(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    doors = frozenset(cast.tokyo.doors.values())
    way = opened(cast, plans=frozenset({plan}), doors=doors, week=None)
    do(cast, stay_plans.withdraw, plan, 1)
    wanted = kiosk.WalkIn(uuid4(), NewGuest(**cast.hanako), plan)
    said = do(cast, kiosk.walk_in, way, "a token of a tablet", wanted)
    assert said == Refused(Code.STAY_PLAN_NOT_ON_SALE)
    assert owner.one("select count(*) from stays") == 0


def test_it_is_sold_again(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    assert do(cast, stay_plans.sell_again, plan, 1) == Noop(
        Code.STAY_PLAN_ALREADY_SOLD, subject=plan
    )
    do(cast, stay_plans.withdraw, plan, 1)
    said = do(cast, stay_plans.sell_again, plan, 1)
    assert isinstance(said, Conflict)
    assert said.current.state == "withdrawn"
    said = do(cast, stay_plans.sell_again, plan, 2)
    assert said == Applied(Code.STAY_PLAN_SOLD_AGAIN, to="sold", subject=plan)
    cast.book(plan="private")
    assert recorded(owner, plan) == [
        ("created", None, "sold"),
        ("withdrawn", "sold", "withdrawn"),
        ("sold_again", "withdrawn", "sold"),
    ]


def test_what_is_withdrawn_can_be_changed(cast: Cast, inside: Flask) -> None:
    plan = made(cast)
    do(cast, stay_plans.withdraw, plan, 1)
    assert change(cast, plan, 2, unit_price=9000) == Applied(
        Code.STAY_PLAN_UPDATED, to="withdrawn", subject=plan
    )


def test_members_only_holds_at_the_gate_for_what_is_booked(cast: Cast, inside: Flask) -> None:
    plan = made(cast)
    stay = cast.book(plan="private", price=0)
    change(cast, plan, members_only=True)
    assert do(cast, stays.admit, stay.id, 1) == Refused(Code.MEMBERS_ONLY_PLAN)
    with pytest.raises(AssertionError, match="MEMBERS_ONLY_PLAN"):
        cast.book(plan="private", space="A02")


def test_a_chosen_policy_is_recorded_as_it_stands(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    do(cast, stay_plans.withdraw, plan, 1)
    terms = cancellation_policies.Terms("標準", "Standard", [Step(24, 50, False)])
    policy = do(cast, cancellation_policies.create, cancellation_policies.NewPolicy(uuid4(), terms))
    assert isinstance(policy, Applied)
    said = do(cast, cancellation_policies.choose, plan, None, policy.subject)
    assert said == Applied(Code.POLICY_CHOSEN, to="withdrawn", subject=plan)
    late = do(cast, cancellation_policies.choose, plan, uuid4(), None)
    assert isinstance(late, Conflict)
    assert (late.current.state, late.current.version) == ("withdrawn", 2)
    assert recorded(owner, plan)[-1] == ("changed", "withdrawn", "withdrawn")


@pytest.mark.parametrize("verb", [stay_plans.withdraw, stay_plans.sell_again])
def test_another_houses_plan_does_not_exist(cast: Cast, inside: Flask, verb: Any) -> None:
    plan, osaka = made(cast), cast.osaka.id
    assert do(cast, verb, plan, 1, house=osaka) == Refused(Code.NOT_FOUND)
    assert do(cast, stay_plans.change, plan, 1, TERMS, house=osaka) == Refused(Code.NOT_FOUND)
