"""What a worker holds: the providers, the channels, and a fresh application context a job."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from uuid import UUID

from portal.config import Config
from portal.edges.channels import Channels
from portal.edges.providers import Providers
from portal.verbs.desk import Desk


@dataclass(frozen=True, slots=True)
class House:
    config: Config
    providers: Providers
    channels: Channels
    context: Callable[[], AbstractContextManager[object]]
    """A new one for each job, so that nothing of one job is seen by the next."""

    def desk(self, facility_id: UUID) -> Desk:
        return Desk.of(facility_id, self.providers, self.config.public_url)


_house: House | None = None


def open_house(house: House) -> None:
    """Set once by the process that runs jobs: the worker, or the web in inline mode."""
    global _house
    _house = house


@contextmanager
def at_work() -> Iterator[House]:
    if _house is None:
        raise RuntimeError("open_house was not called in this process")
    with _house.context():
        yield _house
