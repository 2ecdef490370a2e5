"""The house's tables of lodging tax, written by its managers, and the line that follows."""

from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient

from tests.cast import Cast
from tests.web.audit import audit, form_data, main_of, words
from tests.web.staff.desk import code, look, text

PAGE = "/staff/settings/lodging-tax"
TOKYO = {
    "valid_from": "2002-10-01",
    "least_1": "10,000", "most_1": "14999", "amount_1": "100",
    "least_2": "15000", "amount_2": "200",
}  # fmt: skip


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo)


def test_a_manager_writes_a_table(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    data = form_data(look(client, PAGE, lang), PAGE) | TOKYO
    done = client.post(PAGE, data=data)
    assert (done.status_code, done.location) == (303, PAGE)
    page = look(client, PAGE, lang)
    assert code(page) == "SETTINGS_SAVED"
    told = text(page)
    wanted = {"ja": ("￥15,000以上", "鈴木 愛"), "en": ("¥15,000 or more", "鈴木 愛")}[lang]
    assert all(one in told for one in wanted)
    again = client.post(PAGE, data=data)
    assert code(look(client, again.location, lang)) == "SETTINGS_UNCHANGED"


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ({"least_2": "14000"}, "LODGING_TAX_OVERLAP"),
        ({"least_2": "16000"}, "LODGING_TAX_GAP"),
        ({"most_2": "20000"}, "LODGING_TAX_GAP"),
        ({"most_1": "1"}, "LODGING_TAX_ORDER"),
        ({"least_1": "", "most_1": "", "amount_1": "", "least_2": "", "amount_2": ""},
         "LODGING_TAX_EMPTY"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_what_was_typed_is_kept(
    client: FlaskClient, typed: dict[str, str], wrong: str
) -> None:
    data = form_data(look(client, PAGE), PAGE) | TOKYO | typed
    refused = client.post(PAGE, data=data)
    page = audit(refused, client)
    assert (refused.status_code, code(page)) == (422, wrong)
    kept = form_data(page, PAGE)
    assert {name: kept[name] for name in typed} == typed


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"amount_1": ""}, "amount_1"),
        ({"least_1": ""}, "least_1"),
        ({"amount_3": "5"}, "least_3"),
        ({"amount_1": "x"}, "amount_1"),
        ({"least_1": "-1"}, "least_1"),
        ({"valid_from": "2002-13-01"}, "valid_from"),
    ],
)
def test_half_a_line_is_told_at_its_field(
    client: FlaskClient, typed: dict[str, str], field: str
) -> None:
    data = form_data(look(client, PAGE), PAGE) | TOKYO | typed
    refused = client.post(PAGE, data=data)
    audit(refused, client)
    assert refused.status_code == 422
    assert f'id="{field}-error"' in refused.text


def test_guest_and_desk_see_the_line(cast: Cast, client: FlaskClient, lang: str) -> None:
    client.post(PAGE, data=form_data(look(client, PAGE), PAGE) | TOKYO)
    begins = datetime.now(UTC) + timedelta(days=3)
    stay = cast.book(plan="night", price=16_500, starts_at=begins)
    named = {"ja": "宿泊税", "en": "Lodging tax"}[lang]
    guest = cast.app.test_client()
    shown = words(main_of(audit(guest.get(f"/g/{stay.token}?lang={lang}"), guest, lang)))
    assert named in shown
    assert "16,700" in shown
    desk = cast.signed_in(cast.sato, locale=lang)
    assert named in text(look(desk, f"/staff/stays/{stay.id}", lang))


def test_it_is_the_managers(cast: Cast) -> None:
    desk = cast.signed_in(cast.sato)
    assert desk.get(PAGE).status_code == 403
