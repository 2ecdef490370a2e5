"""One verdict over all checks: any complaint fails it, and every check is still looked at."""

import tomllib

import pytest

from sandbox import check


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(check, "TOOLS", {})
    monkeypatch.setattr(check, "OURS", {"first": lambda root: [], "second": lambda root: []})
    return monkeypatch


def test_no_complaint_is_a_pass(only: pytest.MonkeyPatch) -> None:
    assert check.main() == 0


def test_a_complaint_is_printed_and_fails_but_the_rest_is_looked_at(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only.setitem(check.OURS, "first", lambda root: ["the door is open"])

    assert check.main() == 1
    out, err = capsys.readouterr()
    assert "the door is open" in out
    assert "second" in out
    assert err.strip() == "check: first failed"


def test_a_tool_that_fails_is_a_complaint_even_when_it_says_nothing(
    only: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only.setitem(check.TOOLS, "silent", ["python", "-c", "raise SystemExit(2)"])

    assert check.main() == 1
    assert "ended with 2" in capsys.readouterr().out


def test_types_are_checked_strictly_in_everything_that_is_deployed() -> None:
    settings = tomllib.loads((check.ROOT / "pyproject.toml").read_text())["tool"]["mypy"]

    assert settings["strict"] is True
    assert {"portal", "app.py", "worker.py"} <= set(settings["files"])
