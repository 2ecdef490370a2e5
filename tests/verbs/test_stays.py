"""Stays: created, admitted, departed, cancelled, no-show, reinstated."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock, outbox
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import bookings, cash, stays
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once, recorded

HOUR = timedelta(hours=1)


def wanted(cast: Cast, **changes: Any) -> NewStay:
    starts = changes.pop("starts_at", clock.now().replace(microsecond=0))
    values: dict[str, Any] = {
        "form_key": uuid4(),
        "guest": NewGuest(**cast.hanako),
        "space_id": cast.tokyo.spaces["A01"],
        "plan_id": None,
        "starts_at": starts,
        "ends_at": starts + 19 * HOUR,
        "price": 6000,
    }
    return NewStay(**{**values, **changes})


def create(cast: Cast, stay: NewStay, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        return bookings.create(tx, cast.sato.actor, stay)


def do(cast: Cast, verb: Any, stay: UUID, *rest: Any, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.sato.actor, stay, *rest)
        return said


def stands(owner: Owner, stay: UUID) -> tuple[str, int]:
    found: tuple[str, int] = owner.row("select state, version from stays where id = %s", stay)
    return found


def balance(owner: Owner, stay: UUID) -> int:
    return int(
        owner.one("select coalesce(sum(amount), 0) from ledger_lines where stay_id = %s", stay)
    )


def paid_in_cash(cast: Cast, stay: Booked, amount: int = 6000) -> Booked:
    assert isinstance(do(cast, cash.take, stay.id, amount, uuid4()), Applied)
    return stay


# Create -----------------------------------------------------------------------------------------


def test_a_stay_is_created_charged_and_told_once(cast: Cast, owner: Owner) -> None:
    said = create(cast, wanted(cast))
    assert isinstance(said, Applied)
    assert (said.code, said.to) == (Code.STAY_CREATED, "reserved")
    assert stands(owner, said.subject) == ("reserved", 1)
    assert balance(owner, said.subject) == 6000
    assert recorded(owner, said.subject) == [("created", None, "reserved")]
    assert owner.rows("select event_type, locale, recipient from outbox") == [
        ("stay_created", "ja", "hanako@guest.example")
    ]


def test_h1_one_form_is_one_stay(cast: Cast, owner: Owner) -> None:
    form = wanted(cast)
    first = create(cast, form)
    again = create(cast, form)
    assert again == Noop(Code.STAY_ALREADY_CREATED, subject=first.subject)  # type: ignore[union-attr]
    assert owner.one("select count(*) from stays") == 1
    assert owner.one("select count(*) from guests") == 1


def test_h1_one_form_sent_eight_times_at_once_is_one_stay(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    form = wanted(cast)
    _ = cast.sato
    said = at_once(app, *[lambda: create(cast, form)] * 8)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.STAY_ALREADY_CREATED] * 7 + [Code.STAY_CREATED]
    assert len({one.subject for one in said}) == 1  # type: ignore[union-attr]
    assert owner.row("select (select count(*) from stays), (select count(*) from outbox)") == (1, 1)
    assert owner.row("select count(*), sum(amount) from ledger_lines") == (1, 6000)


def test_a_free_stay_owes_nothing(cast: Cast, owner: Owner) -> None:
    said = create(cast, wanted(cast, price=0))
    assert isinstance(said, Applied)
    assert owner.one("select count(*) from ledger_lines") == 0


def test_a_booking_of_which_little_was_said_is_the_desks(cast: Cast, owner: Owner) -> None:
    create(cast, wanted(cast, guest=NewGuest(name="誰か")))
    assert owner.row("select source, note, deposit_due, plan_id from stays") == (
        "desk",
        "",
        0,
        None,
    )
    assert owner.row(
        "select kana, email, phone, phone_digits, line_user_id, preferred_locale from guests"
    ) == ("", None, None, "", None, None)


def test_a_guest_without_an_address_gets_no_message(cast: Cast, owner: Owner) -> None:
    assert isinstance(create(cast, wanted(cast, guest=NewGuest(name="誰か"))), Applied)
    assert owner.one("select count(*) from outbox") == 0


def test_two_stays_at_once_for_one_space_are_one(cast: Cast, app: Flask, owner: Owner) -> None:
    forms = [wanted(cast) for _ in range(6)]
    _ = cast.sato
    said = at_once(app, *[lambda form=form: create(cast, form) for form in forms])  # type: ignore[misc]
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.SPACE_TAKEN] * 5 + [Code.STAY_CREATED]
    assert owner.row("select (select count(*) from stays), (select count(*) from guests)") == (1, 1)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [(-HOUR, HOUR), (HOUR, 2 * HOUR), (18 * HOUR, 20 * HOUR), (-HOUR, 30 * HOUR)],
)
def test_overlapping_times_are_taken(
    cast: Cast, owner: Owner, starts: timedelta, ends: timedelta
) -> None:
    first = wanted(cast)
    create(cast, first)
    over = wanted(cast, starts_at=first.starts_at + starts, ends_at=first.starts_at + ends)
    assert create(cast, over) == Refused(Code.SPACE_TAKEN)
    assert owner.one("select count(*) from stays") == 1
    assert owner.one("select count(*) from guests") == 1


def test_one_stay_begins_at_the_instant_another_ends(cast: Cast) -> None:
    first = wanted(cast)
    create(cast, first)
    after = wanted(cast, starts_at=first.ends_at)
    before = wanted(cast, starts_at=first.starts_at - HOUR, ends_at=first.starts_at)
    assert isinstance(create(cast, after), Applied)
    assert isinstance(create(cast, before), Applied)


def test_another_space_is_free_at_the_same_time(cast: Cast) -> None:
    create(cast, wanted(cast))
    assert isinstance(create(cast, wanted(cast, space_id=cast.tokyo.spaces["A02"])), Applied)


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (timedelta(0), Code.STAY_TIMES_IMPOSSIBLE),
        (-HOUR, Code.STAY_TIMES_IMPOSSIBLE),
        (timedelta(days=366, seconds=1), Code.STAY_TIMES_IMPOSSIBLE),
    ],
)
def test_impossible_times(cast: Cast, owner: Owner, ends: timedelta, code: Code) -> None:
    stay = wanted(cast)
    assert create(cast, wanted(cast, ends_at=stay.starts_at + ends, starts_at=stay.starts_at)) == (
        Refused(code)
    )
    assert owner.one("select count(*) from stays") == 0


@pytest.mark.parametrize(
    ("price", "deposit"), [(6000, 6001), (6000, -1), (-1, 0), (100_000_000, 0), (-5, -5)]
)
def test_impossible_prices(cast: Cast, price: int, deposit: int) -> None:
    said = create(cast, wanted(cast, price=price, deposit_due=deposit))
    assert said == Refused(Code.DEPOSIT_EXCEEDS_PRICE)


def test_an_inactive_space_is_not_sold(cast: Cast, owner: Owner) -> None:
    stay = wanted(cast)
    owner.run("update spaces set active = false where id = %s", stay.space_id)
    assert create(cast, stay) == Refused(Code.SPACE_NOT_USABLE)


def test_a_plan_that_does_not_exist_is_not_sold(cast: Cast) -> None:
    assert create(cast, wanted(cast, plan_id=uuid4())) == Refused(Code.NOT_FOUND)


def test_i10_another_facilitys_space_and_plan_do_not_exist(cast: Cast, owner: Owner) -> None:
    theirs = cast.osaka
    for stay in (
        wanted(cast, space_id=theirs.spaces["S01"]),
        wanted(cast, plan_id=theirs.plans["visit"]),
        wanted(cast, space_id=uuid4()),
        wanted(cast, plan_id=uuid4()),
    ):
        assert create(cast, stay) == Refused(Code.NOT_FOUND)
    assert owner.one("select count(*) from stays") == 0


def test_i8_the_same_form_key_in_another_house_is_another_stay(cast: Cast, owner: Owner) -> None:
    here = wanted(cast)
    there = wanted(cast, form_key=here.form_key, space_id=cast.osaka.spaces["S01"])
    assert isinstance(create(cast, here), Applied)
    assert isinstance(create(cast, there, cast.osaka.id), Applied)
    assert owner.one("select count(*) from stays") == 2


@pytest.mark.parametrize(
    "name", ["👨‍👩‍👧‍👦" * 60, "Hana\r\nBcc: x@evil.example", "عائشة", "'; drop table stays; --"]
)
def test_h16_odd_names_are_kept_as_entered(cast: Cast, owner: Owner, name: str) -> None:
    said = create(cast, wanted(cast, guest=NewGuest(name=name, email="a@guest.example")))
    assert isinstance(said, Applied)
    assert owner.one("select name from guests") == name


# Admit ------------------------------------------------------------------------------------------


def test_a_settled_guest_is_admitted_and_a_key_ordered(cast: Cast, owner: Owner) -> None:
    stay = paid_in_cash(cast, cast.book())
    said = do(cast, stays.admit, stay.id, 1)
    assert said == Applied(Code.STAY_ADMITTED, to="admitted", subject=stay.id)
    assert stands(owner, stay.id) == ("admitted", 2)
    assert owner.one("select admitted_at from stays") is not None
    (key,) = owner.rows("select id, state, stay_id from entry_keys")
    assert key[1:] == ("requested", stay.id)
    assert owner.rows("select kind, key_id from lock_commands") == [("set", key[0])]
    assert recorded(owner, stay.id)[-1] == ("admitted", "reserved", "admitted")
    assert owner.one("select count(*) from gate_audits") == 0


def test_the_check_in_verb_needs_at_most_eight_statements(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = paid_in_cash(cast, cast.book())
    with statements() as said:
        assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)
    assert 0 < len(said) <= 8, said


def gate_case(cast: Cast, owner: Owner, case: str) -> tuple[Booked, Code]:
    """A stay whose gate refuses, and why."""
    now = clock.now()
    if case == "early":
        stay = cast.book(starts_at=now + HOUR, price=0)
        return stay, Code.STAY_NOT_YET_OPEN
    if case == "over":
        stay = cast.book(starts_at=now - 20 * HOUR, ends_at=now - HOUR, price=0)
        return stay, Code.STAY_WINDOW_OVER
    if case == "due":
        return cast.book(price=1), Code.BALANCE_DUE
    stay = cast.book(price=0)
    if case == "inactive":
        owner.run("update spaces set active = false")
        return stay, Code.SPACE_NOT_USABLE
    before = cast.book(
        price=0, starts_at=now - 5 * HOUR, ends_at=now - timedelta(minutes=5, seconds=30)
    )
    clock.set_source(lambda: now - HOUR)
    assert isinstance(do(cast, stays.admit, before.id, 1), Applied)
    clock.set_source(None)
    if case == "occupied":
        return stay, Code.SPACE_TAKEN
    assert isinstance(do(cast, stays.depart, before.id, 2), Applied)
    return stay, Code.SPACE_QUARANTINED


@pytest.mark.parametrize("case", ["early", "over", "due", "inactive", "occupied", "quarantined"])
def test_the_gate_refuses_and_leaves_an_audit_row(cast: Cast, owner: Owner, case: str) -> None:
    stay, code = gate_case(cast, owner, case)
    keys = owner.one("select count(*) from entry_keys")
    said = do(cast, stays.admit, stay.id, 1)
    assert isinstance(said, Refused)
    assert said.code == code
    assert stands(owner, stay.id) == ("reserved", 1)
    assert owner.one("select count(*) from entry_keys") == keys
    (audit,) = owner.rows("select code, stay_id, actor_name, rule, length(digest) from gate_audits")
    assert audit[:3] == (code, stay.id, cast.sato.name)
    assert audit[3] in ("window", "space", "settled")
    assert audit[4] == 64


@pytest.mark.parametrize(
    ("state", "code"), [("processing", Code.PAYMENT_PENDING), ("unknown", Code.PAYMENT_UNKNOWN)]
)
def test_money_on_its_way_does_not_open_the_gate(
    cast: Cast, owner: Owner, state: str, code: Code
) -> None:
    stay = cast.book()
    owner.run(
        "insert into payments (facility_id, purpose, subject_id, stay_id, attempt, amount,"
        " currency, state, idempotency_key)"
        " values (%s, 'reservation_balance', %s, %s, 1, 6000, 'JPY', 'open', 'k')",
        stay.facility_id,
        stay.id,
        stay.id,
    )
    owner.run("set session_replication_role = replica")
    owner.run("update payments set state = %s", state)
    owner.run("set session_replication_role = origin")
    said = do(cast, stays.admit, stay.id, 1)
    assert isinstance(said, Refused)
    assert said.code == code


def test_e8_the_window_ends_at_its_end(cast: Cast, owner: Owner) -> None:
    now = clock.now()
    stay = cast.book(price=0, starts_at=now - HOUR, ends_at=now + HOUR)
    clock.set_source(lambda: now + HOUR)
    said = do(cast, stays.admit, stay.id, 1)
    assert isinstance(said, Refused)
    assert said.code == Code.STAY_WINDOW_OVER
    clock.set_source(lambda: now + HOUR - timedelta(seconds=1))
    assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)


def test_a_house_may_let_people_in_early(cast: Cast, owner: Owner) -> None:
    stay = cast.book(price=0, starts_at=clock.now() + timedelta(minutes=30))
    owner.run("update facilities set early_minutes = 31")
    assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)


def test_two_people_admit_at_once_and_one_key_is_made(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = paid_in_cash(cast, cast.book())
    said = at_once(app, *[lambda: do(cast, stays.admit, stay.id, 1)] * 6)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.STAY_ADMITTED] + [Code.STAY_ALREADY_ADMITTED] * 5
    assert owner.row(
        "select (select count(*) from entry_keys), (select count(*) from lock_commands)"
    ) == (1, 1)
    assert recorded(owner, stay.id).count(("admitted", "reserved", "admitted")) == 1


def test_two_guests_admitted_at_once_do_not_share_a_space(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    """One stay is in its last minutes, the next may come early: both windows are open."""
    now = clock.now()
    first = cast.book(price=0, starts_at=now - HOUR, ends_at=now + timedelta(minutes=10))
    second = cast.book(price=0, starts_at=now + timedelta(minutes=10))
    owner.run("update facilities set early_minutes = 30")
    for _ in range(3):
        said = at_once(
            app,
            lambda: do(cast, stays.admit, first.id, 1),
            lambda: do(cast, stays.admit, second.id, 1),
        )
        codes = sorted(getattr(one, "code", repr(one)) for one in said)
        assert codes == [Code.SPACE_TAKEN, Code.STAY_ADMITTED]
        owner.run("delete from lock_commands; delete from entry_keys")
        owner.run("set session_replication_role = replica")
        owner.run("update stays set state = 'reserved', version = 1, admitted_at = null")
        owner.run("set session_replication_role = origin")


# Depart -----------------------------------------------------------------------------------------


def admitted(cast: Cast, **more: Any) -> Booked:
    stay = cast.book(**{"price": 0, **more})
    assert isinstance(do(cast, stays.admit, stay.id, 1, house=stay.facility_id), Applied)
    return stay


def test_departing_orders_the_removal_of_the_key(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast)
    said = do(cast, stays.depart, stay.id, 2)
    assert said == Applied(Code.STAY_DEPARTED, to="departed", subject=stay.id)
    assert owner.rows("select state from entry_keys") == [("revoking",)]
    assert owner.rows("select kind from lock_commands order by no") == [("set",), ("remove",)]


def test_two_people_check_out_at_once(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = admitted(cast)
    said = at_once(app, *[lambda: do(cast, stays.depart, stay.id, 2)] * 4)
    codes = sorted(getattr(one, "code", repr(one)) for one in said)
    assert codes == [Code.STAY_ALREADY_DEPARTED] * 3 + [Code.STAY_DEPARTED]
    assert owner.one("select count(*) from lock_commands where kind = 'remove'") == 1


# Cancel -----------------------------------------------------------------------------------------


def test_a_cancelled_stay_owes_nothing_and_frees_its_space(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    said = do(cast, stays.cancel, stay.id, 1)
    assert said == Applied(Code.STAY_CANCELLED, to="cancelled", subject=stay.id)
    assert balance(owner, stay.id) == 0
    assert isinstance(create(cast, wanted(cast)), Applied)
    assert owner.one("select count(*) from outbox where event_type = 'stay_cancelled'") == 1


def test_a_fee_is_kept(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    assert isinstance(do(cast, stays.cancel, stay.id, 1, 2000), Applied)
    assert balance(owner, stay.id) == 2000
    assert owner.rows("select kind, amount from ledger_lines order by id") == [
        ("charge", 6000),
        ("charge_reversed", -6000),
        ("fee", 2000),
    ]


@pytest.mark.parametrize("fee", [6001, -1])
def test_an_impossible_fee_changes_nothing(cast: Cast, owner: Owner, fee: int) -> None:
    stay = cast.book()
    said = do(cast, stays.cancel, stay.id, 1, fee)
    assert isinstance(said, Refused)
    assert said.code == Code.FEE_EXCEEDS_PRICE
    assert stands(owner, stay.id) == ("reserved", 1)
    assert balance(owner, stay.id) == 6000


def test_cash_of_a_cancelled_stay_stays_owed_on_the_folio(cast: Cast, owner: Owner) -> None:
    stay = paid_in_cash(cast, cast.book())
    assert isinstance(do(cast, stays.cancel, stay.id, 1, 1000), Applied)
    assert balance(owner, stay.id) == -5000
    assert owner.one("select count(*) from refunds") == 0


# No-show and reinstate --------------------------------------------------------------------------


def test_a_no_show_frees_the_space_and_keeps_the_money(cast: Cast, owner: Owner) -> None:
    stay = paid_in_cash(cast, cast.book())
    assert isinstance(do(cast, stays.mark_no_show, stay.id, 1), Applied)
    assert balance(owner, stay.id) == 0
    assert isinstance(create(cast, wanted(cast)), Applied)
    said = do(cast, stays.reinstate, stay.id, 2)
    assert said == Refused(Code.SPACE_TAKEN)
    assert stands(owner, stay.id) == ("no_show", 2)


def test_a_no_show_comes_after_all(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    do(cast, stays.mark_no_show, stay.id, 1)
    said = do(cast, stays.reinstate, stay.id, 2)
    assert said == Applied(Code.STAY_REINSTATED, to="reserved", subject=stay.id)
    assert recorded(owner, stay.id)[1:] == [
        ("no_show", "reserved", "no_show"),
        ("reinstated", "no_show", "reserved"),
    ]


def test_nobody_is_late_before_the_stay_begins(cast: Cast) -> None:
    stay = cast.book(starts_at=clock.now() + HOUR)
    said = do(cast, stays.mark_no_show, stay.id, 1)
    assert isinstance(said, Refused)
    assert said.code == Code.STAY_NOT_YET_LATE


def test_a_no_show_of_yesterday_is_not_reinstated(cast: Cast) -> None:
    now = clock.now()
    stay = cast.book(starts_at=now - HOUR, ends_at=now + HOUR)
    do(cast, stays.mark_no_show, stay.id, 1)
    clock.set_source(lambda: now + 2 * HOUR)
    said = do(cast, stays.reinstate, stay.id, 2)
    assert isinstance(said, Refused)
    assert said.code == Code.STAY_WINDOW_OVER


# Every verb -------------------------------------------------------------------------------------

VERBS = {
    "admit": (stays.admit, Code.STAY_ALREADY_ADMITTED),
    "depart": (stays.depart, Code.STAY_ALREADY_DEPARTED),
    "cancel": (stays.cancel, Code.STAY_ALREADY_CANCELLED),
    "mark_no_show": (stays.mark_no_show, Code.STAY_ALREADY_NO_SHOW),
    "reinstate": (stays.reinstate, Code.STAY_ALREADY_RESERVED),
}
BEFORE: dict[str, tuple[str, ...]] = {
    "admit": (),
    "depart": ("admit",),
    "cancel": (),
    "mark_no_show": (),
    "reinstate": ("mark_no_show",),
}


def led_to(cast: Cast, name: str) -> tuple[Booked, int]:
    """A stay on which the verb is possible, and its version."""
    stay = cast.book(price=0)
    for number, step in enumerate(BEFORE[name]):
        assert isinstance(do(cast, VERBS[step][0], stay.id, number + 1), Applied)
    return stay, 1 + len(BEFORE[name])


@pytest.mark.parametrize("name", VERBS)
def test_a_second_click_is_calm(cast: Cast, owner: Owner, name: str) -> None:
    verb, already = VERBS[name]
    stay, version = led_to(cast, name)
    assert isinstance(do(cast, verb, stay.id, version), Applied)
    records = recorded(owner, stay.id)
    assert do(cast, verb, stay.id, version) == Noop(already, subject=stay.id)
    assert recorded(owner, stay.id) == records


@pytest.mark.parametrize("name", VERBS)
def test_a_stale_page_changes_nothing(cast: Cast, owner: Owner, name: str) -> None:
    stay, version = led_to(cast, name)
    before = stands(owner, stay.id)
    for seen in (version - 1, version + 1, -1):
        said = do(cast, VERBS[name][0], stay.id, seen)
        assert isinstance(said, Conflict)
        assert said.code == Code.STALE_PAGE
        assert (said.current.state, said.current.version) == before
        assert said.current.by == cast.sato.name
        assert said.current.since is not None
    assert stands(owner, stay.id) == before


@pytest.mark.parametrize("name", VERBS)
def test_what_is_not_there_or_anothers_is_not_found(cast: Cast, owner: Owner, name: str) -> None:
    theirs = cast.book(cast.osaka, price=0)
    for stay in (uuid4(), theirs.id):
        assert do(cast, VERBS[name][0], stay, 1) == Refused(Code.NOT_FOUND)
    assert stands(owner, theirs.id) == ("reserved", 1)


@pytest.mark.parametrize("name", ["admit", "cancel", "mark_no_show", "reinstate"])
def test_a_departed_stay_is_over(cast: Cast, owner: Owner, name: str) -> None:
    stay = admitted(cast)
    do(cast, stays.depart, stay.id, 2)
    said = do(cast, VERBS[name][0], stay.id, 3)
    assert isinstance(said, Conflict)
    assert said.code == Code.STAY_STATE_CHANGED
    assert said.current.state == "departed"
    assert stands(owner, stay.id) == ("departed", 3)


def test_cancel_against_admit_has_one_winner(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = cast.book(price=0)
    said = at_once(
        app,
        lambda: do(cast, stays.admit, stay.id, 1),
        lambda: do(cast, stays.cancel, stay.id, 1),
    )
    won = [one for one in said if isinstance(one, Applied)]
    lost = [one for one in said if isinstance(one, Conflict)]
    assert (len(won), len(lost)) == (1, 1)
    assert stands(owner, stay.id) == (won[0].to, 2)
    keys = owner.one("select count(*) from entry_keys")
    assert keys == (1 if won[0].to == "admitted" else 0)


def test_the_outbox_row_is_written_with_the_change(cast: Cast, owner: Owner) -> None:
    stay = cast.book()

    def half() -> None:
        with cast.transaction(cast.tokyo.id) as tx:
            assert isinstance(stays.cancel(tx, cast.sato.actor, stay.id, 1), Applied)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert stands(owner, stay.id) == ("reserved", 1)
    assert owner.one("select count(*) from outbox where event_type = 'stay_cancelled'") == 0
    assert outbox.PRIORITY["entry_key_issued"] < outbox.OTHER
