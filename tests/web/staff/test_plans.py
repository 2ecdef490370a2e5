"""The manager's pages of what can be joined."""

from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import Page, expect

from portal.verbs.membership_end import Ending, end_membership
from sandbox.watch import statements
from tests.cast import GUEST, Cast
from tests.machines.test_tables import put
from tests.outside import Owner
from tests.web.audit import audit, by_id, form_data, words
from tests.web.serving import Served
from tests.web.staff.houses import FrontDesk, notice, page, send, shown

LIST = "/staff/settings/plans"
TYPED = {
    "code": "morning",
    "name_ja": "朝会員",
    "name_en": "Morning",
    "price": "５，０００円",
    "billed_every": "year",
    "billing": "desk",
    "monthly_quota": "8",
    "terms_ja": "朝だけです。",
    "terms_en": "Mornings only.",
    "terms_version": "2026-11",
}


def of(plan: UUID, act: str = "") -> str:
    return f"{LIST}/{plan}{act}"


def manager(front: FrontDesk, locale: str = "ja") -> FlaskClient:
    return front.cast.signed_in(front.cast.suzuki, locale=locale)


def offer(client: FlaskClient, **changes: str) -> Any:
    return send(client, f"{LIST}/new", LIST, **TYPED | changes)


def field_error(answer: Any, client: FlaskClient, name: str) -> str:
    found = by_id(audit(answer, client), f"{name}-error")
    return "" if found is None else words(found)


def test_a_plan_is_offered(front: FrontDesk, owner: Owner, lang: str) -> None:
    client = manager(front, lang)
    page(client, f"{LIST}/new", lang)
    sent = offer(client)
    assert sent.status_code == 303
    assert notice(client, sent) == "PLAN_CREATED"
    assert owner.row(
        "select code, name_en, price, billed_every, monthly_quota, terms_ja from membership_plans"
    ) == ("morning", "Morning", 5000, "year", 8, "朝だけです。")
    page(client, sent.location, lang)
    said = shown(client, sent.location)
    for word in {
        "ja": ("朝会員", "募集中", "年額 ￥5,000", "作成", "鈴木 愛"),
        "en": ("Morning", "Offered", "¥5,000 a year", "Made", "鈴木 愛"),
    }[lang]:
        assert word in said
    assert client.get("/join/haneda-capsule/morning").status_code == 200


def test_the_same_form_leads_to_the_same_plan(front: FrontDesk, owner: Owner) -> None:
    client = manager(front)
    data = form_data(page(client, f"{LIST}/new"), LIST) | TYPED
    first = client.post(LIST, data=data)
    assert notice(client, first) == "PLAN_CREATED"
    again = client.post(LIST, data=data)
    assert notice(client, again) == "PLAN_ALREADY_CREATED"
    assert first.location == again.location
    assert owner.one("select count(*) from membership_plans") == 1


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("code", ""),
        ("code", "Morning"),
        ("code", "mor/ning"),
        ("code", "morning-"),
        ("name_ja", "  "),
        ("name_en", ""),
        ("price", ""),
        ("price", "49.5"),
        ("price", "-1"),
        ("price", "100,000,000"),
        ("billed_every", "week"),
        ("billing", "barter"),
        ("monthly_quota", "0"),
        ("terms_version", ""),
        ("terms_ja", "長" * 10_001),
    ],
)
def test_what_cannot_be_is_told_at_its_field_and_nothing_is_lost(
    front: FrontDesk, owner: Owner, name: str, typed: str
) -> None:
    client = manager(front)
    sent = offer(client, **{name: typed})
    assert sent.status_code == 422
    assert field_error(sent, client, name)
    again = form_data(audit(sent, client), LIST)
    kept = TYPED | ({} if name in ("billed_every", "billing") else {name: typed})
    assert {key: again[key].strip() for key in kept} == {k: v.strip() for k, v in kept.items()} or (
        name in ("billed_every", "billing")
    )
    assert owner.one("select count(*) from membership_plans") == 0


def test_a_card_needs_its_least_price(front: FrontDesk, owner: Owner, lang: str) -> None:
    client = manager(front, lang)
    sent = offer(client, billing="card", price="49")
    assert sent.status_code == 422
    assert {"ja": "￥50以上", "en": "¥50 or more"}[lang] in field_error(sent, client, "price")
    assert offer(client, billing="card", price="50").status_code == 303
    assert owner.one("select price from membership_plans") == 50


def test_a_code_that_is_taken_is_told_beside_what_was_typed(front: FrontDesk) -> None:
    client = manager(front)
    offer(client)
    sent = offer(client, name_en="Another")
    assert sent.status_code == 422
    assert notice(client, sent) == "PLAN_CODE_TAKEN"
    assert form_data(audit(sent, client), LIST)["name_en"] == "Another"


def test_a_plan_is_changed(front: FrontDesk, owner: Owner) -> None:
    plan = front.cast.monthly
    joined = front.cast.join()
    client = manager(front)
    form = of(plan, "/change")
    assert form_data(page(client, form), form)["price"] == "9800"
    sent = send(client, form, form, price="12000", monthly_quota="4")
    assert notice(client, sent) == "PLAN_UPDATED"
    assert owner.row("select price, monthly_quota, version, code from membership_plans") == (
        12_000,
        4,
        2,
        "monthly",
    )
    assert owner.one("select price from memberships where id = %s", joined.id) == 9800
    assert "料金: ￥9,800 → ￥12,000 · 1か月（暦月）の利用回数: 回数の制限なし → 4" in shown(
        client, of(plan)
    )
    same = send(client, form, form)
    assert notice(client, same) == "PLAN_UNCHANGED"


def test_changed_meanwhile_nothing_is_saved_and_nothing_is_lost(
    front: FrontDesk, owner: Owner, lang: str
) -> None:
    plan = front.cast.monthly
    client = manager(front, lang)
    form = of(plan, "/change")
    data = form_data(page(client, form), form) | {"price": "12000"}
    assert notice(client, send(client, form, form, price="11000")) == "PLAN_UPDATED"
    sent = client.post(form, data=data)
    assert sent.status_code == 409
    assert notice(client, sent) == "STALE_PAGE"
    said = words(audit(sent, client, lang))
    assert "鈴木 愛" in said
    assert form_data(audit(sent, client), form)["price"] == "12000"
    assert owner.one("select price from membership_plans") == 11_000
    # Sent once more as it stands, it is still nobody's leave to undo the colleague's change.
    assert client.post(form, data=form_data(audit(sent, client), form)).status_code == 409


def test_other_terms_under_the_same_version_are_not_saved(front: FrontDesk) -> None:
    client = manager(front)
    form = of(front.cast.monthly, "/change")
    sent = send(client, form, form, terms_ja="夜も使えます。")
    assert sent.status_code == 422
    assert notice(client, sent) == "TERMS_VERSION_KEPT"
    assert form_data(audit(sent, client), form)["terms_ja"].strip() == "夜も使えます。"


@pytest.mark.parametrize("act", ["change", "retire"])
def test_a_form_without_the_version_that_was_seen_is_refused(
    front: FrontDesk, owner: Owner, act: str
) -> None:
    client, url = manager(front), of(front.cast.monthly, f"/{act}")
    data = form_data(page(client, url), url)
    del data["version"]
    assert client.post(url, data=data).status_code == 400
    assert owner.one("select version from membership_plans") == 1


def test_what_retiring_means_is_said_before(front: FrontDesk, owner: Owner, lang: str) -> None:
    cast = front.cast
    client = manager(front, lang)
    url = of(cast.monthly, "/retire")
    nobody = {"ja": "影響を受ける会員契約はありません", "en": "No membership is touched"}
    assert nobody[lang] in shown(client, url)
    cast.join()
    cast.apply(guest=cast.emma)
    paying = cast.apply(guest={**cast.emma, "email": "paying@guest.example"})
    put(owner, "membership", paying.id, "checkout")
    page(client, url, lang)
    said = shown(client, url)
    for word in {
        "ja": ("有効な会員契約が1件", "申請中の1件", "初回決済の途中のものが1件", "取り消せません"),
        "en": ("1 membership runs", "1 application is closed", "1 first payment is open"),
    }[lang]:
        assert word in said


def test_a_plan_is_retired_and_its_page_tells_how_far_it_is(
    front: FrontDesk, owner: Owner, lang: str
) -> None:
    cast = front.cast
    cast.join()
    paying = cast.apply(guest=cast.emma)
    put(owner, "membership", paying.id, "checkout")
    client = manager(front, lang)
    url = of(cast.monthly, "/retire")
    sent = send(client, url, url)
    assert sent.status_code == 303
    assert notice(client, sent) == "PLAN_NOW_RETIRED"
    front.work("memberships")
    page(client, of(cast.monthly), lang)
    said = shown(client, of(cast.monthly))
    for word in {
        "ja": (
            "廃止",
            "に終了予定",
            "未処理",
            "完了をお待ちください",
            "試行1回",
            "次の試行",
            "鈴木 愛",
        ),
        "en": ("Retired", "ends on", "still to do", "A first payment is open", "1 attempt"),
    }[lang]:
        assert word in said, word
    only = shown(client, f"{of(cast.monthly)}?state=checkout")
    assert "Emma Smith" in only
    assert "山田 花子" not in only
    page(client, of(cast.monthly, "/change"), lang)
    page(client, url, lang)
    listed = page(client, LIST, lang)
    assert {"ja": "廃止", "en": "Retired"}[lang] in words(listed)


def test_retired_twice_is_calm_and_from_a_stale_page_refused(
    front: FrontDesk, owner: Owner
) -> None:
    plan, client = front.cast.monthly, manager(front)
    url, change = of(plan, "/retire"), of(plan, "/change")
    data = form_data(page(client, url), url)
    send(client, change, change, price="12000")
    headers = {"HX-Request": "true", "HX-Current-URL": url}
    assert client.post(url, data=data, headers=headers).status_code == 409
    assert owner.one("select retired_at from membership_plans") is None
    data = form_data(page(client, url), url)
    assert notice(client, client.post(url, data=data)) == "PLAN_NOW_RETIRED"
    assert notice(client, client.post(url, data=data)) == "PLAN_ALREADY_RETIRED"


def test_nobody_is_offered_to_go_on(front: FrontDesk, owner: Owner, lang: str) -> None:
    """Neither is the button without its reason at the desk, nor at all at the member's."""
    joined = front.cast.join()
    with front.app.app_context():
        end_membership(front.desk(), GUEST, joined.id, Ending("self_cancel"))
    owner.run("update membership_plans set sold = false, retired_at = now()")
    client = manager(front, lang)
    place = f"/staff/members/{joined.id}"
    reason = {"ja": "プランは廃止されたため、継続できません", "en": "is no longer offered"}[lang]
    assert reason in shown(client, place)
    assert notice(client, send(client, place, f"{place}/resume")) == "PLAN_RETIRED"
    guest = front.app.test_client()
    told = client.application.test_client().get(f"/m/{joined.token}?lang={lang}")
    assert f"/m/{joined.token}/resume" not in told.text
    audit(told, guest, lang)


PAGES = ("", "/new", "/{plan}", "/{plan}/change", "/{plan}/retire")


@pytest.mark.parametrize("place", PAGES)
def test_plans_are_managers_matter(front: FrontDesk, place: str) -> None:
    url = LIST + place.format(plan=front.cast.monthly)
    for person, status in (
        (front.cast.sato, 403),
        (front.cast.suzuki, 200),
        (front.cast.tanaka, 200),
    ):
        answer = front.cast.signed_in(person).get(url)
        assert answer.status_code == status
        audit(answer, front.app)
    assert front.app.test_client().get(url).status_code == 303


@pytest.mark.parametrize("act", ["", "/{plan}/change", "/{plan}/retire"])
def test_the_desk_changes_no_plan(front: FrontDesk, owner: Owner, act: str) -> None:
    client = front.cast.signed_in(front.cast.sato)
    token = form_data(page(client, "/staff/stays/new"), "/staff/stays")["csrf_token"]
    url = LIST + act.format(plan=front.cast.monthly)
    data = {**TYPED, "csrf_token": token, "version": "1"}
    assert client.post(url, data=data).status_code == 403
    assert owner.rows("select version, sold from membership_plans") == [(1, True)]


@pytest.mark.parametrize("act", ["", "/change", "/retire"])
def test_another_houses_plan_has_no_page(front: FrontDesk, owner: Owner, act: str) -> None:
    front.cast.join()
    client = front.cast.signed_in(front.cast.tanaka, front.cast.osaka)
    url = of(front.cast.monthly, act)
    assert client.get(url).status_code == 404
    token = form_data(page(client, f"{LIST}/new"), LIST)["csrf_token"]
    data = {**TYPED, "csrf_token": token, "version": "1"}
    assert client.post(url, data=data).status_code == (404 if act else 405)
    assert owner.one("select version from membership_plans") == 1


def test_the_menu_names_plans_for_who_may_open_them(front: FrontDesk) -> None:
    for person, there in ((front.cast.sato, False), (front.cast.suzuki, True)):
        links = [a.get("href") for a in page(front.cast.signed_in(person), "/staff/").iter("a")]
        assert (LIST in links) is there


def test_the_list_of_members_by_plan(front: FrontDesk, owner: Owner) -> None:
    cast = front.cast
    yearly = cast.offer("yearly", "年会員", "Yearly", price=98_000, billed_every="year")
    cast.join(yearly, cast.emma)
    for number in range(27):
        cast.apply(
            guest={**cast.hanako, "name": f"会員{number:02}", "email": f"{number}@g.example"}
        )
    client = cast.signed_in(cast.sato)
    assert "Emma Smith" in shown(client, f"/staff/members?plan={yearly}")
    assert "会員26" not in shown(client, f"/staff/members?plan={yearly}")
    first = page(client, f"/staff/members?plan={cast.monthly}&state=applying")
    onward = next(str(a.get("href")) for a in first.iter("a") if a.get("rel") == "next")
    rest = shown(client, onward)
    assert "会員01" in rest
    assert "会員02" not in rest
    assert "条件に合う会員契約はありません" in shown(client, f"/staff/members?plan={UUID(int=1)}")
    assert "会員26" in shown(client, "/staff/members?plan=nonsense")
    place = of(cast.monthly)
    onward = next(
        str(a.get("href")) for a in page(manager(front), place).iter("a") if a.get("rel") == "next"
    )
    assert "会員01" in shown(manager(front), onward)


def test_pages_need_as_many_statements_for_many_as_for_one(front: FrontDesk) -> None:
    cast, client = front.cast, manager(front)
    cast.join()

    def counted(url: str) -> int:
        with statements() as said:
            assert client.get(url).status_code == 200
        return len(said)

    urls = {LIST: 4, of(cast.monthly): 7, of(cast.monthly, "/retire"): 5}
    few = {url: counted(url) for url in urls}
    for number in range(20):
        cast.offer(f"plan-{number}", "会員", "Member")
        cast.apply(guest={**cast.hanako, "email": f"{number}@guest.example"})
    assert {url: counted(url) for url in urls} == few
    assert all(few[url] <= most for url, most in urls.items()), few


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_plan_made_and_retired_in_a_browser(
    cast: Cast, served: Served, page: Page, width: int
) -> None:
    """Nothing overflows, a refusal keeps what was typed, and the confirmation is one press."""
    cookie = cast.signed_in(cast.suzuki, locale="en").get_cookie("monban")
    assert cookie is not None
    page.context.add_cookies([{"name": "monban", "value": cookie.value, "url": served.url}])
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{served.url}{LIST}/new")
    for name in ("code", "name_ja", "name_en", "terms_version"):
        page.fill(f"#{name}", TYPED[name])
    page.fill("#price", "49")
    page.select_option("#billing", "card")
    page.get_by_role("button", name="Offer the plan").click()
    expect(page.locator("#price-error")).to_be_visible()
    expect(page.locator("#code")).to_have_value("morning")
    page.fill("#price", "5000")
    page.get_by_role("button", name="Offer the plan").click()
    expect(page.locator("[data-code=PLAN_CREATED]")).to_be_visible()
    page.get_by_role("button", name="Retire the plan").click()
    page.get_by_role("button", name="Retire it").click()
    expect(page.locator("[data-code=PLAN_NOW_RETIRED]")).to_be_visible()
    for path in ("", "/new"):
        page.goto(f"{served.url}{LIST}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
