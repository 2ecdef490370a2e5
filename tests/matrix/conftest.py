"""The stage of the matrix and its mother of processes."""

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
from tests.matrix.harness import Clean, Matrix
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
