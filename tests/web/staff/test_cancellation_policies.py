"""The manager's pages of cancellation policies, and the fee that the desk is suggested."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import clock
from tests.cast import Cast
from tests.web.audit import form_data
from tests.web.staff.desk import HTMX, code, look, press, read, row, text

PAGE = "/staff/settings/cancellation"
ROWS: dict[str, Any] = {
    "name_ja": "標準",
    "name_en": "Standard",
    "hours_1": "72",
    "fee_1": "３０",
    "back_1": "y",
    "hours_2": "0",
    "fee_2": "100",
}


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.suzuki, cast.tokyo)


def steps(cast: Cast) -> list[tuple[Any, ...]]:
    with cast.transaction(cast.tokyo.id) as tx:
        return [
            tuple(found)
            for found in tx.rows(
                "select t.version, s.hours_before, s.fee_percent, s.returns_quota"
                " from cancellation_steps s join cancellation_terms t on t.id = s.terms_id"
                " order by t.version, s.hours_before desc"
            )
        ]


def test_a_policy_is_made_chosen_and_changed(cast: Cast, lang: str) -> None:
    client = cast.signed_in(cast.suzuki, cast.tokyo, locale=lang)
    assert PAGE in [one.get("href") for one in look(client, "/staff/settings", lang).iter("a")]
    done = press(client, look(client, f"{PAGE}/new", lang), PAGE, **ROWS)
    assert (done.status_code, done.location) == (303, PAGE)
    page = look(client, PAGE, lang)
    assert code(page) == "POLICY_CREATED"
    assert "30%" in text(page)
    assert steps(cast) == [(1, 72, 30, True), (1, 0, 100, False)]

    with cast.transaction(cast.tokyo.id) as tx:
        policy = tx.scalar("select id from cancellation_policies")
    chooser = f"{PAGE}/plans/{cast.tokyo.plans['night']}"
    press(client, page, chooser, policy=str(policy))
    page = look(client, PAGE, lang)
    assert code(page) == "POLICY_CHOSEN"
    assert form_data(page, chooser)["policy"] == str(policy)

    change = f"{PAGE}/{policy}/change"
    page = look(client, change, lang)
    assert form_data(page, change)["hours_1"] == "72"
    assert form_data(page, change)["back_1"] == "y"
    press(client, page, change, fee_1="40")
    page = look(client, PAGE, lang)
    assert code(page) == "POLICY_UPDATED"
    assert steps(cast)[2:] == [(2, 72, 40, True), (2, 0, 100, False)]


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        ({"fee_1": "-1"}, "fee_1"),
        ({"fee_1": "101"}, "fee_1"),
        ({"fee_1": "half"}, "fee_1"),
        ({"fee_1": ""}, "fee_1"),
        ({"hours_1": ""}, "hours_1"),
        ({"hours_1": "8761"}, "hours_1"),
        ({"hours_2": "72"}, "hours_2"),
        ({"hours_1": "", "fee_1": "", "hours_2": "", "fee_2": ""}, "hours_1"),
        ({"name_en": " "}, "name_en"),
    ],
)
def test_what_cannot_stand_comes_back_as_typed_with_the_reason_at_its_field(
    cast: Cast, client: FlaskClient, wrong: dict[str, str], at: str
) -> None:
    typed = {**ROWS, **wrong}
    page = read(client, press(client, look(client, f"{PAGE}/new"), PAGE, **typed), 422)
    assert any(one.get("id") == f"{at}-error" for one in page.iter())
    again = form_data(page, PAGE)
    assert {name: again[name] for name in ("hours_1", "fee_1", "hours_2", "fee_2")} == {
        name: typed[name] for name in ("hours_1", "fee_1", "hours_2", "fee_2")
    }
    assert again["back_1"] == "y"
    assert steps(cast) == []


def test_h1_the_form_sent_twice_is_one_policy(cast: Cast, client: FlaskClient) -> None:
    data = {**form_data(look(client, f"{PAGE}/new"), PAGE), **ROWS}
    client.post(PAGE, data=data)
    client.post(PAGE, data=data)
    assert code(look(client, PAGE)) == "POLICY_CREATED"
    assert len(steps(cast)) == 2


def test_h7_a_form_that_was_overtaken_is_shown_again(cast: Cast, client: FlaskClient) -> None:
    change = f"{PAGE}/{cast.policy()}/change"
    old = look(client, change)
    press(client, look(client, change), change, fee_1="60")
    page = read(client, press(client, old, change, fee_1="70", headers=HTMX), 409)
    assert form_data(page, change)["fee_1"] == "70"
    assert [percent for _, _, percent, _ in steps(cast)] == [50, 60]


def test_h7_a_choice_that_was_overtaken(cast: Cast, client: FlaskClient) -> None:
    policy, chooser = cast.policy(), f"{PAGE}/plans/{cast.tokyo.plans['night']}"
    old = look(client, PAGE)
    press(client, look(client, PAGE), chooser, policy=str(policy))
    look(client, PAGE)
    press(client, old, chooser, policy=str(cast.policy()))
    assert code(look(client, PAGE)) == "STALE_PAGE"
    assert client.post(chooser, data=form_data(old, chooser) | {"policy": "x"}).status_code == 400


def test_it_is_the_managers(cast: Cast) -> None:
    desk, policy = cast.signed_in(cast.sato), cast.policy()
    data = form_data(look(desk, "/staff/facility"), "/staff/facility")
    for url in (PAGE, f"{PAGE}/new", f"{PAGE}/{policy}/change"):
        assert desk.get(url).status_code == 403
    for url in (PAGE, f"{PAGE}/{policy}/change", f"{PAGE}/plans/{cast.tokyo.plans['night']}"):
        assert desk.post(url, data={**data, **ROWS, "version": "1"}).status_code == 403
    assert len(steps(cast)) == 1


def test_the_desk_is_suggested_what_was_agreed_and_may_take_less(cast: Cast, lang: str) -> None:
    cast.policy((24, 50, False), plan="night")
    stay = cast.book(plan="night", starts_at=clock.now() + timedelta(hours=5))
    client = cast.signed_in(cast.sato, locale=lang)
    cancel = f"/staff/stays/{stay.id}/cancel"
    page = look(client, cancel, lang)
    assert form_data(page, cancel)["fee"] == "3000"
    assert "3,000" in text(page)
    press(client, page, cancel, fee="500")
    assert row(cast, stay).state == "cancelled"
    with cast.transaction(stay.facility_id) as tx:
        assert tx.scalar("select amount from ledger_lines where kind = 'fee'") == 500
