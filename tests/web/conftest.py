"""Browsers for page tests."""

from collections.abc import Iterator

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page, sync_playwright

from sandbox.browser import chromium
from tests.web.serving import Served, serve


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
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
    yield context.new_page()
    context.close()


@pytest.fixture(params=["ja", "en"])
def lang(request: pytest.FixtureRequest) -> str:
    """Every page test that takes it runs in both languages."""
    return str(request.param)
