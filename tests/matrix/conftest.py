"""The stage of the matrix and its mother of processes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from flask import Flask

from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.jobs.house import House, open_house
from sandbox.mail import MailSink
from sandbox.mail_archive import MailArchive
from sandbox.process import Part
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.matrix.harness import Clean, Matrix
from tests.matrix.stage import Stage
from tests.outside import Owner
from tests.proofs.processes import mother


@pytest.fixture(scope="module")
def archive(mail_server: MailSink) -> Iterator[MailArchive]:
    """Whoever compares the books can ask the mail server what it has."""
    with MailArchive(mail_server) as made:
        yield made


@pytest.fixture(scope="module")
def place(place: dict[str, str], archive: MailArchive) -> dict[str, str]:
    return {**place, "MAIL_ARCHIVE_URL": archive.url}


@pytest.fixture
def house(worker: House, archive: MailArchive) -> House:
    """A worker that can ask it as well."""
    held = replace(worker.providers, mail_archive=HttpMailArchive(archive.url))
    made = replace(worker, providers=held)
    open_house(made)
    return made


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
    house: House,
    owner: Owner,
    database: dict[str, str],
    stripe: StandIn,
    seam: Running,
    line: Running,
    mail: MailSink,
    forks: Path,
) -> Matrix:
    stage = Stage(app, house, owner, database["DATABASE_OWNER_URL"], stripe, seam, line, mail)
    return Matrix(stage, forks)
