"""Joining: what is agreed, what is typed, where it leads. As a phone without script sends it."""

from uuid import uuid4
from xml.etree.ElementTree import Element

import pytest
from flask.testing import FlaskClient

from sandbox.watch import statements
from tests.cast import Cast
from tests.outside import Owner
from tests.web.audit import audit, form_data, main_of, words
from tests.web.shop import Shop

PLACE = "/join/haneda-capsule/monthly"
TYPED = {
    "name": "田中 次郎",
    "kana": "タナカ ジロウ",
    "email": "jiro@guest.example",
    "phone": "090-1234-5678",
    "terms": "y",
}


@pytest.fixture
def sold(shop: Shop) -> Cast:
    """With a plan that can be joined."""
    assert shop.cast.monthly
    return shop.cast


def form(client: FlaskClient, lang: str = "ja") -> dict[str, str]:
    return form_data(audit(client.get(f"{PLACE}?lang={lang}"), client, lang), PLACE)


def last_page(client: FlaskClient, lang: str = "ja", **typed: str) -> Element:
    answer = client.post(PLACE, data=form(client, lang) | TYPED | typed)
    assert answer.status_code == 200
    return audit(answer, client, lang)


def test_what_is_agreed_stands_on_the_last_page_and_is_kept(
    sold: Cast, client: FlaskClient, owner: Owner, lang: str
) -> None:
    page = last_page(client, lang)
    said = words(main_of(page))
    told = {
        "ja": ("月会員", "月額 ￥9,800", "承認後、フロントで", "自動更新", "いつでも", "2026-11"),
        "en": ("Monthly", "¥9,800 a month", "once your application is approved", "By itself",
               "at any time", "2026-11"),
    }[lang]  # fmt: skip
    assert [one for one in told if one not in said] == []
    assert "jiro@guest.example" in said
    sent = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert sent.status_code == 303
    kept = owner.one("select confirmation from memberships")
    assert kept["language"] == lang
    assert [one for one in told if one not in str(kept["promises"])] == []


def test_the_application_leads_to_a_page_of_its_own(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    page = last_page(client)
    sent = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert sent.location.startswith("/m/")
    shown = client.get(sent.location)
    assert "お申し込みを送信しました" in words(main_of(audit(shown, client, "ja")))
    assert owner.row(
        "select g.name, g.kana, g.email, g.phone, g.preferred_locale from guests g"
    ) == ("田中 次郎", "タナカ ジロウ", "jiro@guest.example", "+819012345678", "ja")
    # The same form again is the same application.
    again = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert again.location == sent.location
    assert owner.one("select count(*) from memberships") == 1


def test_nothing_is_sent_before_the_last_page(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    last_page(client)
    assert owner.one("select count(*) from memberships") == 0
    assert owner.one("select count(*) from guests") == 0


def test_back_from_the_last_page_nothing_is_lost(sold: Cast, client: FlaskClient) -> None:
    page = last_page(client)
    back = client.post(PLACE, data=form_data(page, PLACE) | {"step": "change"})
    typed = form_data(audit(back, client, "ja"), PLACE)
    assert {name: typed[name] for name in TYPED} == TYPED


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"name": ""}, "入力してください"),
        ({"name": " \u200b "}, "入力してください"),
        ({"name": "a" * 101}, ""),
        ({"email": ""}, "入力してください"),
        ({"email": "jiro"}, ""),
        ({"phone": "12"}, ""),
        ({"locale": "fr"}, ""),
        ({"form_key": "x"}, ""),
        ({"version": "x"}, ""),
    ],
)
@pytest.mark.parametrize("step", ["", "apply"])
def test_what_is_not_right_is_said_and_kept(
    sold: Cast, client: FlaskClient, owner: Owner, typed: dict[str, str], told: str, step: str
) -> None:
    answer = client.post(PLACE, data=form(client) | TYPED | typed | {"step": step})
    assert answer.status_code == 422
    page = audit(answer, client, "ja")
    assert told in words(main_of(page))
    kept = form_data(page, PLACE)
    assert kept["kana"] == TYPED["kana"]
    assert owner.one("select count(*) from memberships") == 0


def test_without_agreement_nobody_joins(sold: Cast, client: FlaskClient, owner: Owner) -> None:
    typed = {name: value for name, value in TYPED.items() if name != "terms"}
    answer = client.post(PLACE, data=form(client) | typed | {"step": "apply"})
    assert answer.status_code == 422
    assert "規約への同意が必要です" in words(main_of(audit(answer, client, "ja")))
    assert owner.one("select count(*) from memberships") == 0


def test_a_second_membership_of_the_plan_is_refused_with_what_was_typed(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    client.post(PLACE, data=form_data(last_page(client), PLACE) | {"step": "apply"})
    page = last_page(client, email="JIRO@guest.example")
    answer = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert answer.status_code == 422
    said = words(main_of(audit(answer, client, "ja")))
    assert "すでにあります" in said
    assert "JIRO@guest.example" in said
    assert owner.one("select count(*) from memberships") == 1


@pytest.mark.parametrize(
    "place",
    ["/join/haneda-capsule/none", "/join/nowhere/monthly", "/join/umeda-sauna/monthly"],
)
def test_what_is_not_sold_there_has_no_page(sold: Cast, client: FlaskClient, place: str) -> None:
    assert sold.osaka.slug == "umeda-sauna"
    assert client.get(place).status_code == 404


def test_a_retired_plan_has_no_page_and_takes_no_form(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    page = last_page(client)
    owner.run("update membership_plans set sold = false, retired_at = now()")
    assert client.get(PLACE).status_code == 404
    sent = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert sent.status_code == 404
    assert owner.one("select count(*) from memberships") == 0


def test_what_changed_under_the_last_page_is_shown_and_agreed_to_anew(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    page = last_page(client)
    owner.run("update membership_plans set price = 12000, version = version + 1")
    answer = client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    assert answer.status_code == 422
    page = audit(answer, client, "ja")
    said = words(main_of(page))
    assert "もう一度" in said
    assert "月額 ￥12,000" in said
    assert owner.one("select count(*) from memberships") == 0
    client.post(PLACE, data=form_data(page, PLACE) | {"step": "apply"})
    price, kept = owner.row("select price, confirmation from memberships")
    assert (price, "月額 ￥12,000" in str(kept)) == (12_000, True)


def test_a_forged_post_is_refused(sold: Cast, client: FlaskClient, owner: Owner) -> None:
    forged = TYPED | {"form_key": str(uuid4()), "version": "1", "locale": "ja", "step": "apply"}
    assert client.post(PLACE, data=forged).status_code == 400
    assert owner.one("select count(*) from memberships") == 0


def test_the_pages_need_few_statements(sold: Cast, client: FlaskClient) -> None:
    with statements() as said:
        client.get(PLACE)
    assert len(said) <= 4, said


def test_nobody_makes_the_house_write_to_a_hundred_strangers(
    sold: Cast, client: FlaskClient, owner: Owner
) -> None:
    """Each application is a letter to an address that anybody may type."""
    answers = []
    for number in range(21):
        typed = form(client) | TYPED | {"email": f"{number}@stranger.example", "step": "apply"}
        answers.append(client.post(PLACE, data=typed).status_code)
    assert answers == [303] * 20 + [429]
    assert owner.one("select count(*) from outbox") == 20
