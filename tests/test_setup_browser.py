"""A browser is found or fetched; in CI, none is a failure and not a skip."""

import pytest

from sandbox import browser


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without a browser, on which nothing can be installed."""
    monkeypatch.setattr(browser, "chromium", lambda: None)
    monkeypatch.setattr(browser, "_may_install", lambda: False)
    monkeypatch.setattr(browser.subprocess, "run", lambda *args, **options: None)
    return monkeypatch


def test_no_browser_fails_in_ci(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("CI", "true")

    assert browser.main() == 1


def test_no_browser_is_told_elsewhere(
    bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare.delenv("CI", raising=False)

    assert browser.main() == 0
    assert "no Chromium here" in capsys.readouterr().err


def test_root_on_debian_installs_only_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(browser, "_may_install", lambda: True)
    monkeypatch.setattr(browser, "_apt_get", lambda *words: asked.append(words))
    monkeypatch.setattr(browser, "_missing_packages", lambda: ["fonts-noto-cjk"])
    monkeypatch.setattr(browser, "chromium", lambda: "/usr/bin/chromium")

    assert browser.set_up()
    assert asked == [
        ("update",),
        ("install", "-y", "--no-install-recommends", "fonts-noto-cjk"),
    ]


def test_nothing_is_installed_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(browser, "_may_install", lambda: True)
    monkeypatch.setattr(browser, "_apt_get", lambda *words: asked.append(words))
    monkeypatch.setattr(browser, "_missing_packages", list)
    monkeypatch.setattr(browser, "chromium", lambda: "/usr/bin/chromium")

    assert browser.set_up()
    assert asked == []
