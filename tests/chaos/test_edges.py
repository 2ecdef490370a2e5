"""Every call at every edge, in every way that it can go wrong: who asked is told the truth at that
moment, and when the edge is back both sides say the same and each effect has happened once."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from portal.edges.line.adapter import LineMessages
from portal.edges.line.port import Line
from portal.edges.locks.adapter import SeamLocks
from portal.edges.locks.port import Locks
from portal.edges.mail.adapter import SmtpMail
from portal.edges.mail.port import Mail
from portal.edges.payments.adapter import StripePayments
from portal.edges.payments.port import Payments
from portal.jobs import house
from portal.jobs.house import House
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.cast import Cast
from tests.chaos import faults, truth
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.operations import OPERATIONS, Operation
from tests.chaos.scene import Scene
from tests.outside import Owner

pytestmark = pytest.mark.proof

SHARE = 12
"""Of so many faults one is met in the short run, and by the next operation the next one."""

PORTS: dict[str, tuple[type, type]] = {
    "payments": (Payments, StripePayments),
    "locks": (Locks, SeamLocks),
    "mail": (Mail, SmtpMail),
    "line": (Line, LineMessages),
}

WITHOUT_A_CALL = {"payments.hosted_page": "an address is put together", "mail.connect": "of send"}


class Cell(NamedTuple):
    operation: Operation
    fault: Fault

    def __str__(self) -> str:
        return f"{self.operation}-{self.fault}"


def table() -> list[Cell]:
    return [
        Cell(one, fault)
        for one in OPERATIONS
        for fault in faults.of(one.edge)
        if fault not in one.never
    ]


def cells(*, whole: bool) -> list[Cell]:
    """All of them, or a share in which every operation and every fault stands."""
    return [cell for cell in table() if whole or _in_share(cell)]


def _in_share(cell: Cell) -> bool:
    column = faults.of(cell.operation.edge).index(cell.fault)
    return (OPERATIONS.index(cell.operation) + column) % SHARE == 0


@pytest.fixture
def scene(
    cast: Cast,
    worker: House,
    owner: Owner,
    stripe: StandIn,
    seam: Running,
    line: Running,
    mail: MailSink,
) -> Iterator[Scene]:
    yield Scene(cast, worker, owner, stripe, seam, line, mail)
    house.open_house(worker)


def test_an_edge_fails_and_comes_back(scene: Scene, cell: Cell) -> None:
    operation, fault = cell
    operation.before(scene)
    scene.break_down(operation.edge, fault, *operation.at)
    assert operation.act(scene) == operation.told[faults.fate(operation.edge, fault)]
    scene.come_back()
    scene.minutes_pass()
    scene.quiet()
    operation.after(scene)
    truth.agrees(scene)


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_") and callable(vars(kind)[name])}


@pytest.mark.parametrize("edge", sorted(PORTS))
def test_no_call_at_an_edge_is_left_out(edge: str) -> None:
    """A new method of a port or an adapter needs its row in the table."""
    port, adapter = PORTS[edge]
    made = {f"{edge}.{name}" for name in public(port) | public(adapter)}
    covered = {f"{one.edge}.{one.method}" for one in OPERATIONS if one.edge == edge}
    assert made - set(WITHOUT_A_CALL) == covered


def test_the_share_has_every_operation_and_every_fault() -> None:
    share = cells(whole=False)
    assert {cell.operation for cell in share} == set(OPERATIONS)
    met: set[Any] = {cell.fault for cell in share}
    assert met >= set(FAULTS)
    assert len(share) < len(table()) / (SHARE - 1)
