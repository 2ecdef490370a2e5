"""The guest's way in a real browser on a phone, with script and without."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from flask import Flask
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect

from portal.db import SYSTEM
from portal.verbs import cash
from tests.cast import Booked
from tests.web.serving import Served
from tests.web.shop import Shop

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


def ours(message: ConsoleMessage) -> bool:
    """The provider's page is the provider's."""
    return "/g/" in message.location.get("url", "")


@contextmanager
def phone(
    browser: Browser, script: bool = True, *, faults_are_made: bool = False
) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, locale="en-GB", java_script_enabled=script)
    context.set_default_timeout(8000)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" and ours(m) else None)
    page.on("pageerror", lambda e: faults.append(str(e)))
    yield page
    context.close()
    assert faults_are_made or faults == []


def fits(page: Page) -> None:
    """Nothing is wider than the phone."""
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.fixture
def booked(open_shop: Shop) -> Booked:
    return open_shop.cast.book(guest=open_shop.cast.emma)


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_paying(open_shop: Shop, browser: Browser, booked: Booked, script: bool) -> None:
    with phone(browser, script) as page:
        page.goto(f"{open_shop.url}/g/{booked.token}")
        if script:
            fits(page)
        page.get_by_role("button", name="Pay ¥6,000 by card").click()
        page.get_by_role("button", name="Go on to the card").click()
        page.get_by_label("Card number").fill("4242424242424242")
        page.get_by_role("button", name="Pay").click()
        expect(page.get_by_role("heading", name="Confirming your payment")).to_be_visible()
        open_shop.hear()
        # Neither a click nor a reload: the page finds out by itself.
        expect(page.get_by_role("heading", name="Payment received")).to_be_visible(timeout=8000)
        expect(page.locator("[hx-trigger]")).to_have_count(0)
        page.get_by_role("link", name="Back to your stay").click()
        expect(page.get_by_role("heading", name="Your stay")).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("by card"))).to_have_count(0)


def test_while_nothing_is_new_the_words_are_not_read_out_again(
    open_shop: Shop, browser: Browser, booked: Booked
) -> None:
    open_shop.open_payment(booked)
    with phone(browser) as page:
        answers: list[int] = []
        page.on("response", lambda r: answers.append(r.status) if "seen=" in r.url else None)
        page.goto(f"{open_shop.url}/g/{booked.token}/return")
        page.evaluate("document.getElementById('standing').dataset.mine = 'untouched'")
        page.wait_for_timeout(5000)
        assert len(answers) >= 2
        assert set(answers) == {204}
        assert page.evaluate("document.getElementById('standing').dataset.mine") == "untouched"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_decline_and_another_card(
    open_shop: Shop, browser: Browser, booked: Booked, script: bool
) -> None:
    with phone(browser, script) as page:
        page.goto(f"{open_shop.url}/g/{booked.token}")
        page.get_by_role("button", name="Pay ¥6,000 by card").click()
        page.get_by_role("button", name="Go on to the card").click()
        page.get_by_label("Card number").fill("4000002500003155")
        page.get_by_role("button", name="Pay").click()
        page.get_by_role("button", name="Fail").click()
        open_shop.hear()
        expect(page.get_by_role("heading", name="The card was not accepted")).to_be_visible(
            timeout=12_000
        )
        page.get_by_role("button", name="Pay ¥6,000 by card").click()
        page.get_by_role("button", name="Go on to the card").click()
        page.get_by_label("Card number").fill("4242424242424242")
        page.get_by_role("button", name="Pay").click()
        open_shop.hear()
        expect(page.get_by_role("heading", name="Payment received")).to_be_visible(timeout=8000)


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_code_appears_by_itself(
    open_shop: Shop, browser: Browser, booked: Booked, script: bool
) -> None:
    with open_shop.cast.transaction(booked.facility_id) as tx:
        cash.take(tx, SYSTEM, booked.id, 6000, uuid4())
    open_shop.take_in(booked)
    with phone(browser, script) as page:
        page.goto(f"{open_shop.url}/g/{booked.token}")
        expect(page.get_by_role("heading", name="is being prepared")).to_be_visible()
        open_shop.lock_says(booked, "set")
        shown = page.locator("#door-code")
        expect(shown).to_have_text(open_shop.pin(booked), timeout=14_000)
        if script:
            fits(page)
            assert shown.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 32
        expect(page.locator("#door")).to_contain_text(" ".join(open_shop.pin(booked)))
        expect(page.locator("#door[hx-trigger]")).to_have_count(0)


def test_a_poll_that_fails_changes_nothing_and_the_next_one_counts(
    open_shop: Shop, browser: Browser, booked: Booked
) -> None:
    payment_id = open_shop.open_payment(booked)
    with phone(browser, faults_are_made=True) as page:
        page.goto(f"{open_shop.url}/g/{booked.token}/return")
        failed: list[str] = []

        def fail(route: Route) -> None:
            failed.append(route.request.url)
            route.fulfill(status=(503, 429, 404)[len(failed) % 3], body="<h1>not now</h1>")

        page.route("**/return?since=*", fail)
        page.wait_for_timeout(7000)
        assert len(failed) >= 3
        expect(page.get_by_role("heading", name="Confirming your payment")).to_be_visible()
        page.unroute("**/return?since=*")
        open_shop.tell(booked, payment_id, "succeeded")
        expect(page.get_by_role("heading", name="Payment received")).to_be_visible(timeout=8000)


# Stripe's own script cannot be reached from a test: this one has its doors and nothing behind them.
STRIPE = """
window.calls = [];
window.Stripe = (key, options) => ({
  elements: (settings) => ({
    create: (kind) => {
      const heard = {};
      return {
        on: (name, then) => { heard[name] = then; },
        mount: (where) => {
          window.calls.push([key, options.locale, settings.clientSecret,
                             settings.appearance.theme, kind, where]);
          heard[window.broken ? "loaderror" : "ready"]();
        },
      };
    },
  }),
  confirmPayment: async ({confirmParams}) => {
    window.calls.push(confirmParams.return_url);
    return {error: {message: "Your card was declined."}};
  },
});
"""


@pytest.fixture
def with_element(shop: Shop, served: Served, app: Flask) -> str:
    """The pay page of a portal that speaks to Stripe itself."""
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    return f"{served.url}/g/{booked.token}/pay/{payment_id}?lang=en"


def test_the_element_is_given_what_it_needs_and_errors_are_told(
    browser: Browser, with_element: str
) -> None:
    with phone(browser) as page:
        page.route("https://js.stripe.com/**", lambda route: _script(route, STRIPE))
        page.goto(with_element)
        pay = page.get_by_role("button", name="Pay ¥6,000")
        expect(pay).to_be_enabled()
        pay.click()
        expect(page.get_by_role("alert")).to_have_text("Your card was declined.")
        expect(pay).to_be_enabled()
        (key, locale, secret, theme, kind, where), back = page.evaluate("window.calls")
        assert (key, locale, theme) == ("pk_test_monban", "en", "stripe")
        assert "_secret_" in secret
        assert (kind, where) == ("payment", "#card-fields")
        assert back.endswith("/return")
        fits(page)


def test_without_stripes_script_the_guest_is_told(browser: Browser, with_element: str) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.route("https://js.stripe.com/**", lambda route: route.abort())
    page.goto(with_element)
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    expect(page.locator("#card-form")).to_be_hidden()
    page.unroute_all()
    page.route(
        "https://js.stripe.com/**", lambda route: _script(route, STRIPE + "window.broken = true;")
    )
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    context.close()


def test_without_script_the_guest_is_told(browser: Browser, with_element: str) -> None:
    with phone(browser, script=False) as page:
        page.goto(with_element)
        told = page.locator("noscript .notice")
        expect(told).to_be_visible()
        assert "Entering a card needs JavaScript" in str(told.text_content())
        expect(page.locator("#card-form")).to_be_hidden()


def _script(route: Route, body: str) -> None:
    route.fulfill(body=body, content_type="text/javascript")
