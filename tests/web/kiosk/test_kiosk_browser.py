"""The tablet in a real browser: nothing of the last guest is left in it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.cast import Booked
from tests.web.kiosk.test_kiosk import entrance
from tests.web.serving import serve
from tests.web.staff.houses import FrontDesk


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def tablet(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 1024, "height": 768}, java_script_enabled=request.param
    )
    yield context.new_page()
    context.close()


def code_of(front: FrontDesk, stay: Booked) -> str:
    return str(front.scalar(stay, "select code from stays where id = :id", stay.id))


def test_no_way_leads_back_to_a_guest(front: FrontDesk, tablet: Page) -> None:
    way = entrance(front.cast)
    stay = front.cast.book(price=0, guest=front.cast.emma)
    said = code_of(front, stay)
    with serve(front.app) as served:
        tablet.goto(served.url + way)
        tablet.get_by_role("button", name="English").click()
        tablet.get_by_role("button", name="I have a reservation").click()
        tablet.fill("#code", said)
        tablet.fill("#proof", "0123")
        tablet.get_by_role("button", name="Go on").click()
        assert tablet.url.endswith("/stay")
        shown = f"{said[:4]}{said[4:]}"
        assert shown in tablet.inner_text("main").replace(" ", "").replace("\n", "")
        tablet.get_by_role("button", name="Done, clear this screen").click()
        assert tablet.url == served.url + way
        for _ in range(6):
            if tablet.go_back() is None:
                break
            text = tablet.content()
            assert said not in text
            assert "0123" not in text
            assert f'value="{said}"' not in text
        tablet.goto(f"{served.url}{way}/stay")
        assert tablet.url == served.url + way


def test_a_tablet_that_nobody_touches_goes_back(front: FrontDesk, tablet: Page) -> None:
    """By script at once where nobody touched it for its time; without, by the page's own refresh,
    whose seconds are read here."""
    way = entrance(front.cast)
    front.cast.book(price=0, guest=front.cast.emma)
    with serve(front.app) as served:
        scripted = tablet.evaluate("1 + 1") == 2 if _has_script(tablet) else False
        if scripted:
            tablet.clock.install()
        tablet.goto(f"{served.url}{way}/code?lang=en")
        if scripted:
            tablet.clock.fast_forward(59_000)
            assert tablet.url.partition("?")[0].endswith("/code")
            tablet.clock.fast_forward(2_000)
            tablet.wait_for_url(served.url + way)
        else:
            told = tablet.content()
            assert f'http-equiv="refresh" content="60;url={way}"' in told


def _has_script(tablet: Page) -> bool:
    tablet.goto("data:text/html,<noscript><p id=off></p></noscript>")
    return tablet.locator("#off").count() == 0
