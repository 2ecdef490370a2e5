"""Browsers, with and without script, and an app with a page to try the frame on."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from flask import Flask
from playwright.sync_api import Browser, Page, sync_playwright

from portal.config import Config
from portal.web import factory, passwords
from sandbox.browser import chromium
from tests.cast import Cast
from tests.web import trial
from tests.web.serving import Served, serve


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """The real cost, a tenth of a second each, is the point of it and not of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        cheap = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
        patch.setattr(passwords, "_hasher", cheap)
        patch.setattr(passwords, "_nobody", None)
        yield


@pytest.fixture(params=["ja", "en"])
def lang(request: pytest.FixtureRequest) -> str:
    """Every page test that takes it runs in both languages."""
    return str(request.param)


@pytest.fixture(scope="session")
def the_trial_app(configured: Config) -> Flask:
    made = factory.create_app(configured)
    made.config["TESTING"] = True
    trial.add_to(made)
    return made


@pytest.fixture
def trial_cast(app: Flask, the_trial_app: Flask) -> Cast:
    """The cast, in the app with the trial page."""
    trial.runs.clear()
    trial.made.clear()
    the_trial_app.config["PROPAGATE_EXCEPTIONS"] = False
    return Cast(the_trial_app)


@pytest.fixture
def served(app: Flask) -> Iterator[Served]:
    """The app behind a real server on a free port: `served.url`."""
    with serve(app) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A phone's page; `page.set_viewport_size` makes it a desk's."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
    yield context.new_page()
    context.close()
