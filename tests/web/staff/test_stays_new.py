"""Booking a stay at the desk."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal import clock
from tests.cast import Cast
from tests.web.audit import by_id, form_data
from tests.web.staff.desk import HTMX, NOON, at, code, count, look, read, text

NEW = "/staff/stays/new"
CREATE = "/staff/stays"
FAMILY = "👨‍👩‍👧‍👦"


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato)


def filled(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    """The form as it is shown, with a name, and what the test wants otherwise."""
    data = form_data(look(client, NEW), CREATE)
    return {**data, "name": "山田 花子", "kana": "ヤマダ ハナコ", **changes}


def send(client: FlaskClient, **changes: Any) -> Any:
    return client.post(CREATE, data=filled(client, **changes))


def made(cast: Cast) -> Any:
    with cast.transaction(cast.tokyo.id) as tx:
        return tx.row(
            """
            select s.*, g.name, g.kana, g.search_key, g.email, g.phone, g.phone_digits,
                   g.preferred_locale,
                   (select sum(amount) from ledger_lines l where l.stay_id = s.id) as owed
            from stays s join guests g on g.id = s.guest_id
            """
        )


def field(page: Any, name: str) -> str:
    """The value that the form shows."""
    return form_data(page, CREATE)[name]


def error(page: Any, name: str) -> str:
    found = by_id(page, f"{name}-error")
    return "" if found is None else "".join(found.itertext())


# The good way --------------------------------------------------------------------------------


def test_the_form_shows_the_houses_usual_times(cast: Cast, lang: str) -> None:
    with at(NOON):
        page = look(cast.signed_in(cast.sato, locale=lang), NEW, lang)
    assert field(page, "arrive_day") == "2026-10-10"
    assert field(page, "arrive_time") == "15:00"
    assert (field(page, "leave_day"), field(page, "leave_time")) == ("2026-10-11", "10:00")
    assert field(page, "plan_id") == str(cast.tokyo.plans["night"])


def test_a_stay_is_booked_as_it_was_typed(cast: Cast, client: FlaskClient) -> None:
    done = send(
        client,
        phone="０９０-１２３４-５６７８",
        email="Hanako@Guest.example",
        locale="en",
        arrive_day="2026-11-01",
        leave_day="2026-11-03",
        price="１２，０００円",
        deposit="2,000",
        source="walk_in",
        note="上段希望\n夜遅く到着",
        space_id=str(cast.tokyo.spaces["A03"]),
    )
    stay = made(cast)
    assert (done.status_code, done.location) == (303, f"/staff/stays/{stay.id}")
    assert (stay.name, stay.kana, stay.preferred_locale) == ("山田 花子", "ヤマダ ハナコ", "en")
    assert (stay.phone, stay.email) == ("+819012345678", "Hanako@guest.example")
    assert (stay.owed, stay.deposit_due, stay.source) == (12000, 2000, "walk_in")
    assert stay.space_id == cast.tokyo.spaces["A03"]
    assert stay.note == "上段希望\n夜遅く到着"
    assert code(look(client, done.location)) == "STAY_CREATED"


def test_an_empty_price_is_the_plans(cast: Cast, client: FlaskClient) -> None:
    send(client, arrive_day="2026-11-01", leave_day="2026-11-04")
    stay = made(cast)
    assert (stay.owed, stay.deposit_due) == (18000, 2000)


def test_nothing_is_a_price(cast: Cast, client: FlaskClient) -> None:
    send(client, price="0", deposit="")
    stay = made(cast)
    assert (stay.owed, stay.deposit_due) == (None, 0)


def test_without_a_plan_the_price_must_be_written(cast: Cast, client: FlaskClient) -> None:
    page = read(client, send(client, plan_id=""), 422)
    assert error(page, "price")
    assert count(cast, "stays") == 0
    send(client, plan_id="", price="500")
    assert made(cast).plan_id is None


def test_the_form_tells_price_and_free_spaces_for_what_is_asked(cast: Cast, lang: str) -> None:
    with at(NOON):
        cast.book(space="A01", starts_at=NOON + timedelta(days=2))
        client = cast.signed_in(cast.sato, locale=lang)
        page = look(
            client,
            f"{NEW}?plan_id={cast.tokyo.plans['night']}&arrive_day=2026-10-12&leave_day=2026-10-15",
            lang,
        )
    offer = by_id(page, "offer")
    assert offer is not None
    told = "".join(offer.itertext())
    assert "18,000" in told
    assert ("空きは3件" if lang == "ja" else "3 spaces are free") in told
    options = list(offer.iter("option"))
    assert len(options) == 4
    assert options[-1].get("value") == str(cast.tokyo.spaces["A01"]), "the taken one is last"


def test_htmx_lands_on_the_new_stay(cast: Cast, client: FlaskClient) -> None:
    done = client.post(CREATE, data=filled(client), headers=HTMX)
    page = read(client, done, 200)
    assert code(page) == "STAY_CREATED"
    assert done.headers["HX-Push-Url"] == f"/staff/stays/{made(cast).id}"


def test_a_sauna_sells_by_the_visit_from_now(cast: Cast) -> None:
    with at(NOON + timedelta(minutes=7)):
        page = look(cast.signed_in(cast.suzuki, cast.osaka), NEW)
    assert (field(page, "arrive_day"), field(page, "arrive_time")) == ("2026-10-10", "12:05")
    assert (field(page, "leave_day"), field(page, "leave_time")) == ("2026-10-10", "15:05")


# Refused, told, and nothing lost -------------------------------------------------------------


def test_a_taken_space_is_told_beside_the_form_with_everything_kept(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.sato, locale=lang)
    typed = filled(
        client, email="a@guest.example", note="覚え書き", price="7000", leave_day="2027-01-12",
        arrive_day="2027-01-10", space_id=str(cast.tokyo.spaces["A01"]),
    )  # fmt: skip
    client.post(CREATE, data=typed)
    other = {**typed, "form_key": str(uuid4()), "name": "別の人"}
    for headers in (None, HTMX):
        page = read(client, client.post(CREATE, data=other, headers=headers), 422)
        assert code(page) == "SPACE_TAKEN"
        kept = form_data(page, CREATE)
        assert {**other, "csrf_token": ""} == {**kept, "csrf_token": ""}
    assert count(cast, "stays") == 1


def test_what_the_verb_refuses_is_told_beside_the_form(cast: Cast, client: FlaskClient) -> None:
    good = filled(client, arrive_day="2026-10-10", leave_day="2026-10-11")
    for changes, refusal in (
        ({"leave_day": "2026-10-10", "leave_time": "15:00"}, "STAY_TIMES_IMPOSSIBLE"),
        ({"leave_day": "2026-10-01"}, "STAY_TIMES_IMPOSSIBLE"),
        ({"leave_day": "2028-10-10"}, "STAY_TIMES_IMPOSSIBLE"),
        ({"price": "1000", "deposit": "1001"}, "DEPOSIT_EXCEEDS_PRICE"),
    ):
        page = read(client, client.post(CREATE, data={**good, **changes}), 422)
        assert code(page) == refusal
    assert count(cast, "stays") == 0


# Without these nothing is booked; without a plan, because no price is written either.
REQUIRED = (
    "name",
    "plan_id",
    "space_id",
    "arrive_day",
    "leave_day",
    "arrive_time",
    "leave_time",
    "form_key",
)

BAD = [
    ("name", ""),
    ("name", "   "),
    ("name", "\u3000"),
    ("name", "\u200b\u200d"),
    ("name", "a" * 101),
    ("name", "a\x00b"),
    ("name", "a\u0007b"),
    ("kana", "ア" * 101),
    ("kana", "\x00"),
    ("email", "not an address"),
    ("email", "a@b@c.example"),
    ("email", "a" * 250 + "@guest.example"),
    ("email", "a\x00@guest.example"),
    ("email", "a@guest.example\nBcc: x@x.example"),
    ("phone", "12"),
    ("phone", "9" * 41),
    ("phone", FAMILY),
    ("phone", "\x00"),
    ("locale", "fr"),
    ("locale", "\x00"),
    ("plan_id", "x"),
    ("plan_id", "\x00"),
    ("plan_id", "00000000-0000-0000-0000-000000000000"),
    ("space_id", ""),
    ("space_id", "x"),
    ("space_id", "\x00"),
    ("space_id", "00000000-0000-0000-0000-000000000000"),
    ("arrive_day", ""),
    ("arrive_day", "2026-02-30"),
    ("arrive_day", "0001-01-01"),
    ("arrive_day", "9999-12-31"),
    ("arrive_day", "10/10/2026"),
    ("arrive_day", "\x00"),
    ("leave_day", "-1"),
    ("arrive_time", "25:00"),
    ("arrive_time", ""),
    ("leave_time", "noon"),
    ("price", "-1"),
    ("price", "1.5"),
    ("price", "99999999999999999999"),
    ("price", "100000000"),
    ("price", "七千"),
    ("price", "1e3"),
    ("price", FAMILY),
    ("price", "\x00"),
    ("deposit", "-1"),
    ("deposit", "x"),
    ("source", "web"),
    ("source", "x"),
    ("note", "あ" * 2001),
    ("note", "\x00"),
    ("form_key", ""),
    ("form_key", "x"),
]


@pytest.mark.parametrize("name", sorted({name for name, _ in BAD}))
def test_a_bad_value_is_told_at_its_field_and_nothing_is_stored(
    cast: Cast, client: FlaskClient, name: str
) -> None:
    good = filled(client, email="keep@guest.example")
    for value in [value for field_name, value in BAD if field_name == name]:
        page = read(client, client.post(CREATE, data={**good, name: value}), 422)
        if name == "form_key":
            assert any(element.get("role") == "alert" for element in page.iter("p"))
        else:
            assert error(page, name), f"nothing is said of {value!r}"
        if name != "email":
            assert field(page, "email") == "keep@guest.example"
    del good[name]
    assert client.post(CREATE, data=good).status_code in (303, 422)
    assert count(cast, "stays") == (0 if name in REQUIRED else 1)


def test_broken_utf8_stores_nothing(cast: Cast, client: FlaskClient) -> None:
    good = filled(client)
    kind = "application/x-www-form-urlencoded"
    for name in good:
        others = {key: value for key, value in good.items() if key != name}
        body = f"{urlencode(others)}&{name}=%ff%fe%80"
        answered = client.post(CREATE, data=body, content_type=kind)
        assert answered.status_code in (400, 422), name
    assert count(cast, "stays") == 0


def test_another_houses_space_and_plan_do_not_exist_here(cast: Cast, client: FlaskClient) -> None:
    """The same answer as for an id that nobody has."""
    for name, theirs in (
        ("space_id", cast.osaka.spaces["S01"]),
        ("plan_id", cast.osaka.plans["visit"]),
    ):
        answers = [send(client, **{name: str(given)}) for given in (theirs, uuid4())]
        pages = [read(client, answered, 422) for answered in answers]
        assert error(pages[0], name) == error(pages[1], name) != ""
    assert count(cast, "stays") == count(cast, "stays", cast.osaka) == 0


def test_i10_a_facility_in_the_form_is_ignored(cast: Cast, client: FlaskClient) -> None:
    send(client, facility_id=str(cast.osaka.id), state="departed", version="9")
    assert (made(cast).state, made(cast).version) == ("reserved", 1)
    assert count(cast, "stays", cast.osaka) == 0


def test_h4_a_form_that_was_open_too_long_comes_back_with_its_values(
    cast: Cast, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cast.signed_in(cast.sato, locale=lang)
    data = filled(client, note="大事なメモ")
    monkeypatch.setitem(cast.app.config, "WTF_CSRF_TIME_LIMIT", -1)
    for headers in (None, HTMX):
        answered = client.post(CREATE, data=data, headers=headers)
        page = read(client, answered, 422)
        assert field(page, "name") == "山田 花子"
        assert field(page, "note") == "大事なメモ"
    assert count(cast, "stays") == 0


# Field cases ---------------------------------------------------------------------------------


def test_h1_a_form_sent_twice_makes_one_stay_and_both_answers_lead_to_it(cast: Cast) -> None:
    client = cast.signed_in(cast.sato)
    data = filled(client)
    with ThreadPoolExecutor(2) as both:
        cookie = client.get_cookie("monban")

        def post(_: int) -> Any:
            browser = cast.app.test_client()
            browser.set_cookie("monban", cookie.value if cookie else "")
            return browser.post(CREATE, data=data)

        at_once = list(both.map(post, range(2)))
    later = client.post(CREATE, data=data)
    with_script = client.post(CREATE, data=data, headers=HTMX)
    stay = made(cast)
    assert {(a.status_code, a.location) for a in [*at_once, later]} == {
        (303, f"/staff/stays/{stay.id}")
    }
    assert code(read(client, with_script, 200)) == "STAY_ALREADY_CREATED"
    assert (count(cast, "stays"), count(cast, "guests"), count(cast, "outbox")) == (1, 1, 0)
    assert count(cast, "ledger_lines") == 1


def test_h16_the_limits_are_told_at_the_form_and_counted_in_characters(
    cast: Cast, lang: str
) -> None:
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, NEW, lang)
    for name, limit in (("name", "100"), ("note", "2,000")):
        told = by_id(page, f"{name}-help")
        assert told is not None
        assert limit in "".join(told.itertext())
    # A family is one character to a person, seven to Unicode, eleven to a browser.
    too_long = read(client, send(client, name=FAMILY * 300, note="あ" * 20_000), 422)
    assert error(too_long, "name")
    assert error(too_long, "note")
    assert field(too_long, "name") == FAMILY * 300, "nothing typed is cut"
    assert count(cast, "stays") == 0


def test_h16_what_is_within_the_limit_is_kept_whole(cast: Cast, client: FlaskClient) -> None:
    name = "x" * 99 + "👩"
    assert send(client, name=name, note=FAMILY * 20).status_code == 303
    assert made(cast).name == name
    page = look(client, f"/staff/stays/{made(cast).id}")
    assert name in text(page)
    look(client, "/staff/")
    look(client, "/staff/stays")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati"])
def test_e7_a_day_stays_the_day_from_form_to_database_to_page(cast: Cast, zone: str) -> None:
    house = cast.open_house("far", "遠い", "Far", zone=zone, locale="en")
    person = cast.hire("far@monban.example", "Far", [(house, "front_desk")], locale="en")
    client = cast.signed_in(person)
    for arrive, leave, at_time in (("2026-11-01", "2026-11-02", "00:30"),):
        data = filled(
            client, arrive_day=arrive, leave_day=leave, arrive_time=at_time, price="100",
            leave_time="23:30", plan_id="",
        )  # fmt: skip
        done = client.post(CREATE, data=data)
        page = text(look(client, done.location))
        assert "Sun 1 Nov 2026 00:30" in page or "Sun 1 Nov 00:30" in page
        assert "Mon 2 Nov 2026 23:30" in page or "Mon 2 Nov 23:30" in page
        with cast.transaction(house.id) as tx:
            starts = tx.scalar("select starts_at from stays")
        assert clock.local(starts, zone).strftime("%Y-%m-%d %H:%M") == "2026-11-01 00:30"
        again = look(client, f"{done.location}/times")
        shown = form_data(again, f"{done.location}/times")
        assert (shown["arrive_day"], shown["leave_day"]) == (arrive, leave)


def test_e5_a_typed_time_is_the_houses_whatever_the_machines(
    cast: Cast, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        send(client, arrive_day="2026-10-10", leave_day="2026-10-12")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert made(cast).starts_at == datetime(2026, 10, 10, 6, tzinfo=UTC)
    assert made(cast).ends_at == datetime(2026, 10, 12, 1, tzinfo=UTC)


def test_a_form_prefilled_by_its_address_holds_nothing_of_a_person(client: FlaskClient) -> None:
    page = look(client, f"{NEW}?name=Evil&email=x@x.example&price=1&arrive_day=2026-12-01")
    assert (field(page, "name"), field(page, "email"), field(page, "price")) == ("", "", "")
    assert field(page, "arrive_day") == "2026-12-01"


def test_a_form_with_a_bad_address_is_still_a_form(client: FlaskClient) -> None:
    names = ("arrive_day", "arrive_time", "leave_day", "plan_id", "space_id", "source")
    for value in ("x", "2026-13-01", "１", FAMILY, "0001-01-01", "9999-12-31"):
        look(client, f"{NEW}?{urlencode(dict.fromkeys(names, value))}")
