"""One house for all proofs of a module: a served portal, the far side, and children to kill."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from portal.jobs.house import House
from sandbox import parts
from sandbox.mail import MailSink
from sandbox.process import Part
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.outside import (  # noqa: F401
    LINE_TOKEN,
    SEAM_KEY,
    Owner,
    line,
    line_process,
    mail,
    mail_server,
    owner,
    seam,
    seam_process,
    stripe,
    stripe_process,
    worker,
)
from tests.proofs.processes import Nursery, mother
from tests.proofs.scene import Inline, Mode, Queued, Scene


@pytest.fixture(scope="module")
def place(
    settings: dict[str, str],
    stripe_process: StandIn,  # noqa: F811
    seam_process: Running,  # noqa: F811
    line_process: Running,  # noqa: F811
    mail_server: MailSink,  # noqa: F811
) -> dict[str, str]:
    """The environment of every process of the house."""
    return {
        **settings,
        "STRIPE_API_BASE": stripe_process.base,
        "SEAM_API_KEY": SEAM_KEY,
        "SEAM_ENDPOINT": seam_process.url,
        "LINE_CHANNEL_TOKEN": LINE_TOKEN,
        "LINE_API_BASE": line_process.url,
        "SMTP_URL": mail_server.url,
    }


@pytest.fixture(scope="module")
def forks(place: dict[str, str], folder: Path) -> Iterator[Path]:
    """Where children are asked for."""
    path = folder / f"children-{uuid4().hex[:8]}.sock"
    made: Part = mother(path, folder / "children.log", place)
    yield path
    made.kill()


@pytest.fixture(scope="module")
def portal_url(place: dict[str, str], folder: Path) -> Iterator[str]:
    """The portal as it is run, on the production server."""
    part = parts.portal(place, threads=4, log=folder / "portal.log")
    yield part.url
    part.kill()


@pytest.fixture
def nursery(owner: Owner, forks: Path) -> Iterator[Nursery]:  # noqa: F811
    made = Nursery(forks)
    yield made
    made.close()


@pytest.fixture
def scene(
    cast: Cast,
    worker: House,  # noqa: F811
    owner: Owner,  # noqa: F811
    stripe: StandIn,  # noqa: F811
    mail: MailSink,  # noqa: F811
    nursery: Nursery,
) -> Scene:
    """A stay whose guest has just paid by card; we have not heard of it yet."""
    return Scene(cast, worker, owner, stripe, mail, nursery)


@pytest.fixture(params=["queued", "inline"])
def mode(request: pytest.FixtureRequest, nursery: Nursery) -> Iterator[Mode]:
    """How events are applied: by a worker, or in the request."""
    if request.param == "inline":
        made: Mode = Inline(nursery)
    else:
        made = Queued(nursery, request.getfixturevalue("portal_url"))
    yield made
    nursery.close()
    made.close()
