"""A paid stay, and the two ways in which events are applied."""

from collections.abc import Iterator

import pytest

from portal.jobs.house import House
from sandbox.mail import MailSink
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.outside import Owner
from tests.proofs.processes import Nursery
from tests.proofs.scene import Inline, Mode, Queued, Scene


@pytest.fixture
def scene(
    cast: Cast,
    worker: House,
    owner: Owner,
    stripe: StandIn,
    mail: MailSink,
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
