"""What the long proofs stand on."""

from collections.abc import Iterator

import pytest

from portal.jobs.house import House
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.endurance.due import Work
from tests.endurance.ground import Ground, Snapshots
from tests.outside import Owner


@pytest.fixture
def snapshots(owner: Owner) -> Iterator[Snapshots]:
    made = Snapshots(owner)
    yield made
    made.forget()


@pytest.fixture
def ground(cast: Cast, worker: House, owner: Owner, snapshots: Snapshots) -> Ground:
    return Ground(cast, worker, owner, snapshots)


@pytest.fixture
def due(ground: Ground, stripe: StandIn, seam: Running, mail: MailSink) -> Work:
    made = Work(ground, stripe, seam, mail)
    made.lay_out()
    return made
