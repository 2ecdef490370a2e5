"""What a membership gives at the desk and at the gate, and what its end takes back."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.db import SYSTEM
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.membership_end import Reason
from portal.verbs import bookings, cash, facilities, keys, memberships, stay_changes, stays
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import Booked, Cast, Joined
from tests.machines.test_tables import put
from tests.outside import Owner, at_once
from tests.verbs.books import another_writes

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)
MONTH_ENDS = datetime(2026, 11, 30, 15, tzinfo=UTC)

HELD = "update memberships set paused = paused where id = %s"
"""A writer in the middle of its work."""


@pytest.fixture(autouse=True)
def now(inside: Flask) -> Iterator[None]:
    clock.set_source(lambda: NOW)
    yield
    clock.set_source(None)


def wanted(cast: Cast, plan: str | None, member: Joined | None, **changes: Any) -> NewStay:
    starts = changes.pop("starts_at", NOW)
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "guest": None if member else NewGuest(**cast.emma),
        "membership_id": member.id if member else None,
        "space_id": cast.tokyo.spaces["A01"],
        "plan_id": cast.tokyo.plans[plan] if plan else None,
        "starts_at": starts,
        "ends_at": starts + 3 * HOUR,
        "price": 0,
    }
    return NewStay(**{**values, **changes})


def create(cast: Cast, stay: NewStay, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        return bookings.create(tx, cast.sato.actor, stay)


def do(cast: Cast, verb: Any, stay: UUID, *rest: Any) -> Outcome:
    with cast.transaction(cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.sato.actor, stay, *rest)
        return said


def end(worker: House, joined: Joined, reason: Reason) -> Outcome:
    return end_membership(worker.desk(joined.facility_id), SYSTEM, joined.id, Ending(reason))


def stand(owner: Owner, joined: Joined, state: str, **more: Any) -> None:
    """The membership is in `state`, however it came there; it began a month ago and ends, where it
    does, in two days."""
    put(owner, "membership", joined.id, state)
    ends_at = NOW + timedelta(days=2) if state == "scheduled_to_end" else None
    values = {"ends_at": ends_at, "end_reason": "x" if ends_at else None, **more}
    if state == "ended":
        values = {"ends_at": NOW - HOUR, "end_reason": "x", **more}
    owner.run("set session_replication_role = replica")
    owner.run(
        f"update memberships set {', '.join(f'{name} = %s' for name in values)} where id = %s",
        *values.values(),
        joined.id,
    )
    owner.run("set session_replication_role = origin")


# At the desk ------------------------------------------------------------------------------------


def test_a_member_books_what_is_for_members_and_is_the_guest(cast: Cast, owner: Owner) -> None:
    joined = cast.join()
    said = create(cast, wanted(cast, cast.for_members(), joined))
    assert isinstance(said, Applied)
    assert said.code == Code.STAY_CREATED
    assert owner.row(
        "select s.membership_id, g.name, g.email from stays s join guests g on g.id = s.guest_id"
    ) == (joined.id, "山田 花子", "hanako@guest.example")
    assert owner.one("select count(*) from guests") == 1
    assert owner.one("select count(*) from ledger_lines") == 0


def test_what_the_plan_costs_a_member_pays(cast: Cast, owner: Owner) -> None:
    said = create(cast, wanted(cast, cast.for_members(price=700), cast.join(), price=700))
    assert isinstance(said, Applied)
    assert owner.rows("select kind, amount from ledger_lines") == [("charge", 700)]


def test_nobody_else_books_what_is_for_members(cast: Cast, owner: Owner) -> None:
    assert create(cast, wanted(cast, cast.for_members(), None)) == Refused(Code.MEMBERS_ONLY_PLAN)
    assert owner.row("select (select count(*) from stays), (select count(*) from guests)") == (0, 0)


def test_a_member_may_book_what_everybody_books(cast: Cast, owner: Owner) -> None:
    for plan in ("night", None):
        starts = NOW + timedelta(days=1 if plan else 2)
        stay = wanted(cast, plan, cast.join() if plan else None, price=6000, starts_at=starts)
        assert isinstance(create(cast, stay), Applied)
    assert owner.one("select count(*) from stays where membership_id is not null") == 1


STATES = [
    ("applying", {}, Code.MEMBERS_ONLY_PLAN),
    ("checkout", {}, Code.MEMBERS_ONLY_PLAN),
    ("active", {}, None),
    ("active", {"paused": True}, Code.MEMBERSHIP_PAUSED),
    ("past_due", {}, Code.MEMBERS_ONLY_PLAN),
    ("scheduled_to_end", {}, None),
    ("scheduled_to_end", {"ends_at": NOW + SECOND}, None),
    ("scheduled_to_end", {"ends_at": NOW}, Code.MEMBERS_ONLY_PLAN),
    ("scheduled_to_end", {"paused": True}, Code.MEMBERSHIP_PAUSED),
    ("ended", {}, Code.MEMBERS_ONLY_PLAN),
]


@pytest.mark.parametrize("plan", ["members", "night"])
@pytest.mark.parametrize(("state", "more", "code"), STATES)
def test_a_booking_needs_a_membership_that_gives(
    cast: Cast, owner: Owner, plan: str, state: str, more: dict[str, Any], code: Code | None
) -> None:
    """Also where the plan would not ask for one: booked as a member is booked as a member."""
    joined = cast.join()
    stand(owner, joined, state, **more)
    said = create(cast, wanted(cast, cast.for_members() if plan == "members" else plan, joined))
    assert (said.status, said.code) == (
        ("refused", code) if code else ("applied", Code.STAY_CREATED)
    )
    assert owner.one("select count(*) from stays") == (0 if code else 1)


def test_the_house_decides_whether_an_overdue_payment_counts(cast: Cast, owner: Owner) -> None:
    joined, plan = cast.join(), cast.for_members()
    stand(owner, joined, "past_due")
    assert create(cast, wanted(cast, plan, joined)) == Refused(Code.MEMBERS_ONLY_PLAN)
    owner.run("update facilities set benefits_while_past_due = true")
    assert isinstance(create(cast, wanted(cast, plan, joined)), Applied)


def test_d2_nothing_is_booked_from_the_end_on(cast: Cast, worker: House, owner: Owner) -> None:
    joined, plan = cast.join(), cast.for_members()
    end(worker, joined, "self_cancel")
    for starts_at in (MONTH_ENDS, MONTH_ENDS + timedelta(days=9)):
        said = create(cast, wanted(cast, plan, joined, starts_at=starts_at))
        assert said == Refused(Code.MEMBERS_ONLY_PLAN)
    assert isinstance(
        create(cast, wanted(cast, plan, joined, starts_at=MONTH_ENDS - HOUR)), Applied
    )


def test_a_booking_of_the_past_asks_about_now(cast: Cast, owner: Owner) -> None:
    """It began before the end; it is booked after it."""
    joined, plan = cast.join(), cast.for_members()
    stand(owner, joined, "scheduled_to_end", ends_at=NOW - HOUR)
    said = create(cast, wanted(cast, plan, joined, starts_at=NOW - 2 * HOUR))
    assert said == Refused(Code.MEMBERS_ONLY_PLAN)


def test_i10_another_houses_membership_does_not_exist(cast: Cast, owner: Owner) -> None:
    theirs = cast.apply(cast.offer("x", "他", "Other", house=cast.osaka), house=cast.osaka)
    put(owner, "membership", theirs.id, "active")
    for membership in (theirs.id, uuid4()):
        stay = wanted(cast, None, None, guest=None, membership_id=membership)
        assert create(cast, stay) == Refused(Code.NOT_FOUND)
    assert owner.one("select count(*) from stays") == 0


def test_h1_one_form_of_a_member_is_one_stay(cast: Cast, worker: House, owner: Owner) -> None:
    """Also once the membership has ended: it was booked already."""
    joined = cast.join()
    form = wanted(cast, cast.for_members(), joined)
    first = create(cast, form)
    assert isinstance(first, Applied), first
    end(worker, joined, "force_cancel")
    assert create(cast, form) == Noop(Code.STAY_ALREADY_CREATED, subject=first.subject)
    assert owner.one("select count(*) from stays") == 1


def test_somebody_has_to_come(cast: Cast) -> None:
    with pytest.raises(ValueError, match="nobody"):
        create(cast, wanted(cast, None, None, guest=None))


def test_other_times_stay_before_the_end(cast: Cast, worker: House, owner: Owner) -> None:
    joined = cast.join()
    stay = cast.book(member=joined, plan=cast.for_members(), price=0, starts_at=NOW + HOUR)
    end(worker, joined, "self_cancel")

    def to(starts_at: datetime) -> Outcome:
        seen = owner.one("select version from stays")
        times = (starts_at, starts_at + HOUR, 0)
        return do(cast, stay_changes.change_times, stay.id, seen, *times)

    assert to(MONTH_ENDS) == Refused(Code.MEMBERS_ONLY_PLAN)
    assert isinstance(to(MONTH_ENDS - SECOND), Applied)


# At the gate ------------------------------------------------------------------------------------


def at_the_door(cast: Cast, member: Joined, price: int = 0) -> Booked:
    """Booked while the membership gave, and paid."""
    stay = cast.book(member=member, plan=cast.for_members(price=price), price=price)
    if price:
        assert isinstance(do(cast, cash.take, stay.id, price, uuid4()), Applied)
    return stay


def admit(cast: Cast, owner: Owner, stay: Booked) -> Outcome:
    seen = owner.one("select version from stays where id = %s", stay.id)
    return do(cast, stays.admit, stay.id, seen)


@pytest.mark.parametrize("price", [0, 700])
@pytest.mark.parametrize(("state", "more", "code"), STATES)
def test_the_gate_asks_what_the_membership_gives_now(
    cast: Cast, owner: Owner, price: int, state: str, more: dict[str, Any], code: Code | None
) -> None:
    joined = cast.join()
    stay = at_the_door(cast, joined, price)
    stand(owner, joined, state, **more)
    said = admit(cast, owner, stay)
    if code is None:
        assert said == Applied(Code.STAY_ADMITTED, to="admitted", subject=stay.id)
        assert owner.rows("select code from gate_audits") == []
        return
    assert said == Refused(code)
    assert owner.one("select state from stays") == "reserved"
    assert owner.one("select count(*) from entry_keys") == 0
    assert owner.rows("select code, rule, stay_id, length(digest) from gate_audits") == [
        (code, "membership", stay.id, 64)
    ]


def test_the_gate_follows_the_house_about_an_overdue_payment(cast: Cast, owner: Owner) -> None:
    joined = cast.join()
    stay = at_the_door(cast, joined)
    stand(owner, joined, "past_due")
    assert admit(cast, owner, stay) == Refused(Code.MEMBERS_ONLY_PLAN)
    owner.run("update facilities set benefits_while_past_due = true")
    assert isinstance(admit(cast, owner, stay), Applied)


def test_d7_a_pause_shuts_the_gate_until_it_is_over(cast: Cast, owner: Owner) -> None:
    joined = cast.join()
    stay = at_the_door(cast, joined)
    owner.run("update memberships set paused = true")
    assert admit(cast, owner, stay) == Refused(Code.MEMBERSHIP_PAUSED)
    owner.run("update memberships set paused = false")
    assert isinstance(admit(cast, owner, stay), Applied)


def test_d1_an_end_that_is_taken_back_gives_on(cast: Cast, worker: House, owner: Owner) -> None:
    """After the end that was set as well."""
    joined = cast.join()
    end(worker, joined, "self_cancel")
    owner.run("update memberships set ends_at = now() + interval '1 day'")
    assert isinstance(
        memberships.resume(worker.desk(cast.tokyo.id), cast.sato.actor, joined.id, 3), Applied
    )
    later = clock.now() + timedelta(days=400)
    stay = cast.book(member=joined, plan=cast.for_members(), price=0, starts_at=later)
    clock.set_source(lambda: later)
    assert isinstance(admit(cast, owner, stay), Applied)


def test_a_plan_that_was_opened_to_members_alone_asks_everybody(cast: Cast, owner: Owner) -> None:
    stay = cast.book(plan="night", price=0)
    owner.run("update plans set members_only = true")
    assert admit(cast, owner, stay) == Refused(Code.MEMBERS_ONLY_PLAN)


@pytest.mark.parametrize(("price", "code"), [(0, Code.MEMBERS_ONLY_PLAN), (900, None)])
def test_what_was_charged_for_needs_no_membership_at_the_gate(
    cast: Cast, worker: House, owner: Owner, price: int, code: Code | None
) -> None:
    """Of an ordinary plan, booked as a member: whoever paid has paid, whoever was given it has it
    only as long as it is given."""
    joined = cast.join()
    stay = cast.book(member=joined, plan="night", price=price)
    if price:
        do(cast, cash.take, stay.id, price, uuid4())
    end(worker, joined, "force_cancel")
    said = admit(cast, owner, stay)
    assert (said.status, getattr(said, "code", None)) == (
        ("refused", code) if code else ("applied", Code.STAY_ADMITTED)
    )


# What an end takes back -------------------------------------------------------------------------


def test_an_end_takes_the_bookings_and_the_key_that_it_gave(
    cast: Cast, worker: House, owner: Owner
) -> None:
    """Through the booking verb itself."""
    joined, plan = cast.join(), cast.for_members()
    here = cast.book(member=joined, plan=plan, price=0)
    ahead = cast.book(member=joined, plan=plan, price=0, starts_at=NOW + timedelta(days=1))
    assert isinstance(admit(cast, owner, here), Applied)
    end(worker, joined, "force_cancel")
    assert dict(owner.rows("select id, state from stays")) == {
        here.id: "admitted",
        ahead.id: "cancelled",
    }
    assert owner.rows("select state from entry_keys") == [("revoking",)]


@pytest.mark.parametrize("verb", ["reissue", "move_to"])
def test_what_an_end_took_back_nobody_hands_out_again(
    cast: Cast, worker: House, owner: Owner, verb: str
) -> None:
    joined = cast.join()
    stay = at_the_door(cast, joined)
    admit(cast, owner, stay)
    end(worker, joined, "force_cancel")
    asked = {
        "reissue": (keys.reissue, ()),
        "move_to": (stay_changes.move_to, (cast.tokyo.spaces["A02"],)),
    }
    act, rest = asked[verb]
    seen = owner.one("select version from stays")
    assert do(cast, act, stay.id, seen, *rest) == Refused(Code.MEMBERS_ONLY_PLAN)
    assert owner.rows("select state from entry_keys") == [("revoking",)]


def test_who_is_in_house_as_it_runs_out_gets_another_code(
    cast: Cast, worker: House, owner: Owner
) -> None:
    joined = cast.join()
    stay = at_the_door(cast, joined)
    admit(cast, owner, stay)
    end(worker, joined, "self_cancel")
    owner.run("update memberships set ends_at = now() - interval '1 second'")
    end(worker, joined, "end_reached")
    seen = owner.one("select version from stays")
    assert isinstance(do(cast, keys.reissue, stay.id, seen), Applied)


# At once ----------------------------------------------------------------------------------------


def test_a_check_in_waits_for_an_end_and_hears_of_it(cast: Cast, owner: Owner) -> None:
    """The end is written and not committed. Facts read before the wait would open the door."""
    joined = cast.join()
    stay = at_the_door(cast, joined)
    ended = (
        "update memberships set state = 'ended', ended_at = %s, ends_at = %s, end_reason = 'x'"
        " where id = %s"
    )
    with another_writes(owner, ended, NOW, NOW, joined.id):
        said = admit(cast, owner, stay)
    assert said == Refused(Code.MEMBERS_ONLY_PLAN)
    assert owner.one("select count(*) from entry_keys") == 0


def test_a_booking_waits_for_an_end_and_hears_of_it(cast: Cast, owner: Owner) -> None:
    joined, plan = cast.join(), cast.for_members()
    with another_writes(
        owner, "update memberships set ends_at = %s, end_reason = 'x' where id = %s", NOW, joined.id
    ):
        said = create(cast, wanted(cast, plan, joined))
    assert said == Refused(Code.MEMBERS_ONLY_PLAN)


@pytest.mark.parametrize("verb", ["admit", "book", "times"])
def test_an_end_waits_for_who_holds_the_membership(
    cast: Cast, worker: House, owner: Owner, verb: str
) -> None:
    """And each waits for a writer of the membership before it takes anything else: nobody who
    holds a stay or a space waits for a membership."""
    joined = cast.join()
    stay = at_the_door(cast, joined)
    form = wanted(cast, None, joined, space_id=cast.tokyo.spaces["A02"])
    times = (NOW, NOW + HOUR, 0)
    acts: dict[str, Any] = {
        "admit": lambda: admit(cast, owner, stay),
        "book": lambda: create(cast, form),
        "times": lambda: do(cast, stay_changes.change_times, stay.id, 1, *times),
    }
    with statements() as said, another_writes(owner, HELD, joined.id):
        assert isinstance(acts[verb](), Applied)
    locks = [one for one in said if "for share of m" in one or "for no key update" in one]
    assert "for share of m" in locks[0], locks


@pytest.mark.parametrize("price", [0, 700])
def test_a_check_in_and_an_end_at_once(
    cast: Cast, app: Flask, worker: House, owner: Owner, price: int
) -> None:
    """Whoever is first: nobody is let in by a membership that has ended, or the key that it gave is
    taken back. What was paid for as well keeps its key, and its refusal."""
    after = {("admitted", "requested" if price else "revoking"), ("reserved", None)}
    plan = cast.for_members(price=price)
    for number, space in enumerate(cast.tokyo.spaces):
        joined = cast.join(guest={**cast.hanako, "email": f"{number}@guest.example"})
        stay = cast.book(member=joined, plan=plan, price=price, space=space)
        if price:
            do(cast, cash.take, stay.id, price, uuid4())
        seen = owner.one("select version from stays where id = %s", stay.id)
        said = at_once(
            app,
            partial(do, cast, stays.admit, stay.id, seen),
            partial(end, worker, joined, "force_cancel"),
        )
        assert isinstance(said[0], Applied | Refused), said
        assert isinstance(said[1], Applied), said
        state = owner.one("select state from stays where id = %s", stay.id)
        key = owner.one("select state from entry_keys where stay_id = %s", stay.id)
        assert (state, key) in after


def test_a_booking_and_an_end_at_once(cast: Cast, app: Flask, worker: House, owner: Owner) -> None:
    """What is booked ahead is refused, or cancelled with the end."""
    plan, ahead = cast.for_members(), NOW + timedelta(days=3)
    for number, space in enumerate(cast.tokyo.spaces.values()):
        joined = cast.join(guest={**cast.hanako, "email": f"{number}@guest.example"})
        form = wanted(cast, plan, joined, space_id=space, starts_at=ahead)
        said = at_once(
            app,
            partial(create, cast, form),
            partial(end, worker, joined, "force_cancel"),
        )
        assert isinstance(said[0], Applied | Refused), said
        assert isinstance(said[1], Applied), said
    assert owner.one("select count(*) from stays where state <> 'cancelled'") == 0


# What it costs, and the house's setting ---------------------------------------------------------


def test_a_members_check_in_needs_no_statement_more(cast: Cast, owner: Owner) -> None:
    stay = at_the_door(cast, cast.join())
    with statements() as said:
        assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)
    assert len(said) <= 8, said


@pytest.mark.parametrize("as_member", [True, False])
def test_a_booking_needs_few_statements(cast: Cast, as_member: bool) -> None:
    """A member is looked up and a guest is written: one statement each."""
    joined = cast.join()
    form = wanted(cast, "night", joined if as_member else None)
    with statements() as said:
        assert isinstance(create(cast, form), Applied)
    assert len(said) <= 8, said


def test_the_house_chooses_and_choosing_again_is_calm(cast: Cast, owner: Owner) -> None:
    def choose(while_past_due: bool) -> Outcome:
        with cast.transaction(cast.tokyo.id) as tx:
            return facilities.choose_benefits(tx, cast.suzuki.actor, while_past_due)

    _ = cast.osaka
    house = cast.tokyo.id
    kept = "select benefits_while_past_due from facilities where id = %s"
    assert choose(False) == Noop(Code.SETTINGS_UNCHANGED, subject=house)
    assert choose(True) == Applied(Code.SETTINGS_SAVED, to="saved", subject=house)
    assert choose(True) == Noop(Code.SETTINGS_UNCHANGED, subject=house)
    assert (owner.one(kept, house), owner.one(kept, cast.osaka.id)) == (True, False)
    assert choose(False) == Applied(Code.SETTINGS_SAVED, to="saved", subject=house)


def test_a_house_that_is_not_there_chooses_nothing(cast: Cast) -> None:
    with cast.transaction(uuid4()) as tx:
        said = facilities.choose_benefits(tx, cast.suzuki.actor, True)
    assert said == Refused(Code.NOT_FOUND)
