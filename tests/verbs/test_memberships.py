"""Memberships: applied for, approved, gone on with."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import memberships
from portal.verbs.desk import Desk
from portal.verbs.guests import NewGuest
from portal.verbs.membership_end import Ending, end_membership
from portal.verbs.memberships import Application
from sandbox.watch import statements
from tests.cast import GUEST, Cast
from tests.outside import Owner, at_once, recorded


def wanted(cast: Cast, **changes: Any) -> Application:
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "plan_id": cast.monthly,
        "seen": 1,
        "guest": NewGuest(**cast.hanako),
        "confirmation": {"price": "￥9,800", "renews": "毎月1日"},
    }
    return Application(**{**values, **changes})


def apply(cast: Cast, application: Application, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        return memberships.apply(tx, GUEST, application)


def do(cast: Cast, verb: Any, membership: UUID, seen: int, house: UUID | None = None) -> Outcome:
    nobody: Any = None
    desk = Desk(house or cast.tokyo.id, nobody, nobody, nobody, "http://here.example")
    with cast.app.app_context():
        said: Outcome = verb(desk, cast.sato.actor, membership, seen)
    return said


def stands(owner: Owner, membership: UUID) -> tuple[str, int]:
    found: tuple[str, int] = owner.row(
        "select state, version from memberships where id = %s", membership
    )
    return found


def news(owner: Owner) -> list[str]:
    rows = owner.rows("select event_type from outbox order by created_at, event_type")
    return [kind for (kind,) in rows]


def scheduled(cast: Cast, worker: Any, membership: UUID) -> None:
    said = end_membership(
        worker.desk(cast.tokyo.id), cast.sato.actor, membership, Ending("self_cancel")
    )
    assert isinstance(said, Applied), said


# --- apply


def test_an_application_keeps_what_was_sold_and_seen(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    said = apply(cast, wanted(cast))
    assert isinstance(said, Applied)
    assert (said.code, said.to) == (Code.MEMBERSHIP_APPLIED, "applying")
    assert owner.row(
        "select m.state, m.billing, m.price, m.currency, m.billed_every, m.terms_version,"
        " m.confirmation, m.started_at, r.email_key, g.name"
        " from memberships m join members r on r.id = m.member_id"
        " join guests g on g.id = r.guest_id"
    ) == (
        "applying",
        "desk",
        9800,
        "JPY",
        "month",
        "2026-11",
        {"price": "￥9,800", "renews": "毎月1日"},
        None,
        "hanako@guest.example",
        "山田 花子",
    )
    assert news(owner) == ["membership_applied"]


def test_what_is_sold_later_changes_nothing_for_who_has_applied(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    apply(cast, wanted(cast))
    owner.run("update membership_plans set price = 12000, terms_version = '2027-01'")
    assert owner.row("select price, terms_version from memberships") == (9800, "2026-11")


def test_the_same_form_is_one_application(cast: Cast, inside: Flask, owner: Owner) -> None:
    form = wanted(cast)
    first, again = apply(cast, form), apply(cast, form)
    assert isinstance(first, Applied)
    assert again == Noop(Code.MEMBERSHIP_ALREADY_APPLIED, subject=first.subject)
    assert owner.one("select count(*) from memberships") == 1
    assert news(owner) == ["membership_applied"]


@pytest.mark.parametrize("address", ["hanako@guest.example", "HANAKO@Guest.Example"])
def test_one_person_has_one_living_membership_of_a_plan(
    cast: Cast, inside: Flask, owner: Owner, address: str
) -> None:
    apply(cast, wanted(cast))
    guest = NewGuest(**{**cast.hanako, "email": address, "name": "別人"})
    assert apply(cast, wanted(cast, guest=guest)) == Refused(Code.MEMBERSHIP_ALREADY_EXISTS)
    assert owner.one("select count(*) from memberships") == 1
    assert owner.rows("select name from guests") == [("山田 花子",)]


def test_another_plan_and_another_house_are_other_memberships(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    apply(cast, wanted(cast))
    yearly = cast.offer("yearly", "年会員", "Yearly", price=98_000, billed_every="year")
    assert isinstance(apply(cast, wanted(cast, plan_id=yearly)), Applied)
    there = cast.offer("monthly", "月会員", "Monthly", house=cast.osaka)
    assert isinstance(apply(cast, wanted(cast, plan_id=there), cast.osaka.id), Applied)
    assert owner.one("select count(*) from members") == 2
    assert owner.one("select count(*) from memberships") == 3


def test_who_has_left_may_apply_again(cast: Cast, worker: Any, owner: Owner) -> None:
    first = cast.join()
    said = end_membership(
        worker.desk(cast.tokyo.id), cast.sato.actor, first.id, Ending("force_cancel")
    )
    assert isinstance(said, Applied)
    assert isinstance(apply(cast, wanted(cast)), Applied)
    assert owner.rows("select state from memberships order by created_at") == [
        ("ended",),
        ("applying",),
    ]
    assert owner.one("select count(*) from members") == 1


def test_what_is_not_sold_is_not_joined(cast: Cast, inside: Flask, owner: Owner) -> None:
    elsewhere = cast.offer("monthly", "月会員", "Monthly", house=cast.osaka)
    owner.run(
        "update membership_plans set sold = false, retired_at = now() where id = %s", cast.monthly
    )
    for plan in (cast.monthly, elsewhere, uuid4()):
        assert apply(cast, wanted(cast, plan_id=plan)) == Refused(Code.PLAN_NOT_IN_CONFIG)
    assert owner.one("select count(*) from memberships") == 0
    assert news(owner) == []


def test_nobody_is_held_to_what_they_have_not_seen(cast: Cast, inside: Flask, owner: Owner) -> None:
    form = wanted(cast)
    owner.run("update membership_plans set price = 12000, version = version + 1")
    assert apply(cast, form) == Refused(Code.PLAN_CHANGED)
    assert owner.one("select count(*) from memberships") == 0
    assert isinstance(apply(cast, replace(form, seen=2)), Applied)
    assert owner.one("select price from memberships") == 12_000


def test_without_an_address_nobody_can_be_told_anything(cast: Cast, inside: Flask) -> None:
    nameless = NewGuest(**{**cast.hanako, "email": None})
    with pytest.raises(ValueError, match="e-mail"):
        apply(cast, wanted(cast, guest=nameless))


@pytest.mark.parametrize("same_form", [True, False])
def test_eight_at_once_are_one_membership(
    cast: Cast, app: Flask, owner: Owner, same_form: bool
) -> None:
    forms = [wanted(cast)] * 8 if same_form else [wanted(cast) for _ in range(8)]
    said = at_once(app, *[partial(apply, cast, form) for form in forms])
    assert [type(one) for one in said].count(Applied) == 1
    others = {one.code for one in said if isinstance(one, Noop | Refused)}
    told = Code.MEMBERSHIP_ALREADY_APPLIED if same_form else Code.MEMBERSHIP_ALREADY_EXISTS
    assert others == {told}
    assert len([one for one in said if isinstance(one, Noop | Refused)]) == 7
    assert owner.one("select count(*) from memberships") == 1
    assert owner.one("select count(*) from members") == 1
    assert news(owner) == ["membership_applied"]


def test_two_plans_joined_at_once_under_a_new_address_are_one_person(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    yearly = cast.offer("yearly", "年会員", "Yearly", price=98_000, billed_every="year")
    forms = [wanted(cast), wanted(cast, plan_id=yearly)] * 2
    forms = [replace(form, form_key=uuid4()) for form in forms]
    said = at_once(app, *[partial(apply, cast, form) for form in forms])
    assert [type(one) for one in said].count(Applied) == 2
    assert [one for one in said if isinstance(one, Refused)] == [
        Refused(Code.MEMBERSHIP_ALREADY_EXISTS)
    ] * 2
    assert owner.one("select count(*) from members") == 1
    assert owner.one("select count(*) from guests") == 1
    assert owner.one("select count(distinct plan_id) from memberships") == 2


# --- approve


def test_approved_it_runs(cast: Cast, inside: Flask, owner: Owner) -> None:
    joined = cast.apply()
    said = do(cast, memberships.approve, joined.id, 1)
    assert said == Applied(Code.MEMBERSHIP_APPROVED, to="active", subject=joined.id)
    assert stands(owner, joined.id) == ("active", 2)
    assert owner.one("select started_at is not null from memberships")
    assert recorded(owner, joined.id)[-1] == ("approved_for_desk_billing", "applying", "active")
    assert news(owner) == ["membership_applied", "membership_approved"]
    assert do(cast, memberships.approve, joined.id, 1) == Noop(
        Code.MEMBERSHIP_ALREADY_APPROVED, subject=joined.id
    )
    assert stands(owner, joined.id) == ("active", 2)


def test_a_stale_page_approves_nothing(cast: Cast, worker: Any, owner: Owner) -> None:
    joined = cast.apply()
    stale = do(cast, memberships.approve, joined.id, 7)
    assert isinstance(stale, Conflict)
    assert stale.code is Code.STALE_PAGE
    end_membership(
        worker.desk(cast.tokyo.id), cast.suzuki.actor, joined.id, Ending("application_rejected")
    )
    late = do(cast, memberships.approve, joined.id, 1)
    assert isinstance(late, Conflict)
    assert (late.code, late.current.state, late.current.by) == (
        Code.MEMBERSHIP_STATE_CHANGED,
        "ended",
        "鈴木 愛",
    )
    assert stands(owner, joined.id) == ("ended", 2)


# --- resume


def test_d1_an_end_that_is_taken_back_leaves_no_trace_of_itself(
    cast: Cast, worker: Any, owner: Owner
) -> None:
    """No end, and the farewell that was not sent yet is withdrawn."""
    joined = cast.join()
    scheduled(cast, worker, joined.id)
    owner.run("update memberships set ends_at = now() + interval '1 second'")
    said = do(cast, memberships.resume, joined.id, 3)
    assert said == Applied(Code.MEMBERSHIP_RESUMED, to="active", subject=joined.id)
    assert owner.row("select state, ends_at, end_reason from memberships") == (
        "active",
        None,
        None,
    )
    assert news(owner)[-2:] == ["membership_end_scheduled", "membership_resumed"]
    still = "select bool_or(m.state = 'scheduled_to_end') from memberships m"
    assert owner.one(still) is False
    assert do(cast, memberships.resume, joined.id, 4) == Noop(
        Code.MEMBERSHIP_NOT_SCHEDULED, subject=joined.id
    )
    # Changed her mind once more: that is said again.
    scheduled(cast, worker, joined.id)
    assert news(owner).count("membership_end_scheduled") == 2


def test_what_has_come_to_its_end_does_not_go_on(cast: Cast, worker: Any, owner: Owner) -> None:
    joined = cast.join()
    scheduled(cast, worker, joined.id)
    owner.run("update memberships set ends_at = now()")
    assert do(cast, memberships.resume, joined.id, 3) == Refused(Code.MEMBERSHIP_END_REACHED)
    assert stands(owner, joined.id) == ("scheduled_to_end", 3)


@pytest.mark.parametrize("state", ["applying", "ended"])
def test_only_a_scheduled_end_is_taken_back(
    cast: Cast, worker: Any, owner: Owner, state: str
) -> None:
    joined = cast.apply()
    if state == "ended":
        end_membership(worker.desk(cast.tokyo.id), GUEST, joined.id, Ending("self_cancel"))
    said = do(cast, memberships.resume, joined.id, 1)
    assert isinstance(said, Conflict)
    assert (said.code, said.current.state) == (Code.MEMBERSHIP_STATE_CHANGED, state)


# --- everyone


@pytest.mark.parametrize("verb", [memberships.approve, memberships.resume])
def test_another_houses_membership_is_not_there(
    cast: Cast, inside: Flask, owner: Owner, verb: Any
) -> None:
    joined = cast.apply()
    assert do(cast, verb, joined.id, 1, cast.osaka.id) == Refused(Code.NOT_FOUND)
    assert do(cast, verb, uuid4(), 1) == Refused(Code.NOT_FOUND)
    assert stands(owner, joined.id) == ("applying", 1)


def test_each_needs_few_statements(cast: Cast, worker: Any) -> None:
    form, _ = wanted(cast), cast.sato
    with statements() as said:
        made = apply(cast, form)
    assert len(said) <= 11, said
    assert isinstance(made, Applied)
    assert made.subject is not None
    with statements() as said:
        do(cast, memberships.approve, made.subject, 1)
    assert len(said) <= 4, said
    scheduled(cast, worker, made.subject)
    with statements() as said:
        do(cast, memberships.resume, made.subject, 3)
    assert len(said) <= 5, said


def test_the_day_it_began_is_kept_in_utc(cast: Cast, inside: Flask, owner: Owner) -> None:
    at = datetime(2026, 11, 30, 15, 30, tzinfo=UTC)
    clock.set_source(lambda: at)
    cast.join()
    assert owner.one("select started_at from memberships") == at
