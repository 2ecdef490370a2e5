"""The manager's pages of what stays are sold as."""

from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import Page, expect

from sandbox.watch import statements
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.test_entrances import opened
from tests.web.audit import audit, by_id, form_data, words
from tests.web.serving import Served
from tests.web.staff.houses import FrontDesk, notice, page, send, shown

LIST = "/staff/settings/stay-plans"
TYPED = {
    "code": "private",
    "name_ja": "個室",
    "name_en": "Private room",
    "kind": "lodging",
    "unit": "night",
    "unit_price": "８，０００円",
    "deposit": "2000",
    "tax_class": "reduced",
}


def of(plan: UUID, act: str = "") -> str:
    return f"{LIST}/{plan}{act}"


def manager(front: FrontDesk, locale: str = "ja") -> FlaskClient:
    return front.cast.signed_in(front.cast.suzuki, locale=locale)


def make(client: FlaskClient, **changes: str) -> Any:
    return send(client, f"{LIST}/new", LIST, **TYPED | changes)


def field_error(answer: Any, client: FlaskClient, name: str) -> str:
    found = by_id(audit(answer, client), f"{name}-error")
    return "" if found is None else words(found)


def names(client: FlaskClient, url: str) -> set[str]:
    """Fields that the page's form asks for, hidden ones apart."""
    return {
        str(one.get("name"))
        for one in page(client, url).iter()
        if one.tag in ("input", "select") and one.get("type") != "hidden" and one.get("name")
    }


def test_a_plan_is_made_shown_and_offered(front: FrontDesk, owner: Owner, lang: str) -> None:
    client = manager(front, lang)
    page(client, f"{LIST}/new", lang)
    sent = make(client)
    assert sent.status_code == 303
    assert notice(client, sent) == "STAY_PLAN_CREATED"
    assert owner.row(
        "select name_en, kind, unit, unit_price, deposit, tax_class, members_only from plans"
        " where code = 'private'"
    ) == ("Private room", "lodging", "night", 8000, 2000, "reduced", False)
    page(client, sent.location, lang)
    said = shown(client, sent.location)
    for word in {
        "ja": ("個室", "販売中", "宿泊", "￥8,000", "￥2,000", "軽減税率", "作成", "鈴木 愛"),
        "en": ("Private room", "On sale", "Lodging", "¥8,000", "Reduced rate", "Made", "Anybody"),
    }[lang]:
        assert word in said, word
    page(client, LIST, lang)
    assert TYPED[f"name_{lang}"] in shown(client, LIST)
    assert TYPED[f"name_{lang}"] in words(page(client, "/staff/stays/new"))


def test_the_same_form_leads_to_the_same_plan(front: FrontDesk, owner: Owner) -> None:
    client = manager(front)
    data = form_data(page(client, f"{LIST}/new"), LIST) | TYPED
    first, again = (client.post(LIST, data=data) for _ in range(2))
    assert first.location == again.location
    assert owner.one("select count(*) from plans where code = 'private'") == 1


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("code", ""),
        ("code", "Private"),
        ("code", "pri/vate"),
        ("name_ja", "  "),
        ("name_en", ""),
        ("unit_price", ""),
        ("unit_price", "-1"),
        ("unit_price", "49"),
        ("unit_price", "100,000,000"),
        ("deposit", "49"),
        ("deposit", "8001"),
        ("kind", "castle"),
        ("unit", "week"),
        ("tax_class", "none"),
    ],
)
def test_what_cannot_be_is_told_at_its_field_and_nothing_is_lost(
    front: FrontDesk, owner: Owner, name: str, typed: str
) -> None:
    client = manager(front)
    sent = make(client, **{name: typed})
    assert sent.status_code == 422
    assert field_error(sent, client, name)
    again = form_data(audit(sent, client), LIST)
    assert again["name_en" if name != "name_en" else "name_ja"]
    if name not in ("kind", "unit", "tax_class"):
        assert again[name].strip() == typed.strip()
    assert owner.one("select count(*) from plans where code = 'private'") == 0


def test_a_code_that_is_taken_is_told_beside_what_was_typed(front: FrontDesk) -> None:
    client = manager(front)
    make(client)
    sent = make(client, name_en="Another")
    assert sent.status_code == 422
    assert notice(client, sent) == "PLAN_CODE_TAKEN"
    assert form_data(audit(sent, client), LIST)["name_en"] == "Another"


def test_a_plan_is_changed_and_the_page_tells_what_was(
    front: FrontDesk, owner: Owner, lang: str
) -> None:
    client, plan = manager(front, lang), front.cast.tokyo.plans["night"]
    front.cast.book(plan="night")
    url = of(plan, "/change")
    data = form_data(page(client, url, lang), url)
    assert (data["unit_price"], data["deposit"], data["kind"]) == ("6000", "2000", "lodging")
    sent = send(client, url, url, unit_price="7000", tax_class="untaxed", members_only="y")
    assert notice(client, sent) == "STAY_PLAN_UPDATED"
    said = shown(client, of(plan))
    for word in {
        "ja": ("￥6,000 → ￥7,000", "標準税率 → 課税対象外", "会員専用: いいえ → はい", "会員のみ"),
        "en": ("¥6,000 → ¥7,000", "Standard rate → Not taxed", "For members only: No → Yes"),
    }[lang]:
        assert word in said, word
    unticked = form_data(page(client, url), url)
    assert unticked.pop("members_only", None)
    assert client.post(url, data=unticked).status_code == 303
    assert owner.one("select members_only from plans where id = %s", plan) is False


def test_kind_and_unit_are_not_asked_once_a_stay_was_booked(front: FrontDesk, lang: str) -> None:
    client, plan = manager(front, lang), front.cast.tokyo.plans["night"]
    url = of(plan, "/change")
    assert {"kind", "unit"} <= names(client, url)
    front.cast.book(plan="night")
    assert not {"kind", "unit"} & names(client, url)
    sent = send(client, url, url, kind="day_use")
    assert sent.status_code == 422
    assert notice(client, sent) == "STAY_PLAN_KIND_FIXED"


def test_a_change_from_a_page_that_is_out_of_date(front: FrontDesk, lang: str) -> None:
    client, plan = manager(front, lang), front.cast.tokyo.plans["night"]
    url = of(plan, "/change")
    data = form_data(page(client, url), url)
    send(client, url, url, unit_price="7000")
    late = client.post(url, data=data | {"unit_price": "9000"})
    assert late.status_code == 409
    found = audit(late, client, lang)
    assert form_data(found, url)["unit_price"] == "9000"
    assert {"ja": "ほかのスタッフがこのプランを変更しました", "en": "Somebody changed this plan"}[
        lang
    ] in words(found)


def test_withdrawn_it_is_offered_nowhere_and_its_entrance_keeps_it(
    front: FrontDesk, owner: Owner, lang: str
) -> None:
    """Who has booked it comes in: an entrance that is saved meanwhile must not drop it."""
    cast, client = front.cast, manager(front, lang)
    plan = cast.tokyo.plans["nap"]
    way = opened(cast, plans=frozenset({plan}))
    tablet = f"/e/{owner.one('select public_name from entrances where id = %s', way)}/walk-in"
    name = {"ja": "仮眠", "en": "Nap"}[lang]
    offers = ("/staff/stays/new", f"{tablet}?lang={lang}", "/staff/settings/cancellation")
    for url in offers:
        assert name in words(page(client, url)), url
    sent = send(client, of(plan), of(plan, "/withdraw"))
    assert notice(client, sent) == "STAY_PLAN_WITHDRAWN"
    for url in offers:
        assert name not in words(page(client, url)), url
    assert {"ja": "販売終了", "en": "Withdrawn from sale"}[lang] in shown(client, of(plan))
    entrance = f"/staff/settings/entrances/{way}"
    assert {"ja": "仮眠（販売終了）", "en": "Nap (withdrawn)"}[lang] in shown(client, entrance)
    kept = send(client, entrance, entrance, plans=str(plan), capacity="7")
    assert notice(client, kept) == "ENTRANCE_UPDATED"
    assert owner.one("select count(*) from entrance_plans where plan_id = %s", plan) == 1
    again = send(client, of(plan), of(plan, "/sell"))
    assert notice(client, again) == "STAY_PLAN_SOLD_AGAIN"
    assert name in words(page(client, offers[0]))


def test_a_booking_of_what_was_withdrawn_meanwhile(front: FrontDesk, owner: Owner) -> None:
    """The form that was open has it no more."""
    cast, client = front.cast, manager(front)
    plan = cast.tokyo.plans["nap"]
    way = opened(cast, plans=frozenset({plan}), week=None)
    tablet = f"/e/{owner.one('select public_name from entrances where id = %s', way)}/walk-in"
    guest = {"name": "山田 花子", "phone": "090-1234-5678"}
    desk = form_data(page(client, "/staff/stays/new"), "/staff/stays") | guest
    kiosk = form_data(page(client, tablet), tablet) | guest
    owner.run("update plans set active = false where id = %s", plan)
    for url, form in (("/staff/stays", desk), (tablet, kiosk)):
        refused = client.post(url, data=form | {"plan_id": str(plan)})
        assert refused.status_code == 422
        audit(refused, client)
    assert owner.one("select count(*) from stays") == 0


def test_its_page_tells_where_it_is_sold_and_how_it_is_cancelled(
    front: FrontDesk, lang: str
) -> None:
    cast, client = front.cast, manager(front, lang)
    plan, other = cast.tokyo.plans["night"], cast.tokyo.plans["nap"]
    everywhere = {"ja": "すべての扉で使えます", "en": "the house has no entrance"}[lang]
    assert everywhere in shown(client, of(plan))
    way = opened(cast, plans=frozenset({plan}))
    cast.policy(plan="night")
    said = shown(client, of(plan))
    assert {"ja": "標準", "en": "Standard"}[lang] in said
    assert {"ja": "正面玄関", "en": "Front"}[lang] in said
    links = {str(one.get("href")) for one in page(client, of(plan)).iter("a")}
    assert {f"/staff/settings/entrances/{way}", "/staff/settings/cancellation#plans"} <= links
    assert {"ja": "どの入口でも販売していません", "en": "At no entrance"}[lang] in shown(
        client, of(other)
    )
    assert {"ja": "キャンセルポリシーの変更", "en": "Another cancellation policy"}[lang] in said


def test_it_is_the_managers_and_this_houses(front: FrontDesk) -> None:
    cast = front.cast
    plan = cast.tokyo.plans["night"]
    desk = cast.signed_in(cast.sato)
    assert {desk.get(url).status_code for url in (LIST, of(plan), of(plan, "/change"))} == {403}
    stranger = cast.signed_in(cast.tanaka, cast.osaka)
    assert {stranger.get(of(plan, act)).status_code for act in ("", "/change")} == {404}


def test_pages_need_as_many_statements_for_many_as_for_one(front: FrontDesk) -> None:
    client = manager(front)
    plan = front.cast.tokyo.plans["night"]

    def counted(url: str) -> int:
        with statements() as said:
            assert client.get(url).status_code == 200
        return len(said)

    urls = {LIST: 4, of(plan): 7, of(plan, "/change"): 4}
    few = {url: counted(url) for url in urls}
    for number in range(20):
        front.cast.for_members(price=1000 + number)
    front.cast.book(plan="night")
    assert {url: counted(url) for url in urls} == few
    assert all(few[url] <= most for url, most in urls.items()), few


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_plan_made_and_withdrawn_in_a_browser(
    cast: Cast, served: Served, page: Page, width: int
) -> None:
    cookie = cast.signed_in(cast.suzuki, locale="en").get_cookie("monban")
    assert cookie is not None
    page.context.add_cookies([{"name": "monban", "value": cookie.value, "url": served.url}])
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{served.url}{LIST}/new")
    for name in ("code", "name_ja", "name_en", "deposit"):
        page.fill(f"#{name}", TYPED[name])
    page.fill("#unit_price", "49")
    page.get_by_role("button", name="Put it on sale").click()
    expect(page.locator("#unit_price-error")).to_be_visible()
    expect(page.locator("#code")).to_have_value("private")
    page.fill("#unit_price", "8000")
    page.get_by_role("button", name="Put it on sale").click()
    expect(page.locator("[data-code=STAY_PLAN_CREATED]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Withdraw from sale").click()
    expect(page.locator("[data-code=STAY_PLAN_WITHDRAWN]")).to_be_visible()
    for path in ("", "/new"):
        page.goto(f"{served.url}{LIST}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
