"""The frame in a real browser: what only a browser can prove."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from portal.web.locale import LOCALES
from tests.cast import Cast, Colleague
from tests.web import trial
from tests.web.serving import Served, serve

pytestmark = pytest.mark.browser

WIDTHS = (390, 1280)


@pytest.fixture
def trial_served(trial_cast: Cast) -> Iterator[Served]:
    with serve(trial_cast.app) as running:
        yield running


def sign_in(page: Page, served: Served, person: Colleague, wanted: str = "/staff/trial") -> None:
    page.goto(f"{served.url}{wanted}")
    page.get_by_label("E-mail").fill(person.email)
    page.get_by_label("Password").fill(person.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"**{wanted}")


def faults(page: Page) -> list[str]:
    """What the browser complains about: blocked by the policy, or thrown."""
    heard: list[str] = []
    page.on("console", lambda line: heard.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ("applied", "Checked in."),
        ("noop", "checked in already"),
        ("conflict", "It is now: Cancelled"),
        ("refused", "¥4,000 is due"),
    ],
)
def test_every_outcome_is_swapped_in_and_read_out(page: Page, trial_cast, trial_served, say, text):
    heard = faults(page)
    sign_in(
        page,
        trial_served,
        trial_cast.hire("a@b.example", "Ann", [(trial_cast.tokyo, "owner")], "en"),
    )
    page.evaluate("window.same = true")
    page.locator(f"button.{say}").click()
    notice = page.locator("#notices .notice")
    expect(notice).to_contain_text(text)
    expect(notice).to_be_focused()
    expect(page.locator("main")).to_have_count(1)
    expect(page.locator("#runs")).to_have_text("1")
    assert page.evaluate("window.same"), "the page was loaded anew"
    assert page.url.endswith("/staff/trial")
    page.locator(f"button.{say}").click()
    expect(page.locator("#runs")).to_have_text("2")
    assert [line for line in heard if "status of 4" not in line] == []


def test_a_wrong_form_keeps_its_values_under_htmx_and_lands_once_right(
    page: Page, trial_cast, trial_served
):
    sign_in(
        page,
        trial_served,
        trial_cast.hire("a@b.example", "Ann", [(trial_cast.tokyo, "owner")], "en"),
        "/staff/trial/new",
    )
    page.get_by_label("Name").fill("refuse me")
    page.get_by_label("Amount").fill("minus one")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#amount-error")).to_be_visible()
    expect(page.get_by_label("Amount")).to_be_focused()
    expect(page.get_by_label("Name")).to_have_value("refuse me")
    page.get_by_label("Amount").fill("５００")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notices")).to_contain_text("¥4,000 is due")
    expect(page.get_by_label("Amount")).to_have_value("５００")
    page.get_by_label("Name").fill("Emma")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notices")).to_contain_text("Checked in.")
    assert page.url.endswith("/staff/trial")
    page.go_back()
    expect(page.get_by_label("Name")).to_be_visible()
    expect(page.locator("header.top")).to_have_count(1)


def test_without_script_the_same_buttons_work(browser, trial_cast, trial_served):
    context = browser.new_context(java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    sign_in(
        page,
        trial_served,
        trial_cast.hire("a@b.example", "Ann", [(trial_cast.tokyo, "owner")], "en"),
    )
    page.locator("button.conflict").click()
    expect(page.locator("#notices")).to_contain_text("It is now: Cancelled")
    assert [say for _, say in trial.runs] == ["conflict"]
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("locale", LOCALES)
def test_no_page_of_the_frame_scrolls_sideways_and_targets_are_large(
    page: Page, trial_cast, trial_served, width, locale
):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{trial_served.url}/staff/sign-in?lang={locale}")
    check_layout(page, width)
    client_page = trial_cast.tanaka
    trial_cast.speaks(client_page, locale)
    page.locator("#email").fill(client_page.email)
    page.locator("#password").fill(client_page.password)
    page.locator("main button").click()
    page.wait_for_url("**/staff/facility")
    check_layout(page, width)
    page.locator("main button").first.click()
    name = "%F0%9F%8D%B1" * 10 + "x" * 300
    for path in (f"/staff/trial?name={name}", "/staff/trial/new", "/staff/never"):
        page.goto(trial_served.url + path)
        check_layout(page, width)


def check_layout(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
    small = page.evaluate(
        """[...document.querySelectorAll('main button, main input:not([type=hidden]), main select')]
           .filter(e => e.getBoundingClientRect().height < 43.5).map(e => e.outerHTML)"""
    )
    assert small == [], page.url


def test_the_keyboard_reaches_the_content_first(page: Page, trial_served):
    page.goto(f"{trial_served.url}/staff/sign-in?lang=en")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#email")).to_be_focused()
