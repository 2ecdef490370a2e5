"""Booking for a member at the desk, and where such a stay is named."""

from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import Page, expect

from portal import clock
from tests.cast import Cast, Joined
from tests.machines.test_tables import put
from tests.outside import Owner
from tests.web.audit import by_id, form_data
from tests.web.serving import Served
from tests.web.staff.desk import HTMX, code, count, look, press, read, row, text
from tests.web.staff.test_stays_browser import enter
from tests.web.staff.test_stays_new import CREATE, FAMILY, NEW, error, filled

FREE = {"arrive_day": "2027-01-10", "leave_day": "2027-01-10", "leave_time": "18:00"}


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato)


@pytest.fixture
def plan(cast: Cast) -> str:
    """What only members book; staff choose it in the form."""
    return str(cast.tokyo.plans[cast.for_members()])


def typed(client: FlaskClient, plan: str, **changes: Any) -> dict[str, Any]:
    nobody = {"name": "", "kana": ""}
    return filled(client, **{**nobody, **FREE, "plan_id": plan, **changes})


def offered(page: Any) -> list[str]:
    """The memberships that the form offers, by their words."""
    select = by_id(page, "membership_id")
    return [] if select is None else ["".join(one.itertext()) for one in select.iter("option")][1:]


def send(client: FlaskClient, data: dict[str, Any]) -> Any:
    return client.post(CREATE, data=data)


def test_a_member_is_looked_for_chosen_and_booked_without_script(
    cast: Cast, client: FlaskClient, plan: str
) -> None:
    joined = cast.join()
    data = typed(client, plan, member="やまだ", note="静かな席")
    page = read(client, send(client, data), 422)
    assert offered(page) == ["山田 花子、月会員、hanako@guest.example"]
    assert error(page, "member")
    assert form_data(page, CREATE)["note"] == "静かな席"
    assert count(cast, "stays") == 0
    chosen = {**form_data(page, CREATE), "membership_id": str(joined.id)}
    done = send(client, chosen)
    assert done.status_code == 303
    page = look(client, done.location)
    assert code(page) == "STAY_CREATED"
    links = [one.get("href") for one in page.iter("a")]
    assert f"/staff/members/{joined.id}" in links
    assert "月会員" in text(page)


def test_with_script_they_are_offered_as_the_name_is_written(
    cast: Cast, client: FlaskClient, lang: str
) -> None:
    cast.join()
    cast.join(guest=cast.emma)
    client = cast.signed_in(cast.sato, locale=lang)
    page = look(client, f"{NEW}?member=EMMA@guest", lang)
    assert len(offered(page)) == 1
    assert "Emma Smith" in offered(page)[0]
    assert offered(look(client, f"{NEW}?member=nobody", lang)) == []
    assert len(offered(look(client, f"{NEW}?member=guest.example", lang))) == 2


def test_whoever_gives_nothing_now_is_offered_with_what_stands_in_the_way(
    cast: Cast, client: FlaskClient, owner: Owner, plan: str
) -> None:
    joined = cast.join()
    owner.run("update memberships set paused = true")
    data = typed(client, plan, membership_id=str(joined.id))
    page = read(client, send(client, data), 422)
    assert code(page) == "MEMBERSHIP_PAUSED"
    assert "一時停止中" in offered(page)[0]
    assert form_data(page, CREATE)["membership_id"] == str(joined.id)
    owner.run("update memberships set paused = false")
    put(owner, "membership", joined.id, "past_due")
    page = read(client, send(client, data), 422)
    assert code(page) == "MEMBERS_ONLY_PLAN"
    assert "（" in offered(page)[0]
    put(owner, "membership", joined.id, "ended")
    assert offered(look(client, f"{NEW}?member=hanako")) == []


def test_a_plan_for_members_is_refused_to_others_with_everything_kept(
    cast: Cast, client: FlaskClient, plan: str
) -> None:
    data = typed(client, plan, name="別の人", email="a@guest.example", note="覚え書き")
    for headers in (None, HTMX):
        page = read(client, client.post(CREATE, data=data, headers=headers), 422)
        assert code(page) == "MEMBERS_ONLY_PLAN"
        assert {**form_data(page, CREATE), "csrf_token": ""} == {**data, "csrf_token": ""}
    assert count(cast, "stays") == count(cast, "guests") == 0


@pytest.mark.parametrize("name", ["name", "kana", "phone", "email", "locale"])
def test_a_member_is_the_guest_and_nothing_typed_is_dropped_in_silence(
    cast: Cast, client: FlaskClient, plan: str, name: str
) -> None:
    joined = cast.join()
    value = {"phone": "09012345678", "email": "b@guest.example", "locale": "en"}.get(name, "タロウ")
    data = typed(client, plan, membership_id=str(joined.id), **{name: value})
    page = read(client, send(client, data), 422)
    assert error(page, "membership_id")
    assert form_data(page, CREATE)[name] == value
    assert count(cast, "stays") == 0


def test_who_is_chosen_is_among_those_looked_for(
    cast: Cast, client: FlaskClient, plan: str
) -> None:
    """Other words after the choice: nobody is booked whom the form does not name."""
    hanako, emma = cast.join(), cast.join(guest=cast.emma)
    data = typed(client, plan, member="Emma", membership_id=str(hanako.id))
    page = read(client, send(client, data), 422)
    assert error(page, "membership_id")
    assert len(offered(page)) == 1
    assert send(client, {**data, "membership_id": str(emma.id)}).status_code == 303


@pytest.mark.parametrize("words", ["%", "_", "\\", FAMILY, "x" * 120, "\u3000", "'"])
def test_h14_signs_find_only_themselves(cast: Cast, client: FlaskClient, words: str) -> None:
    cast.join()
    page = look(client, f"{NEW}?member={words.replace('%', '%25')}")
    assert offered(page) == []


@pytest.mark.parametrize("bad", ["\x00", "a\x00", "x" * 121, "nobody at all"])
def test_a_bad_name_of_a_member_is_told_at_its_field(
    cast: Cast, client: FlaskClient, plan: str, bad: str
) -> None:
    cast.join()
    page = read(client, send(client, typed(client, plan, member=bad)), 422)
    assert error(page, "member")
    assert count(cast, "stays") == 0


def test_another_houses_membership_is_no_membership(
    cast: Cast, client: FlaskClient, owner: Owner, plan: str
) -> None:
    theirs = cast.apply(cast.offer("x", "他", "Other", house=cast.osaka), house=cast.osaka)
    put(owner, "membership", theirs.id, "active")
    for membership in (str(theirs.id), "00000000-0000-4000-8000-000000000000", "x", "\x00"):
        data = typed(client, plan, membership_id=membership)
        page = read(client, send(client, data), 422)
        assert error(page, "membership_id")
        assert offered(page) == []
    assert count(cast, "stays") == 0


def test_the_members_page_leads_to_the_form(cast: Cast, client: FlaskClient, plan: str) -> None:
    joined = cast.join()
    page = look(client, f"/staff/members/{joined.id}")
    links = [one.get("href") for one in page.iter("a")]
    address = f"{NEW}?membership_id={joined.id}"
    assert address in links
    form = form_data(look(client, address), CREATE)
    assert form["membership_id"] == str(joined.id)
    assert send(client, {**form, **FREE, "plan_id": plan}).status_code == 303


def at_the_door(cast: Cast) -> tuple[Joined, Any]:
    joined = cast.join()
    return joined, cast.book(member=joined, plan=cast.for_members(), price=0)


def test_the_stay_is_on_both_pages_of_its_membership(cast: Cast, client: FlaskClient) -> None:
    joined, stay = at_the_door(cast)
    named = row(cast, stay).code
    assert named in text(look(client, f"/staff/members/{joined.id}"))
    visitor = cast.app.test_client()
    assert named in text(look(visitor, f"/m/{joined.token}"))
    ahead = "/cancel"
    assert named in text(look(visitor, f"/m/{joined.token}{ahead}"))


def test_the_reason_stands_beside_the_button_and_in_the_history(
    cast: Cast, owner: Owner, lang: str
) -> None:
    joined, stay = at_the_door(cast)
    client = cast.signed_in(cast.sato, locale=lang)
    url = f"/staff/stays/{stay.id}"
    for paused, beside, later in (
        (True, {"ja": "一時停止中です", "en": "is paused"},
         {"ja": "一時停止中でした", "en": "was paused"}),
        (False, {"ja": "会員専用です", "en": "for members"},
         {"ja": "会員契約がありませんでした", "en": "No membership gave the stay"}),
    ):  # fmt: skip
        owner.run("update memberships set paused = %s", paused)
        if not paused:
            put(owner, "membership", joined.id, "ended")
        for page in (look(client, url, lang), look(client, "/staff/", lang)):
            assert beside[lang] in text(page)
        done = press(client, look(client, url, lang), f"{url}/check-in")
        assert code(look(client, done.location, lang)) in ("MEMBERSHIP_PAUSED", "MEMBERS_ONLY_PLAN")
        for page in (url, f"/staff/timeline?subject=stay:{stay.id}"):
            assert later[lang] in text(look(client, page, lang))


def test_the_plans_for_members_are_named_so_and_come_last(cast: Cast, plan: str, lang: str) -> None:
    page = look(cast.signed_in(cast.sato, locale=lang), NEW, lang)
    select = by_id(page, "plan_id")
    assert select is not None
    told = ["".join(one.itertext()) for one in select.iter("option")]
    assert [("会員専用" if lang == "ja" else "members only") in one for one in told] == [
        False, False, True, False,
    ]  # fmt: skip


@pytest.mark.browser
def test_a_member_is_found_while_the_rest_of_the_form_waits(
    cast: Cast, served: Served, page: Page
) -> None:
    joined = cast.join(guest=cast.emma)
    plan = str(cast.tokyo.plans[cast.for_members()])
    enter(page, served, cast)
    page.goto(f"{served.url}{NEW}")
    page.select_option("#plan_id", plan)
    page.fill("#leave_day", (clock.now() + timedelta(days=2)).date().isoformat())
    page.fill("#note", "by the window")
    page.fill("#member", "emma")
    page.locator("#member").blur()
    page.select_option("#membership_id", str(joined.id))
    expect(page.locator("#note")).to_have_value("by the window")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Book the stay").click()
    expect(page.locator("[data-code=STAY_CREATED]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
