"""More than one person in a stay: its lodging tax, its register, and the room at an entrance."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock
from portal.db import SYSTEM
from portal.models.stay import MOST_PERSONS
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.register import Entry, sharing
from portal.verbs import bookings, cash, facilities, registers, stay_changes, stays
from tests.cast import Booked, Cast
from tests.outside import Owner, at_once
from tests.verbs.test_gate import entrance, walk_in
from tests.verbs.test_lodging_taxes import BEGINS, book, taxed  # noqa: F401
from tests.verbs.test_tax import lines

HERE = Entry("山田 花子", "東京都大田区1-1", "+819012345678", lives_abroad=False)
TARO = Entry("山田 太郎", "", "", lives_abroad=False)
EMMA = Entry("Emma Smith", "1 High St, Leeds", "emma@x.example", True, "UK", "AB1234567")


def do(cast: Cast, verb: Any, *args: Any, house: UUID | None = None) -> Outcome:
    with cast.transaction(house or cast.tokyo.id) as tx:
        said: Outcome = verb(tx, cast.sato.actor, *args)
        return said


def change(cast: Cast, stay: Booked, persons: int, seen: int | None = None) -> Outcome:
    with cast.transaction(stay.facility_id) as tx:
        seen = seen or tx.scalar("select version from stays where id = :id", id=stay.id)
        return stay_changes.change_persons(tx, cast.sato.actor, stay.id, seen, persons)


def fill(cast: Cast, stay: Booked, entry: Entry, person: int) -> Code:
    return do(cast, registers.fill, stay.id, entry, person).code


def admit(cast: Cast, stay: Booked) -> Outcome:
    with cast.transaction(stay.facility_id) as tx:
        seen = tx.scalar("select version from stays where id = :id", id=stay.id)
        return stays.admit(tx, SYSTEM, stay.id, seen)


def persons(owner: Owner, stay: Booked) -> int:
    return int(owner.one("select persons from stays where id = %s", stay.id))


def entered(owner: Owner, stay: Booked) -> list[int]:
    asked = "select person from guest_registers where stay_id = %s order by person"
    return [person for (person,) in owner.rows(asked, stay.id)]


def notes(owner: Owner, stay: Booked) -> list[tuple[str, str]]:
    return owner.rows(
        "select verb, reason from transitions where subject_id = %s and event = 'changed'"
        " order by id",
        stay.id,
    )


def required(cast: Cast) -> None:
    with cast.transaction(cast.tokyo.id) as tx:
        facilities.require_register(tx, SYSTEM, True)


# --- how many


def test_a_stay_is_of_one_person_unless_more_are_booked(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    assert persons(owner, cast.book()) == 1
    assert persons(owner, cast.book(space="A02", persons=3)) == 3


@pytest.mark.parametrize("many", [0, -1, MOST_PERSONS + 1])
def test_so_many_are_no_stay(cast: Cast, inside: Flask, owner: Owner, many: int) -> None:
    with pytest.raises(AssertionError, match="STAY_PERSONS_IMPOSSIBLE"):
        cast.book(persons=many)
    stay = cast.book()
    told = Refused(Code.STAY_PERSONS_IMPOSSIBLE, {"count": MOST_PERSONS})
    assert change(cast, stay, many) == told
    assert persons(owner, stay) == 1


def test_a_change_is_recorded_and_the_price_stays(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = cast.book(price=6000)
    said = change(cast, stay, 4)
    assert said == Applied(Code.STAY_PERSONS_CHANGED, to="reserved", subject=stay.id)
    assert owner.row("select persons, version from stays where id = %s", stay.id) == (4, 2)
    assert notes(owner, stay) == [("change_persons", "1 → 4")]
    assert [line[1] for line in lines(stay)] == [6000]


def test_the_same_again_is_calm_and_an_old_page_changes_nothing(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = cast.book()
    change(cast, stay, 2, 1)
    assert change(cast, stay, 2, 1) == Noop(Code.STAY_PERSONS_UNCHANGED, subject=stay.id)
    late = change(cast, stay, 3, 1)
    assert isinstance(late, Conflict)
    assert late.code == Code.STALE_PAGE
    assert persons(owner, stay) == 2


def test_until_the_departure(cast: Cast, inside: Flask) -> None:
    stay = cast.book(price=0)
    admit(cast, stay)
    assert change(cast, stay, 2) == Applied(
        Code.STAY_PERSONS_CHANGED, to="admitted", subject=stay.id
    )
    do(cast, stays.depart, stay.id, 3)
    assert change(cast, stay, 1) == Refused(Code.STAY_OVER)
    said = do(cast, stay_changes.change_persons, stay.id, 1, 2, house=cast.osaka.id)
    assert said == Refused(Code.NOT_FOUND)


def test_eight_who_change_it_at_once_are_one_change(cast: Cast, app: Flask, owner: Owner) -> None:
    stay = cast.book()
    said = at_once(app, *[partial(change, cast, stay, 2 + n, 1) for n in range(8)])
    assert sorted(type(one).__name__ for one in said) == ["Applied", *["Conflict"] * 7]
    assert owner.one("select version from stays where id = %s", stay.id) == 2


def test_a_visit_of_a_membership_is_one_persons(cast: Cast, inside: Flask, owner: Owner) -> None:
    """Of so many visits a month or of as many as one likes; what is paid for is another matter."""
    cast.for_members()
    cast.for_members(price=1000)
    for number, quota in enumerate((4, None)):
        plan = cast.offer(f"q{number}", "会員", "Member", quota=quota)
        joined = cast.join(plan, {**cast.hanako, "email": f"{number}@guest.example"})
        booking = {"plan": "members-0", "price": 0, "member": joined, "space": f"A0{number + 1}"}
        with pytest.raises(AssertionError, match="VISIT_IS_ONE_PERSONS"):
            cast.book(**booking, persons=2)
        visit = cast.book(**booking)
        assert change(cast, visit, 2) == Refused(Code.VISIT_IS_ONE_PERSONS)
    paid = cast.book(plan="members-1000", price=1000, member=joined, space="A03", persons=2)
    assert persons(owner, paid) == 2
    used = owner.rows("select used from quota_months")
    assert used == [(1,)]


# --- the lodging tax


def test_each_person_is_taxed_for_their_own_share(taxed: Cast) -> None:  # noqa: F811
    """33,000 with tax are 10,000 without it for each of three, and 30,000 for one."""
    assert lines(book(taxed, 33_000, persons=3))[1:] == [("charge", 300, "lodging_tax", 0)]
    assert lines(book(taxed, 33_000, space="A02"))[1:] == [("charge", 200, "lodging_tax", 0)]


def test_more_and_fewer_persons_settle_it_anew(taxed: Cast, owner: Owner) -> None:  # noqa: F811
    stay = book(taxed, 33_000)
    change(taxed, stay, 3)
    change(taxed, stay, 4)
    change(taxed, stay, 2)
    assert lines(stay)[1:] == [
        ("charge", 200, "lodging_tax", 0),
        ("charge", 100, "lodging_tax", 0),
        ("charge_reversed", -300, "lodging_tax", 0),
        ("charge", 400, "lodging_tax", 0),
    ]


def test_what_is_paid_too_much_of_it_is_owed_back(taxed: Cast, owner: Owner) -> None:  # noqa: F811
    stay = book(taxed, 33_000, persons=3)
    with taxed.transaction(stay.facility_id) as tx:
        cash.take(tx, SYSTEM, stay.id, 33_300, uuid4())
    change(taxed, stay, 4)
    assert owner.one("select sum(amount) from ledger_lines where stay_id = %s", stay.id) == -300


def test_longer_it_is_taxed_for_all_of_them(taxed: Cast) -> None:  # noqa: F811
    stay = book(taxed, 33_000, persons=3)
    ends = BEGINS + timedelta(days=1, hours=19)
    do(taxed, stay_changes.change_times, stay.id, 1, BEGINS, ends, 33_000)
    assert sum(amount for _, amount, item, _ in lines(stay) if item) == 2 * 3 * 100


# --- room


def test_an_entrance_counts_persons(cast: Cast, inside: Flask, owner: Owner) -> None:
    entrance(cast, capacity=4)
    three = cast.book(persons=3, price=0)
    two = cast.book(space="A02", persons=2, price=0)
    one = cast.book(space="A03", price=0)
    assert isinstance(admit(cast, three), Applied)
    assert admit(cast, two) == Refused(Code.ENTRANCE_FULL)
    said = do(cast, bookings.create, walk_in(cast, space="B01", persons=2))
    assert said == Refused(Code.ENTRANCE_FULL)
    assert isinstance(admit(cast, one), Applied)
    assert change(cast, three, 4) == Refused(Code.ENTRANCE_FULL)
    assert isinstance(change(cast, three, 1), Applied)
    assert isinstance(admit(cast, two), Applied)
    asked = "select rule, asks, stay_id from gate_audits order by id desc limit 1"
    assert owner.row(asked) == ("capacity", "entry", three.id)


def test_a_walk_in_is_joined_by_no_more_than_there_is_room_for(cast: Cast, inside: Flask) -> None:
    entrance(cast, capacity=3)
    said = do(cast, bookings.create, walk_in(cast, persons=2))
    assert isinstance(said, Applied)
    assert said.subject is not None
    here = Booked(said.subject, cast.tokyo.id, "")
    assert isinstance(change(cast, here, 3), Applied)
    assert change(cast, here, 4) == Refused(Code.ENTRANCE_FULL)


def test_of_a_reservation_the_room_is_asked_when_it_comes_in(cast: Cast, inside: Flask) -> None:
    entrance(cast, capacity=2)
    stay = cast.book(price=0)
    assert isinstance(change(cast, stay, 3), Applied)
    assert admit(cast, stay) == Refused(Code.ENTRANCE_FULL)


def test_two_who_are_joined_at_once_do_not_take_the_same_place(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    entrance(cast, capacity=3)
    two = [cast.book(space=space, price=0) for space in ("A01", "A02")]
    for stay in two:
        admit(cast, stay)
    said = at_once(app, *[partial(change, cast, stay, 2) for stay in two])
    assert sorted(type(one).__name__ for one in said) == ["Applied", "Refused"]
    assert owner.one("select sum(persons) from stays") == 3


# --- the register


def test_each_person_has_an_entry(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = cast.book(plan="night", price=0, persons=3)
    told = [
        fill(cast, stay, *one) for one in ((EMMA, 2), (HERE, 1), (HERE, 1), (TARO, 3), (TARO, 4))
    ]
    assert told == [
        Code.REGISTER_ENTRY_FILLED,
        Code.REGISTER_ENTRY_FILLED,
        Code.REGISTER_UNCHANGED,
        Code.REGISTER_FILLED,
        Code.NOT_FOUND,
    ]
    assert entered(owner, stay) == [1, 2, 3]
    with cast.transaction(stay.facility_id) as tx:
        day = clock.local_day(clock.now(), cast.tokyo.zone)
        rows = [registers.unsealed(row) for row in registers.entries(tx, day, day)]
    assert [(row["name"], row["address"], row["contact"]) for row in rows] == [
        ("山田 花子", HERE.address, HERE.contact),
        ("Emma Smith", EMMA.address, EMMA.contact),
        ("山田 太郎", HERE.address, HERE.contact),
    ]


def test_a_companions_passport_is_not_taken_for_the_guests(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    stay = cast.book(plan="night", price=0, persons=2)
    fill(cast, stay, EMMA, 2)
    assert owner.one("select document_mark from guests") is None
    fill(cast, stay, EMMA, 1)
    assert owner.one("select document_mark from guests") is not None


def test_who_comes_along_shares_what_is_there(cast: Cast, inside: Flask, owner: Owner) -> None:
    """And nothing else: a name of their own, and of whoever lives abroad a passport."""
    stay = cast.book(plan="night", price=0, persons=2)
    assert fill(cast, stay, TARO, 2) == Code.REGISTER_INCOMPLETE, "the first says nothing yet"
    fill(cast, stay, HERE, 1)
    for lacking in (replace(TARO, name=" "), replace(TARO, lives_abroad=True)):
        assert fill(cast, stay, lacking, 2) == Code.REGISTER_INCOMPLETE
    assert fill(cast, stay, replace(TARO, address=" "), 2) == Code.REGISTER_FILLED
    assert fill(cast, stay, replace(HERE, address=""), 1) == Code.REGISTER_INCOMPLETE
    told = sharing(replace(TARO, address="大阪"), {"address": "東京", "contact": "090"})
    assert (told.address, told.contact) == ("大阪", "090")


def test_the_gate_asks_for_all_of_them(cast: Cast, inside: Flask) -> None:
    required(cast)
    stay = cast.book(plan="night", price=0, persons=2)
    fill(cast, stay, HERE, 1)
    assert admit(cast, stay) == Refused(Code.REGISTER_MISSING)
    fill(cast, stay, TARO, 2)
    assert isinstance(admit(cast, stay), Applied)


def test_who_joins_a_guest_in_house_is_entered_first(
    cast: Cast, inside: Flask, owner: Owner
) -> None:
    required(cast)
    stay = cast.book(plan="night", price=0)
    fill(cast, stay, HERE, 1)
    assert fill(cast, stay, TARO, 2) == Code.NOT_FOUND, "before arrival the number is changed"
    admit(cast, stay)
    assert change(cast, stay, 2) == Refused(Code.REGISTER_MISSING)
    with cast.transaction(stay.facility_id) as tx:
        assert registers.fill(tx, SYSTEM, stay.id, TARO, 2).code == Code.NOT_FOUND, "at the desk"
    assert fill(cast, stay, TARO, 2) == Code.REGISTER_FILLED
    with cast.transaction(stay.facility_id) as tx:
        day = clock.local_day(clock.now(), cast.tokyo.zone)
        assert len(registers.entries(tx, day, day)) == 1, "who has not come is in no list"
    assert isinstance(change(cast, stay, 2), Applied)
    assert entered(owner, stay) == [1, 2]


def test_where_the_house_does_not_ask_nobody_waits_for_the_register(
    cast: Cast, inside: Flask
) -> None:
    stay = cast.book(plan="night", price=0)
    admit(cast, stay)
    assert isinstance(change(cast, stay, 2), Applied)


def test_of_fewer_persons_the_last_entries_go(cast: Cast, inside: Flask, owner: Owner) -> None:
    """Of this stay and of this house; that it was done is kept."""
    stay, other = (cast.book(plan="night", price=0, space=at, persons=3) for at in ("A01", "A02"))
    for one in (stay, other):
        for person, entry in ((1, HERE), (2, TARO), (3, EMMA)):
            fill(cast, one, entry, person)
    assert isinstance(change(cast, stay, 1), Applied)
    assert (entered(owner, stay), entered(owner, other)) == ([1], [1, 2, 3])
    assert notes(owner, stay) == [("change_persons", "3 → 1"), ("take_out_of_register", "2")]
    with cast.transaction(cast.osaka.id) as tx:
        owner.run("update stays set persons = 1 where id = %s", other.id)
        assert tx.scalar("select drop_superfluous_registers(:id)", id=other.id) == 0
    assert entered(owner, other) == [1, 2, 3]
    change(cast, stay, 2)
    assert notes(owner, stay)[2:] == [("change_persons", "1 → 2")]


def test_a_reading_tells_of_how_many(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = cast.book(plan="night", price=0, persons=2)
    fill(cast, stay, HERE, 1)
    fill(cast, stay, TARO, 2)
    do(cast, registers.open_sealed, stay.id, "本人確認")
    assert owner.one("select rows_read from register_readings") == 2


def test_the_purge_takes_all_of_a_stay(cast: Cast, inside: Flask, owner: Owner) -> None:
    stay = cast.book(plan="night", price=0, persons=2)
    fill(cast, stay, HERE, 1)
    fill(cast, stay, TARO, 2)
    owner.run("update guest_registers set filled_at = now() - interval '4 years'")
    owner.run(
        "update stays set starts_at = starts_at - interval '4 years',"
        " ends_at = ends_at - interval '4 years'"
    )
    with cast.transaction(None) as tx:
        assert tx.scalar("select purge_registers(10)") == 2
    assert entered(owner, stay) == []
