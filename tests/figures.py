"""The lines that long proofs leave in the summary, whoever ran them: this is a plugin of all tests,
because a run on several processes reads no conftest below."""

from collections.abc import Callable
from typing import Any

import pytest

Figure = Callable[..., None]


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """`figure("races", rounds=48, doubled=0)`: what this test has counted. The same name and words
    from several tests are added up into one line."""

    def note(name: str, **counted: float | str) -> None:
        record_property("figure", (name, counted))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines: dict[str, dict[str, Any]] = {}
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", []):
            if name == "figure" and report.when == "call":
                _add(lines.setdefault(value[0], {}), value[1])
    if lines:
        terminalreporter.section("figures")
    for name, counted in sorted(lines.items()):
        told = (f"{value} {words.replace('_', ' ')}" for words, value in counted.items())
        terminalreporter.write_line(f"{name}: {', '.join(told)}")


def _add(line: dict[str, Any], counted: dict[str, Any]) -> None:
    """Numbers of several tests are added up; what is told in words is the same in each."""
    for words, value in counted.items():
        known = line.get(words)
        line[words] = value if known is None or isinstance(value, str) else known + value
