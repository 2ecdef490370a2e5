"""The stage of the matrix, its mother of processes, and the line with which it ends."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from flask import Flask

from portal.jobs.house import House
from sandbox.mail import MailSink
from sandbox.process import Part
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.matrix.harness import PROPERTY, Clean, Count, Matrix
from tests.matrix.stage import Stage
from tests.outside import Owner
from tests.proofs.processes import mother


@pytest.fixture(scope="module")
def forks(place: dict[str, str], folder: Path) -> Iterator[Path]:
    path = folder / f"matrix-{uuid4().hex[:8]}.sock"
    made: Part = mother(path, folder / "matrix.log", place, "tests.matrix.child")
    yield path
    made.kill()


@pytest.fixture(scope="module")
def cleans() -> dict[str, Clean]:
    """What each act's clean run has shown, for whoever asks later."""
    return {}


@pytest.fixture
def matrix(
    app: Flask,
    worker: House,
    owner: Owner,
    database: dict[str, str],
    stripe: StandIn,
    seam: Running,
    line: Running,
    mail: MailSink,
    forks: Path,
) -> Matrix:
    stage = Stage(app, worker, owner, database["DATABASE_OWNER_URL"], stripe, seam, line, mail)
    return Matrix(stage, forks)


# The closing line: every worker's tests, summed ---------------------------------------------------


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
