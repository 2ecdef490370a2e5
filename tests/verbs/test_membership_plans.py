"""What can be joined: offered, changed, retired; and what becomes of its memberships."""

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.jobs import drain
from portal.jobs import memberships as job
from portal.jobs.house import House
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import membership_plans, memberships
from portal.verbs.membership_end import Ending, end_membership
from portal.verbs.membership_plans import NewPlan, Terms
from sandbox.mail import MailSink
from sandbox.watch import statements
from tests.cast import Cast, Joined
from tests.machines.test_tables import put
from tests.outside import Owner, at_once, recorded, work

TERMS = Terms(
    "朝会員", "Morning", 5000, "month", "desk", 8, "朝だけです。", "Mornings only.", "2026-11"
)


def do(cast: Cast, verb: Any, *args: Any, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.suzuki.actor, *args)
        return said


def form(**changes: Any) -> NewPlan:
    return NewPlan(uuid4(), changes.pop("code", "morning"), replace(TERMS, **changes))


def made(cast: Cast, **changes: Any) -> UUID:
    said = do(cast, membership_plans.create, form(**changes))
    assert isinstance(said, Applied), said
    assert said.subject is not None
    return said.subject


def retire(cast: Cast, plan: UUID, seen: int = 1) -> Outcome:
    return do(cast, membership_plans.retire, plan, seen)


def stands(owner: Owner, joined: Joined) -> str:
    return str(owner.one("select state from memberships where id = %s", joined.id))


def others(cast: Cast, number: int) -> dict[str, Any]:
    return {**cast.hanako, "email": f"{number}@guest.example"}


# --- create


def test_a_plan_is_offered_and_joined(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    assert owner.row(
        "select code, name_ja, price, billed_every, billing, monthly_quota, terms_version, sold,"
        " retired_at, version from membership_plans"
    ) == ("morning", "朝会員", 5000, "month", "desk", 8, "2026-11", True, None, 1)
    assert recorded(owner, plan) == [("created", None, "sold")]
    assert stands(owner, cast.apply(plan)) == "applying"


def test_one_form_is_one_plan(cast: Cast, inside: Flask, owner: Owner) -> None:
    wanted = form()
    first, again = (do(cast, membership_plans.create, wanted) for _ in range(2))
    assert isinstance(first, Applied)
    assert again == Noop(Code.PLAN_ALREADY_CREATED, subject=first.subject)
    assert owner.one("select count(*) from membership_plans") == 1


@pytest.mark.parametrize("same_form", [True, False])
def test_eight_at_once_are_one_plan(cast: Cast, app: Flask, owner: Owner, same_form: bool) -> None:
    _ = cast.suzuki
    wanted = [form()] * 8 if same_form else [form() for _ in range(8)]
    said = at_once(app, *[partial(do, cast, membership_plans.create, one) for one in wanted])
    assert [type(one) for one in said].count(Applied) == 1
    told = Code.PLAN_ALREADY_CREATED if same_form else Code.PLAN_CODE_TAKEN
    assert [one.code for one in said if isinstance(one, Noop | Refused)] == [told] * 7
    assert owner.one("select count(*) from membership_plans") == 1


def test_a_code_is_one_plans_in_its_house(cast: Cast, inside: Flask) -> None:
    made(cast)
    assert do(cast, membership_plans.create, form()) == Refused(Code.PLAN_CODE_TAKEN)
    said = do(cast, membership_plans.create, form(), house=cast.osaka.id)
    assert isinstance(said, Applied)


@pytest.mark.parametrize(("price", "taken"), [(0, False), (49, False), (50, True)])
def test_a_card_takes_no_price_below_its_least(
    cast: Cast, inside: Flask, price: int, taken: bool
) -> None:
    said = do(cast, membership_plans.create, form(billing="card", price=price))
    if taken:
        assert isinstance(said, Applied)
    else:
        money = {"amount": Money(price, "JPY")}
        assert said == Refused(Code.PLAN_PRICE_BELOW_MINIMUM, money)
    assert isinstance(do(cast, membership_plans.create, form(code="desk", price=price)), Applied)


# --- change


def test_a_change_is_for_the_next_application(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    joined = cast.join(plan)
    said = do(
        cast, membership_plans.change, plan, 1, replace(TERMS, price=6000, monthly_quota=None)
    )
    assert said == Applied(Code.PLAN_UPDATED, to="sold", subject=plan)
    assert owner.row("select price, monthly_quota, version from membership_plans") == (
        6000,
        None,
        2,
    )
    kept = owner.row("select price, monthly_quota from memberships where id = %s", joined.id)
    assert kept == (5000, 8)
    told = owner.one("select reason from transitions where event = 'changed'")
    assert told == '{"price": [5000, 6000], "monthly_quota": [8, null]}'


def test_a_change_sent_twice_is_calm(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan, wanted = made(cast), replace(TERMS, price=6000)
    do(cast, membership_plans.change, plan, 1, wanted)
    again = do(cast, membership_plans.change, plan, 1, wanted)
    assert again == Noop(Code.PLAN_UNCHANGED, subject=plan)
    assert owner.one("select version from membership_plans") == 2


def test_a_page_that_is_out_of_date_changes_nothing(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    plan = made(cast)
    do(cast, membership_plans.change, plan, 1, replace(TERMS, price=6000))
    for verb, args in (
        (membership_plans.change, (1, replace(TERMS, price=7000))),
        (membership_plans.retire, (1,)),
    ):
        late = do(cast, verb, plan, *args)
        assert isinstance(late, Conflict)
        assert (late.code, late.current.state, late.current.version, late.current.by) == (
            Code.STALE_PAGE,
            "sold",
            2,
            "鈴木 愛",
        )
    assert owner.row("select price, retired_at from membership_plans") == (6000, None)


def test_two_who_change_at_once_are_one_change(cast: Cast, app: Flask, owner: Owner) -> None:
    plan = made(cast)
    wanted = [replace(TERMS, price=6000 + n) for n in range(4)]
    said = at_once(
        app, *[partial(do, cast, membership_plans.change, plan, 1, one) for one in wanted]
    )
    assert sorted(type(one).__name__ for one in said) == ["Applied", *["Conflict"] * 3]
    assert owner.one("select version from membership_plans") == 2


def test_other_terms_have_another_version(cast: Cast, inside: Flask) -> None:
    plan, others = made(cast), replace(TERMS, terms_en="Evenings too.")
    assert do(cast, membership_plans.change, plan, 1, others) == Refused(Code.TERMS_VERSION_KEPT)
    named = replace(others, terms_version="2027-01")
    assert isinstance(do(cast, membership_plans.change, plan, 1, named), Applied)


def test_a_card_is_not_chosen_for_a_price_that_it_does_not_take(cast: Cast, inside: Flask) -> None:
    plan, wanted = made(cast), replace(TERMS, billing="card", price=30)
    said = do(cast, membership_plans.change, plan, 1, wanted)
    assert said == Refused(Code.PLAN_PRICE_BELOW_MINIMUM, {"amount": Money(30, "JPY")})


def test_what_is_retired_is_not_changed(cast: Cast, inside: Flask) -> None:
    plan = made(cast)
    retire(cast, plan)
    said = do(cast, membership_plans.change, plan, 2, replace(TERMS, price=1))
    assert said == Refused(Code.PLAN_NOT_SOLD)


# --- retire


def test_who_retires_a_plan_stops_its_sale(cast: Cast, inside: Flask, owner: Owner) -> None:
    plan = made(cast)
    assert retire(cast, plan) == Applied(Code.PLAN_NOW_RETIRED, to="retired", subject=plan)
    assert owner.row("select sold, retired_at <= now(), version from membership_plans") == (
        False,
        True,
        2,
    )
    assert recorded(owner, plan)[-1] == ("retired", "sold", "retired")
    assert retire(cast, plan) == Noop(Code.PLAN_ALREADY_RETIRED, subject=plan)
    wanted = memberships.Application(
        uuid4(), plan, 2, memberships.NewGuest(**cast.hanako), {"price": 1}
    )
    assert do(cast, memberships.apply, wanted) == Refused(Code.PLAN_NOT_IN_CONFIG)


@pytest.mark.parametrize(
    ("verb", "args"), [(membership_plans.change, (1, TERMS)), (membership_plans.retire, (1,))]
)
def test_another_houses_plan_is_not_there(
    cast: Cast, inside: Flask, verb: Any, args: tuple[Any, ...]
) -> None:
    plan = made(cast)
    assert do(cast, verb, plan, *args, house=cast.osaka.id) == Refused(Code.NOT_FOUND)
    assert do(cast, verb, uuid4(), *args) == Refused(Code.NOT_FOUND)


def test_each_needs_few_statements(cast: Cast, inside: Flask) -> None:
    wanted, _ = form(), cast.suzuki
    with statements() as said:
        plan = do(cast, membership_plans.create, wanted)
    assert len(said) <= 4, said
    assert isinstance(plan, Applied)
    with statements() as said:
        do(cast, membership_plans.change, plan.subject, 1, replace(TERMS, price=1))
    assert len(said) <= 4, said
    with statements() as said:
        do(cast, membership_plans.retire, plan.subject, 2)
    assert len(said) <= 4, said


# --- what becomes of its memberships


def test_each_ends_as_its_state_says(cast: Cast, worker: House, owner: Owner) -> None:
    """And those of another plan go on."""
    plan = made(cast)
    running, leaving, gone, overdue = (cast.join(plan, others(cast, n)) for n in range(4))
    applying = cast.apply(plan, others(cast, 5))
    elsewhere = cast.join()
    put(owner, "membership", overdue.id, "past_due")
    for joined, ending in ((leaving, Ending("self_cancel")), (gone, Ending("force_cancel"))):
        end_membership(worker.desk(cast.tokyo.id), cast.sato.actor, joined.id, ending)
    before = owner.row("select version, ends_at from memberships where id = %s", leaving.id)
    retire(cast, plan)
    drain.drain("memberships")
    assert [stands(owner, one) for one in (running, overdue, leaving, gone, applying)] == [
        "scheduled_to_end",
        "scheduled_to_end",
        "scheduled_to_end",
        "ended",
        "ended",
    ]
    assert stands(owner, elsewhere) == "active"
    kept = owner.row("select version, ends_at from memberships where id = %s", leaving.id)
    assert kept == before
    reasons = "select id, end_reason from memberships where end_reason = 'plan_retired'"
    assert {row[0] for row in owner.rows(reasons)} == {running.id, overdue.id, applying.id}
    assert drain.drain("memberships") == 0


def test_it_ends_with_the_period_that_is_paid_for(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join(made(cast, billed_every="year"))
    retire(cast, owner.one("select plan_id from memberships"))
    drain.drain("memberships")
    years = "select extract(day from ends_at - started_at) from memberships where id = %s"
    assert 363 <= owner.one(years, joined.id) <= 367


def test_the_letter_does_not_say_that_it_can_go_on(
    cast: Cast, worker: House, owner: Owner, mail: MailSink
) -> None:
    for guest in (cast.hanako, cast.emma):
        cast.join(made(cast, code=guest["locale"]), guest)
    for (plan,) in owner.rows("select id from membership_plans"):
        retire(cast, plan)
    work(worker, "memberships", "outbox")
    told = [str(got.message.get_content()) for got in mail.kept]
    ends = [text for text in told if "その後の継続は承れません" in text or "cannot go on" in text]
    assert len(ends) == 2
    assert not any("Should you want to go on" in text for text in told)


def test_nobody_goes_on_in_a_plan_that_is_retired(cast: Cast, worker: House, owner: Owner) -> None:
    plan = made(cast)
    joined = cast.join(plan)
    retire(cast, plan)
    drain.drain("memberships")
    said = memberships.resume(worker.desk(cast.tokyo.id), cast.sato.actor, joined.id, 3)
    assert said == Refused(Code.PLAN_RETIRED)
    assert stands(owner, joined) == "scheduled_to_end"


LOOK_NOW = "update memberships set next_look_at = now()"
WAIT = "select end_tries, end_refusal, next_look_at - now() from memberships where id = %s"


def test_what_cannot_be_ended_yet_is_tried_again_and_calmer_each_time(
    cast: Cast, worker: House, owner: Owner
) -> None:
    plan = made(cast)
    paying, fine = cast.apply(plan), cast.join(plan, cast.emma)
    put(owner, "membership", paying.id, "checkout")
    retire(cast, plan)
    waits = []
    for tries in range(1, 13):
        assert job.retire_due(worker) == (2 if tries == 1 else 1)
        assert job.retire_due(worker) == 0
        told = owner.row(WAIT, paying.id)
        assert told[:2] == (tries, "CHECKOUT_IN_PROGRESS")
        waits.append(round(told[2].total_seconds() / 60))
        owner.run(LOOK_NOW)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256]
    assert stands(owner, fine) == "scheduled_to_end"
    # The payment has landed.
    put(owner, "membership", paying.id, "active")
    assert job.retire_due(worker) == 1
    assert stands(owner, paying) == "scheduled_to_end"
    tries, refusal, wait = owner.row(WAIT, paying.id)
    assert (tries, refusal, wait.total_seconds() <= 0) == (13, None, True)


def test_one_that_breaks_holds_up_no_other(
    cast: Cast, worker: House, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = made(cast)
    broken, fine = cast.join(plan), cast.join(plan, cast.emma)
    retire(cast, plan)

    def end(desk: Any, actor: Any, membership: UUID, ending: Ending) -> Outcome:
        if membership == broken.id:
            raise ZeroDivisionError
        return end_membership(desk, actor, membership, ending)

    monkeypatch.setattr(job, "end_membership", end)
    assert job.retire_due(worker) == 2
    assert (stands(owner, broken), stands(owner, fine)) == ("active", "scheduled_to_end")
    monkeypatch.undo()
    owner.run(LOOK_NOW)
    assert job.retire_due(worker) == 1
    assert stands(owner, broken) == "scheduled_to_end"


def test_more_refused_than_a_batch_hold_up_nobody(cast: Cast, worker: House, owner: Owner) -> None:
    plan = made(cast)
    for number in range(job.BATCH + 1):
        put(owner, "membership", cast.apply(plan, others(cast, number)).id, "checkout")
    fine = cast.join(plan)
    owner.run(
        "update memberships set next_look_at = now() - interval '1 day' where id <> %s", fine.id
    )
    retire(cast, plan)
    assert drain.drain("memberships") == job.BATCH + 2
    assert stands(owner, fine) == "scheduled_to_end"


def test_two_workers_at_once_end_each_once(cast: Cast, worker: House, owner: Owner) -> None:
    plan = made(cast)
    for number in range(30):
        cast.join(plan, others(cast, number))
    retire(cast, plan)
    at_once(cast.app, *[partial(drain.drain, "memberships")] * 4)
    ends = "select count(*), count(distinct subject_id) from transitions where event = %s"
    assert owner.row(ends, "end_scheduled") == (30, 30)
    letters = "select count(*) from outbox where event_type = 'membership_end_scheduled'"
    assert owner.one(letters) == 30


def test_the_plan_of_another_house_is_retired_beside_it(
    cast: Cast, worker: House, owner: Owner
) -> None:
    here, there = made(cast), cast.offer("monthly", "月会員", "Monthly", house=cast.osaka)
    mine, theirs = cast.join(here), cast.apply(there, house=cast.osaka)
    do(cast, membership_plans.retire, there, 1, house=cast.osaka.id)
    drain.drain("memberships")
    assert (stands(owner, mine), stands(owner, theirs)) == ("active", "ended")


def test_an_end_costs_the_same_for_few_and_for_many(
    cast: Cast, worker: House, owner: Owner
) -> None:
    """Two for the batch, and for each member what the one verb needs."""

    def each(plan: UUID, many: int) -> float:
        for number in range(many):
            cast.join(plan, others(cast, number))
        retire(cast, plan)
        with statements() as said:
            while job.retire_due(worker):
                pass
        batches = many // job.BATCH + 1 + (many % job.BATCH > 0)
        return (len(said) - batches) / many

    clock.set_source(None)
    few, many = each(made(cast, code="few"), 5), each(made(cast, code="many"), 45)
    assert few == many <= 5
