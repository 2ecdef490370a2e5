"""More than one person in a stay, on pages: booked, shown, changed, and each in the register."""

import csv
from io import StringIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import Page, expect

from portal import clock
from portal.db import SYSTEM
from portal.verbs import facilities, stays
from tests.cast import Booked, Cast
from tests.web.audit import audit, by_id, form_data, main_of, words
from tests.web.serving import Served
from tests.web.staff.desk import code, look, row, text

NEW, CREATE = "/staff/stays/new", "/staff/stays"
TYPED = {"name": "山田 花子", "address": "東京都大田区1-1", "contact": "090-1234-5678"}


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato)


def booked(client: FlaskClient, **typed: str) -> Any:
    form = form_data(look(client, NEW), CREATE) | {"name": "山田 花子"}
    return client.post(CREATE, data=form | typed)


def counted(client: FlaskClient, stay: Booked, persons: str) -> Any:
    url = f"/staff/stays/{stay.id}/persons"
    return client.post(url, data=form_data(look(client, url), url) | {"persons": persons})


def filled(client: FlaskClient, url: str, person: int = 0, **typed: str) -> Any:
    asked = f"{url}?person={person}" if person else url
    data = form_data(audit(client.get(asked), client), url) | typed
    return client.post(url, data=data)


def guests(page: Any) -> list[str]:
    return [words(one) for one in main_of(page).iter("li")]


def test_the_desk_books_for_several(cast: Cast, client: FlaskClient, lang: str) -> None:
    cast.speaks(cast.sato, lang)
    assert form_data(look(client, NEW, lang), CREATE)["persons"] == "1"
    made = booked(client, persons="３")
    assert made.status_code == 303
    told = {"ja": ("人数3", "3名"), "en": ("Persons3", "3 persons")}[lang]
    assert told[0] in text(look(client, made.location, lang))
    for listed in ("/staff/stays", "/staff/"):
        assert told[1] in text(look(client, listed, lang)), listed


@pytest.mark.parametrize("typed", ["", "0", "51", "2.5", "many"])
def test_what_is_no_number_of_persons_is_told_at_its_field(
    cast: Cast, client: FlaskClient, typed: str
) -> None:
    stay = cast.book()
    for answer in (booked(client, persons=typed), counted(client, stay, typed)):
        assert answer.status_code == 422
        assert by_id(audit(answer, client), "persons-error") is not None
    assert row(cast, stay).persons == 1


def test_one_person_is_not_said(cast: Cast, client: FlaskClient) -> None:
    stay = cast.book()
    for url in (f"/staff/stays/{stay.id}", "/staff/stays", f"/g/{stay.token}"):
        told = words(main_of(audit(client.get(url), client)))
        assert "人数1" not in told
        assert "1名" not in told


def test_the_desk_changes_it(cast: Cast, client: FlaskClient, lang: str) -> None:
    cast.speaks(cast.sato, lang)
    stay = cast.book()
    url = f"/staff/stays/{stay.id}"
    look(client, f"{url}/persons", lang)
    done = counted(client, stay, "4")
    page = audit(client.get(done.location), client, lang)
    assert code(page) == "STAY_PERSONS_CHANGED"
    for told in {"ja": ("人数4", "人数の変更", "1 → 4"), "en": ("Persons changed", "1 → 4")}[lang]:
        assert told in text(page), told
    guest = cast.app.test_client()
    told = words(main_of(audit(guest.get(f"/g/{stay.token}?lang={lang}"), guest, lang)))
    assert {"ja": "人数4", "en": "Persons4"}[lang] in told


def test_a_refusal_keeps_what_was_typed(cast: Cast, client: FlaskClient) -> None:
    stay = cast.book(plan="night", price=0)
    with cast.transaction(stay.facility_id) as tx:
        stays.admit(tx, SYSTEM, stay.id, 1)
        facilities.require_register(tx, SYSTEM, True)
    refused = counted(client, stay, "2")
    assert refused.status_code == 422
    page = audit(refused, client)
    assert code(page) == "REGISTER_MISSING"
    assert form_data(page, f"/staff/stays/{stay.id}/persons")["persons"] == "2"


def test_a_guest_fills_the_register_in_one_by_one(cast: Cast, lang: str) -> None:
    stay = cast.book(plan="night", persons=3)
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    page = audit(client.get(f"{url}?lang={lang}"), client, lang)
    assert {"ja": "あと3人分", "en": "3 entries are missing"}[lang] in words(main_of(page))
    assert len(guests(page)) == 3
    first = filled(client, url, **TYPED)
    page = audit(client.get(first.location), client, lang)
    assert code(page) == "REGISTER_ENTRY_FILLED"
    assert {"ja": "あと2人分", "en": "2 entries are missing"}[lang] in words(main_of(page))
    data = form_data(page, url)
    assert (data["companion"], data["name"]) == ("2", ""), "the next who is missing"
    assert filled(client, url, name="山田 太郎").status_code == 303
    last = filled(client, url, name="山田 一郎", lives_abroad="y")
    assert last.status_code == 422
    assert 'id="passport-error"' in last.text
    last = filled(client, url, name="山田 一郎")
    assert last.location == f"/g/{stay.token}"
    assert code(audit(client.get(last.location), client)) == "REGISTER_FILLED"
    page = audit(client.get(url), client, lang)
    assert {"ja": "全員分の記入", "en": "Everybody is entered"}[lang] in words(main_of(page))
    assert "太郎" not in client.get(url).text, "what is sealed is not shown by the link"
    again = filled(client, url, person=2, name="山田 次郎")
    assert again.status_code == 303
    with cast.transaction(stay.facility_id) as tx:
        found = tx.rows("select person, version from guest_registers order by person")
    assert [tuple(one) for one in found] == [(1, 1), (2, 2), (3, 1)]


def test_a_name_is_asked_of_each_and_an_address_of_the_first(cast: Cast) -> None:
    stay = cast.book(plan="night", persons=2)
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    assert filled(client, url, **TYPED | {"address": ""}).status_code == 422
    early = filled(client, url, person=2, name="山田 太郎")
    assert early.status_code == 422
    assert code(audit(early, client)) == "REGISTER_INCOMPLETE"
    filled(client, url, **TYPED)
    nameless = filled(client, url, person=2, name=" ")
    assert 'id="name-error"' in nameless.text
    assert filled(client, url, person=2, name="山田 太郎").status_code == 303


@pytest.mark.parametrize("companion", ["3", "0", "-1", "999999", "x", "2\u0662"])
def test_a_crafted_person_has_no_entry(cast: Cast, companion: str) -> None:
    """What is no number of a companion is the guest who has booked."""
    stay = cast.book(plan="night", persons=2)
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    data = form_data(audit(client.get(url), client), url) | TYPED
    said = client.post(url, data=data | {"companion": companion})
    assert said.status_code == (404 if companion == "3" else 303)
    with cast.transaction(stay.facility_id) as tx:
        found = tx.rows("select person from guest_registers")
    assert {one.person for one in found} <= {1}
    for asked in ("0", "3", "x", "-1"):
        assert client.get(f"{url}?person={asked}").status_code == 200


def test_the_desk_fills_in_reads_and_adds_who_joins(cast: Cast, lang: str) -> None:
    stay = cast.book(plan="night", price=0, persons=2)
    client, url = cast.signed_in(cast.sato, locale=lang), f"/staff/stays/{stay.id}/register"
    filled(client, url, **TYPED)
    filled(client, url, name="山田 太郎", address="大阪")
    page = look(client, url, lang)
    assert {"ja": "全員分の記入", "en": "Everybody is entered"}[lang] in text(page)
    read = client.post(f"{url}/open", data={**form_data(page, f"{url}/open"), "reason": "本人確認"})
    told = text(audit(read, client, lang))
    for word in ("山田 花子", "山田 太郎", "東京都大田区1-1", "大阪"):
        assert word in told, word
    assert {"ja": "2人目", "en": "Guest 2"}[lang] in told
    joins = {"ja": "追加で宿泊する方", "en": "Somebody who joins"}[lang]
    assert joins not in text(page)
    with cast.transaction(stay.facility_id) as tx:
        stays.admit(tx, SYSTEM, stay.id, 1)
    assert joins in text(look(client, url, lang))
    assert filled(client, url, person=3, name="山田 一郎").status_code == 303
    assert counted(client, stay, "3").status_code == 303
    guest = cast.app.test_client()
    crafted = f"/g/{stay.token}/register"
    data = form_data(audit(guest.get(crafted), guest), crafted) | TYPED
    assert guest.post(crafted, data=data | {"companion": "4"}).status_code == 404


def test_the_file_for_an_authority_has_a_row_for_each(cast: Cast) -> None:
    stay = cast.book(plan="night", persons=2)
    guest, url = cast.app.test_client(), f"/g/{stay.token}/register"
    filled(guest, url, **TYPED)
    filled(guest, url, name="山田 太郎")
    client, export = cast.signed_in(cast.suzuki, cast.tokyo), "/staff/registers"
    day = clock.local_day(clock.now(), "Asia/Tokyo").isoformat()
    asked = {"first": day, "last": day, "reason": "保健所"}
    got = client.post(export, data=form_data(look(client, export), export) | asked)
    rows = list(csv.reader(StringIO(got.data.decode("utf-8-sig"))))
    assert [one[4:6] for one in rows[1:]] == [
        ["山田 花子", "東京都大田区1-1"],
        ["山田 太郎", "東京都大田区1-1"],
    ]


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_three_are_entered_in_a_browser(cast: Cast, served: Served, page: Page, width: int) -> None:
    stay = cast.book(plan="night", persons=3)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{served.url}/g/{stay.token}/register?lang=en")
    for number, name in enumerate(("Emma Smith", "Tom Smith", "Ann Smith")):
        page.fill("#name", name)
        if not number:
            page.fill("#address", "1-1 Ota, Tokyo")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-code=REGISTER_FILLED]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
