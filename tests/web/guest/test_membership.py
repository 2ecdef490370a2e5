"""A member's own page: how it stands in plain words, leaving, and staying after all."""

from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree.ElementTree import Element

import pytest
from flask.testing import FlaskClient

from portal import clock
from portal.policies.membership_end import Reason
from portal.verbs import memberships
from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import GUEST, Joined
from tests.outside import Owner
from tests.web.audit import audit, form_data, main_of, words
from tests.web.shop import Shop

NOW = datetime(2026, 11, 10, 3, tzinfo=UTC)


@pytest.fixture(autouse=True)
def now() -> Any:
    clock.set_source(lambda: NOW)
    yield
    clock.set_source(None)


def page_of(client: FlaskClient, joined: Joined, lang: str = "ja", path: str = "") -> Element:
    answer = client.get(f"/m/{joined.token}{path}?lang={lang}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    return audit(answer, client, lang)


def said(client: FlaskClient, joined: Joined, lang: str = "ja") -> str:
    return words(main_of(page_of(client, joined, lang)))


def end(shop: Shop, joined: Joined, reason: Reason) -> None:
    with shop.app.app_context():
        end_membership(shop.desk(joined.facility_id), GUEST, joined.id, Ending(reason))


def press(client: FlaskClient, joined: Joined, shown_at: str, action: str, **more: str) -> Any:
    page = page_of(client, joined, path=shown_at)
    place = f"/m/{joined.token}/{action}"
    return client.post(place, data=form_data(page, place) | more)


def test_how_it_stands_in_plain_words(shop: Shop, client: FlaskClient, lang: str) -> None:
    applied, running = shop.cast.apply(), shop.cast.join(guest=shop.cast.emma)
    told = {
        "ja": ("お申し込みを受け付けました", "解約されるまで続きます", "月額 ￥9,800"),
        "en": ("Your application has arrived", "It runs until you cancel it", "¥9,800 a month"),
    }[lang]
    assert told[0] in said(client, applied, lang)
    assert told[1] in said(client, running, lang)
    assert told[2] in said(client, running, lang)


def test_cancelling_shows_what_it_means_first(
    shop: Shop, client: FlaskClient, owner: Owner
) -> None:
    joined = shop.cast.join()
    ahead = shop.cast.book(starts_at=datetime(2026, 12, 5, 6, tzinfo=UTC), price=0)
    owner.run("update stays set membership_id = %s", joined.id)
    shown = words(main_of(page_of(client, joined, path="/cancel")))
    code = owner.one("select code from stays where id = %s", ahead.id)
    assert "今月末：2026年11月30日(月)" in shown
    assert "お支払い済み期間の終わり：2026年12月9日(水)" in shown
    assert code in shown
    assert owner.one("select state from memberships") == "active"
    answer = press(client, joined, "/cancel", "cancel", when="month_boundary")
    assert answer.status_code == 303
    assert "2026年11月30日(月) に終了します" in said(client, joined)
    assert owner.one("select state from stays") == "cancelled"
    # Shown again it offers no second end, but a way back.
    assert "続ける" in words(main_of(page_of(client, joined, path="/cancel")))


def test_the_end_of_what_is_paid_for(shop: Shop, client: FlaskClient, owner: Owner) -> None:
    joined = shop.cast.join()
    press(client, joined, "/cancel", "cancel", when="period_end")
    assert owner.one("select ends_at from memberships") == datetime(2026, 12, 9, 15, tzinfo=UTC)


def test_one_end_is_offered_where_both_are_the_same(shop: Shop, client: FlaskClient) -> None:
    clock.set_source(lambda: datetime(2026, 11, 1, 0, tzinfo=UTC))
    joined = shop.cast.join()
    choices = [one for one in page_of(client, joined, path="/cancel").iter("input")
               if one.get("type") == "radio"]  # fmt: skip
    assert [one.get("value") for one in choices] == ["month_boundary"]


def test_going_on_after_all(shop: Shop, client: FlaskClient, owner: Owner) -> None:
    joined = shop.cast.join()
    end(shop, joined, "self_cancel")
    owner.run("update memberships set ends_at = now() + interval '1 day'")
    answer = press(client, joined, "", "resume")
    assert answer.status_code == 303
    assert "会員契約は続きます" in said(client, joined)
    assert owner.row("select state, ends_at from memberships") == ("active", None)


def test_an_application_is_taken_back(shop: Shop, client: FlaskClient, owner: Owner) -> None:
    joined = shop.cast.apply()
    press(client, joined, "/cancel", "cancel")
    assert owner.one("select state from memberships") == "ended"
    text = said(client, joined)
    assert "お申し込みは終了しました" in text
    assert "料金は一切いただいておりません" in text


def test_what_has_ended_says_so_and_offers_nothing(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    joined = shop.cast.join()
    end(shop, joined, "force_cancel")
    page = page_of(client, joined, lang)
    text = words(main_of(page))
    assert {"ja": "に終了しました", "en": "It ended on"}[lang] in text
    forms = [form.get("action") for form in main_of(page).iter("form")]
    assert [place for place in forms if place and place.endswith(("resume", "cancel"))] == []


def test_a_page_that_is_out_of_date_changes_nothing(
    shop: Shop, client: FlaskClient, owner: Owner
) -> None:
    joined = shop.cast.join()
    page = page_of(client, joined, path="/cancel")
    end(shop, joined, "self_cancel")
    owner.run("update memberships set ends_at = now() + interval '1 day'")
    with shop.app.app_context():
        memberships.resume(shop.desk(joined.facility_id), GUEST, joined.id, 3)
    place = f"/m/{joined.token}/cancel"
    client.post(place, data=form_data(page, place) | {"when": "month_boundary"})
    assert "表示が古くなっていました" in said(client, joined)
    assert owner.one("select state from memberships") == "active"


@pytest.mark.parametrize("data", [{"when": "never"}, {"version": "x"}, {"version": ""}])
def test_a_crafted_form_is_refused(
    shop: Shop, client: FlaskClient, owner: Owner, data: dict[str, str]
) -> None:
    joined = shop.cast.join()
    assert press(client, joined, "/cancel", "cancel", **data).status_code == 400
    assert owner.one("select state from memberships") == "active"


def test_a_link_of_one_kind_opens_no_page_of_another(shop: Shop, client: FlaskClient) -> None:
    joined, stay = shop.cast.join(), shop.cast.book()
    for place in (f"/g/{joined.token}", f"/m/{stay.token}", "/m/nothing", f"/m/{joined.id}"):
        assert client.get(place).status_code == 404


def test_another_members_link_reaches_only_their_own(
    shop: Shop, client: FlaskClient, owner: Owner
) -> None:
    mine, theirs = shop.cast.join(), shop.cast.join(guest=shop.cast.emma)
    page = page_of(client, mine, path="/cancel")
    data = form_data(page, f"/m/{mine.token}/cancel") | {"when": "month_boundary"}
    client.post(f"/m/{mine.token}/cancel", data=data)
    states = dict(owner.rows("select id, state from memberships"))
    assert states == {mine.id: "scheduled_to_end", theirs.id: "active"}


def test_the_language_of_messages_is_the_members(
    shop: Shop, client: FlaskClient, owner: Owner
) -> None:
    joined = shop.cast.join()
    page = page_of(client, joined, "en")
    place = f"/m/{joined.token}/language"
    client.post(place, data=form_data(page, place) | {"lang": "en"})
    assert owner.one("select preferred_locale from guests") == "en"
    press(client, joined, "/cancel", "cancel", when="month_boundary")
    assert owner.one("select locale from outbox order by created_at desc limit 1") == "en"
    assert client.post(place, data=form_data(page, place) | {"lang": "fr"}).status_code == 400


def test_the_page_needs_few_statements(shop: Shop, client: FlaskClient, owner: Owner) -> None:
    joined = shop.cast.join()
    for number, space in enumerate(("A01", "A02", "A03")):
        shop.cast.book(space=space, starts_at=NOW + timedelta(days=20 + number), price=0)
    owner.run("update stays set membership_id = %s", joined.id)
    with statements() as done:
        client.get(f"/m/{joined.token}")
    assert len(done) <= 9, done
