"""The desk's pages in a real browser: what script adds, and what a keyboard reaches."""

import pytest
from playwright.sync_api import Page, expect

from tests.cast import Cast, Colleague
from tests.web.serving import Served
from tests.web.staff.desk import pay, row

pytestmark = pytest.mark.browser


def enter(
    page: Page, served: Served, cast: Cast, locale: str = "en", as_: Colleague | None = None
) -> None:
    cookie = cast.signed_in(as_ or cast.sato, locale=locale).get_cookie("monban")
    assert cookie is not None
    page.context.add_cookies([{"name": "monban", "value": cookie.value, "url": served.url}])


def test_the_price_follows_the_plan_and_the_days_and_nothing_typed_is_lost(
    cast: Cast, served: Served, page: Page
) -> None:
    enter(page, served, cast)
    page.goto(f"{served.url}/staff/stays/new?arrive_day=2027-01-10&leave_day=2027-01-11")
    expect(page.locator("#price-help")).to_contain_text("6,000")
    page.fill("#name", "Emma Smith")
    page.select_option("#space_id", str(cast.tokyo.spaces["A03"]))
    page.fill("#leave_day", "2027-01-13")
    page.locator("#leave_day").blur()
    expect(page.locator("#price-help")).to_contain_text("18,000")
    expect(page.locator("#name")).to_have_value("Emma Smith")
    expect(page.locator("#space_id")).to_have_value(str(cast.tokyo.spaces["A03"]))
    page.get_by_role("button", name="Book the stay").click()
    expect(page.locator("[data-code=STAY_CREATED]")).to_be_visible()
    assert "/staff/stays/" in page.url
    assert page.url.rsplit("/", 1)[1] != "new"


def test_a_week_is_written_with_the_keyboard_on_a_phone(
    cast: Cast, served: Served, page: Page
) -> None:
    """The rows of the weekdays are shut until they are wanted, a row's times until they are its
    own, and every control has a name of its own for whoever hears the page."""
    enter(page, served, cast, as_=cast.suzuki)
    page.goto(f"{served.url}/staff/settings/entrances/new")
    for name, value in (("slug", "front"), ("name_ja", "正面"), ("name_en", "Front")):
        page.fill(f"#{name}", value)
    page.fill("#opens", "10:00")
    page.fill("#closes", "23:00")
    saturday = page.get_by_role("group", name="Saturday")
    expect(saturday).to_have_count(0)
    page.locator("summary", has_text="Weekdays that differ").focus()
    page.keyboard.press("Enter")
    expect(saturday).to_be_visible()
    hours = saturday.get_by_label("Hours")
    expect(saturday.get_by_label("Opens at")).to_be_hidden()
    hours.focus()
    page.keyboard.press("End")
    expect(hours).to_have_value("own")
    saturday.get_by_label("Opens at").fill("09:00")
    saturday.get_by_label("Closes at").fill("02:00")
    page.get_by_role("group", name="Sunday").get_by_label("Hours").select_option("closed")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Open the entrance").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-code=ENTRANCE_CREATED]")).to_be_visible()
    expect(page.locator("ul.week")).to_contain_text("09:00–02:00 the next day")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_keyboard_checks_a_guest_in_and_a_refusal_stays_where_it_was(
    cast: Cast, served: Served, page: Page
) -> None:
    """At 390 px: the refusal is swapped in under 422, the way on is open, nothing overflows."""
    stay = cast.book()
    enter(page, served, cast)
    page.goto(f"{served.url}/staff/")
    check_in = page.get_by_role("button", name="Check in")
    check_in.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-code=BALANCE_DUE]")).to_be_visible()
    pay(cast, stay, 6000)
    page.get_by_role("button", name="Check in").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-code=STAY_ADMITTED]")).to_be_visible()
    assert page.url == f"{served.url}/staff/"
    for path in ("/staff/", "/staff/stays", "/staff/stays/new", f"/staff/stays/{stay.id}"):
        page.goto(served.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    assert row(cast, stay).state == "admitted"
