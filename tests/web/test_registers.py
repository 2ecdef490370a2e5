"""The register of guests on pages: the guest's, the desk's, and the file for an authority."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal import clock
from portal.verbs import facilities
from portal.web.sheet import FORMULA, safe
from tests.cast import Booked, Cast
from tests.web.audit import audit, form_data, main_of, words
from tests.web.staff.desk import code, look, text

TYPED = {"name": "山田 花子", "address": "東京都大田区1-1", "contact": "090-1234-5678"}
PAGE = "/staff/registers"


@pytest.fixture
def stay(cast: Cast) -> Booked:
    return cast.book(plan="night")


def fill(cast: Cast, stay: Booked, **typed: str) -> None:
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    data = form_data(audit(client.get(url), client), url) | TYPED | typed
    assert client.post(url, data=data).status_code == 303


def test_a_guest_fills_it_in(cast: Cast, stay: Booked, lang: str) -> None:
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    page = audit(client.get(f"{url}?lang={lang}"), client, lang)
    data = form_data(page, url)
    assert data["name"] == "山田 花子", "what the booking says already"
    done = client.post(url, data=data | TYPED)
    assert done.status_code == 303
    page = audit(client.get(done.location), client, lang)
    assert code(page) == "REGISTER_FILLED"
    told = words(main_of(audit(client.get(url), client, lang)))
    assert ("記入済み" if lang == "ja" else "Filled in on") in told
    assert "大田区" not in client.get(url).text, "what is sealed is not shown by the link"


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ({"address": ""}, ["address"]),
        ({"contact": " "}, ["contact"]),
        ({"lives_abroad": "y"}, ["nationality", "passport"]),
        ({"lives_abroad": "y", "nationality": "UK"}, ["passport"]),
        ({"name": "x" * 101}, ["name"]),
        ({"address": "x" * 301}, ["address"]),
    ],
)
def test_what_is_missing_is_told_at_its_field(
    cast: Cast, stay: Booked, typed: dict[str, str], fields: list[str]
) -> None:
    client, url = cast.app.test_client(), f"/g/{stay.token}/register"
    data = form_data(audit(client.get(url), client), url) | TYPED | typed
    refused = client.post(url, data=data)
    audit(refused, client)
    assert refused.status_code == 422
    for field in fields:
        assert f'id="{field}-error"' in refused.text


def test_a_stay_by_the_day_has_none(cast: Cast) -> None:
    stay = cast.book(plan="nap")
    assert cast.app.test_client().get(f"/g/{stay.token}/register").status_code == 404
    assert cast.signed_in(cast.sato).get(f"/staff/stays/{stay.id}/register").status_code == 404


def test_the_desk_opens_it_for_a_reason_only(cast: Cast, stay: Booked, lang: str) -> None:
    client, url = cast.signed_in(cast.sato, locale=lang), f"/staff/stays/{stay.id}/register"
    done = client.post(url, data=form_data(look(client, url, lang), url) | TYPED)
    assert done.status_code == 303
    page = look(client, url, lang)
    assert "大田区" not in text(page)
    opened = f"{url}/open"
    data = form_data(page, opened)
    assert client.post(opened, data=data).status_code == 422
    shown = client.post(opened, data={**data, "reason": "<b>本人確認</b>"})
    page = audit(shown, client, lang)
    assert (shown.status_code, code(page)) == (200, "REGISTER_OPENED")
    assert "東京都大田区1-1" in text(page)
    assert shown.headers["Cache-Control"] == "no-store"
    manager = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    told = text(look(manager, PAGE, lang))
    assert "<b>本人確認</b>" in told
    assert "佐藤 健" in told


def test_a_manager_takes_it_out_for_an_authority(cast: Cast, stay: Booked) -> None:
    fill(cast, stay, name="=1+1", address='@SUM(A1) "x", y', contact="+81 90")
    client = cast.signed_in(cast.suzuki, cast.tokyo)
    day = clock.local_day(clock.now() - timedelta(minutes=5), "Asia/Tokyo").isoformat()
    data = form_data(look(client, PAGE), PAGE) | {"first": day, "last": day}
    assert client.post(PAGE, data=data).status_code == 422, "without a reason"
    got = client.post(PAGE, data={**data, "reason": "大田区保健所 第12号"})
    assert (got.status_code, got.mimetype) == (200, "text/csv")
    assert got.data.startswith("\ufeff".encode()), "Excel"
    assert "attachment" in got.headers["Content-Disposition"]
    headings, row = csv.reader(StringIO(got.data.decode("utf-8-sig")))
    assert headings[0] == "予約番号"
    assert row[4:7] == ["'=1+1", '\'@SUM(A1) "x", y', "'+81 90"]
    assert "大田区保健所 第12号" in text(look(client, PAGE))
    desk = cast.signed_in(cast.sato)
    assert desk.get(PAGE).status_code == 403
    assert desk.post(PAGE, data={**data, "reason": "x"}).status_code == 403


@given(st.text())
def test_no_cell_is_a_formula(cell: str) -> None:
    assert not safe(cell).startswith(FORMULA)
    assert safe(cell).endswith(cell)


def test_the_gate_says_what_is_missing_and_the_page_too(cast: Cast, lang: str) -> None:
    stay = cast.book(plan="night", price=0)
    with cast.transaction(stay.facility_id) as tx:
        facilities.require_register(tx, cast.suzuki.actor, True)
    client = cast.signed_in(cast.sato, locale=lang)
    told = text(look(client, f"/staff/stays/{stay.id}", lang))
    assert (
        "宿泊者名簿の記入がまだ" if lang == "ja" else "register of guests is not complete"
    ) in told


def test_a_manager_decides_whether_the_gate_asks(cast: Cast) -> None:
    client, url = cast.signed_in(cast.suzuki, cast.tokyo), "/staff/settings/register"
    data = form_data(look(client, "/staff/settings"), url)
    assert client.post(url, data={**data, "register_required": "y"}).status_code == 303
    with cast.transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select register_required from facilities")
