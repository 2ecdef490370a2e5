"""Today at a glance."""

from datetime import UTC, datetime, timedelta

from flask import Flask

from portal.verbs import keys, stays
from sandbox.watch import statements
from tests.cast import Cast
from tests.web.audit import by_id, words
from tests.web.staff.desk import (
    HTMX,
    NOON,
    admitted,
    at,
    code,
    has_form,
    look,
    pay,
    press,
    read,
    row,
    text,
)

TODAY = "/staff/"


def section(page, name: str) -> str:
    heading = by_id(page, name)
    assert heading is not None
    return next(words(part) for part in page.iter("section") if heading in list(part.iter()))


def test_an_empty_house_says_so(cast: Cast, lang: str) -> None:
    page = look(cast.signed_in(cast.sato, locale=lang), TODAY, lang)
    assert len(list(page.iter("table"))) == 0


def test_the_day_in_four_lists(cast: Cast, lang: str) -> None:
    with at(NOON):
        arriving = cast.book(space="A01", starts_at=NOON + timedelta(hours=3))
        leaving = admitted(cast, space="A02", ends_at=NOON + timedelta(hours=6))
        staying = admitted(cast, guest=cast.emma, space="A03", ends_at=NOON + timedelta(days=2))
        cast.book(space="B01", starts_at=NOON + timedelta(days=1))
        page = look(cast.signed_in(cast.sato, locale=lang), TODAY, lang)
    codes = {stay.id: row(cast, stay).code for stay in (arriving, leaving, staying)}
    assert codes[arriving.id] in section(page, "arrivals")
    assert codes[leaving.id] in section(page, "departures")
    assert codes[staying.id] in section(page, "staying")
    doors = section(page, "doors")
    assert codes[leaving.id] in doors
    assert codes[staying.id] in doors
    assert len([form for form in page.iter("form") if "check-" in form.get("action", "")]) == 3


def test_a_confirmed_door_is_not_watched(cast: Cast) -> None:
    stay = admitted(cast)
    with cast.transaction(cast.tokyo.id) as tx:
        key = tx.scalar("select id from entry_keys where stay_id = :id", id=stay.id)
        keys.observe(tx, key, status="set", code_id="seen")
    page = look(cast.signed_in(cast.sato), TODAY)
    assert row(cast, stay).code not in section(page, "doors")


def test_check_in_from_today_lands_on_today(cast: Cast) -> None:
    stay = cast.book()
    pay(cast, stay, 6000)
    client = cast.signed_in(cast.sato)
    done = press(client, look(client, TODAY), f"/staff/stays/{stay.id}/check-in")
    assert (done.status_code, done.location) == (303, TODAY)
    page = look(client, TODAY)
    assert code(page) == "STAY_ADMITTED"
    assert row(cast, stay).state == "admitted"
    out = press(client, page, f"/staff/stays/{stay.id}/check-out", headers=HTMX)
    assert code(read(client, out, 200)) == "STAY_DEPARTED"
    assert row(cast, stay).state == "departed"


def test_the_gate_speaks_beside_the_button_and_refuses_the_press(cast: Cast, lang: str) -> None:
    stay = cast.book(price=6000)
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, TODAY, lang)
    assert "6,000" in section(page, "arrivals").split(row(cast, stay).code)[1]
    action = f"/staff/stays/{stay.id}/check-in"
    assert has_form(page, action)
    refused = read(client, press(client, page, action, headers=HTMX), 422)
    assert code(refused) == "BALANCE_DUE"
    assert row(cast, stay).state == "reserved"


def test_every_ground_of_the_gate_is_told_without_a_press(cast: Cast) -> None:
    """Early, over, occupied, not yet paid: what the verb would say stands there already."""
    with at(NOON):
        cast.book(space="A01", starts_at=NOON + timedelta(hours=5))
        cast.book(space="A02", starts_at=NOON - timedelta(days=2), ends_at=NOON)
        admitted(cast, space="A03", ends_at=NOON + timedelta(minutes=5))
        cast.book(space="A03", starts_at=NOON + timedelta(minutes=5), price=0)
        client = cast.signed_in(cast.sato, locale="en")
        early = text(look(client, TODAY))
    with at(NOON + timedelta(minutes=10)):
        later = text(look(client, TODAY))
    assert "too early" in early
    assert "ended at" in early
    assert "not arrived" in early
    assert "Another stay has this space" in later


def test_e7_just_after_midnight_the_list_is_the_new_days(cast: Cast) -> None:
    """00:30 in Tokyo is still yesterday in UTC."""
    midnight = datetime(2026, 10, 31, 15, 30, tzinfo=UTC)
    with at(midnight):
        evening = cast.book(space="A01", starts_at=datetime(2026, 11, 1, 6, tzinfo=UTC))
        tomorrow = cast.book(space="A02", starts_at=datetime(2026, 11, 1, 15, tzinfo=UTC))
        page = look(cast.signed_in(cast.sato, locale="en"), TODAY)
    assert "Sun 1 Nov 2026" in text(page)
    assert row(cast, evening).code in section(page, "arrivals")
    assert row(cast, tomorrow).code not in section(page, "arrivals")


def test_another_houses_day_is_not_ours(cast: Cast) -> None:
    theirs = cast.book(cast.osaka)
    page = look(cast.signed_in(cast.sato), TODAY)
    assert row(cast, theirs).code not in text(page)


def test_the_page_costs_the_same_for_one_arrival_and_for_many(app: Flask, cast: Cast) -> None:
    house = cast.open_house("big", "大", "Big", spaces=[f"C{n:03}" for n in range(40)])
    person = cast.hire("big@monban.example", "大", [(house, "front_desk")])
    client = cast.signed_in(person)
    cast.book(house, space="C000", actor=person.actor)
    with statements() as one:
        look(client, TODAY)
    for n in range(1, 40):
        cast.book(house, space=f"C{n:03}", actor=person.actor)
    with statements() as many:
        page = look(client, TODAY)
    assert len([form for form in page.iter("form") if "check-in" in form.get("action", "")]) == 40
    assert len(many) == len(one) <= 8


def test_who_left_and_came_today_is_counted(cast: Cast) -> None:
    stay = admitted(cast)
    with cast.transaction(cast.tokyo.id) as tx:
        stays.depart(tx, cast.sato.actor, stay.id, 2)
    seen = text(look(cast.signed_in(cast.sato, locale="en"), TODAY))
    assert "1 checked in today" in seen
    assert "1 checked out today" in seen
