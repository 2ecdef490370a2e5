"""The line with which the matrix ends: every process's tests, summed. A plugin of all tests,
because a run on several processes reads no conftest below."""

import pytest

from tests.matrix.harness import PROPERTY, Count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counted = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]
    if not counted:
        return
    total = Count(*(sum(column) for column in zip(*counted, strict=True)))
    terminalreporter.section("crash matrix")
    terminalreporter.write_line(
        f"{len(counted)} acts, {total.milliseconds / max(total.points, 1):.0f} ms a point; at"
        f" {total.doubts} points a process died while it handed over an e-mail: nobody can know"
        " whether it arrived, so it was shown to a person, who asked the guest"
    )
    terminalreporter.write_line(
        f"crash matrix: {total.points} points, {total.killed} killed,"
        f" {total.points - total.violated} healed, {total.violated} violated"
    )
