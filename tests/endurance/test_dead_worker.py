"""A worker is gone in the middle of everything: how long until its rows are done again? At most
what is left of its lease and one sweep, by the real worker and its own sweeps; nobody rings.
"""

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from portal import doorbell
from portal.jobs.sweeps import EVERY
from sandbox import parts
from sandbox.process import Part
from tests.endurance.due import KINDS, WAITING, Work
from tests.figures import Figure

pytestmark = pytest.mark.proof

LEFT = timedelta(seconds=3)
"""What is left of each lease when the clock starts: nobody waits for minutes in a test."""

SLOW_MACHINE = 20
"""Seconds more for a machine that is busy with everything else."""


@pytest.fixture
def real_worker(place: dict[str, str]) -> Iterator[Part]:
    """As `python worker.py`: RQ's workers and the scheduler beside them."""
    part = parts.worker(place)
    yield part
    part.kill()


def comes_up(worker: Part) -> None:
    """Each lane has told the queue that it works; from then on its sweeps ring."""
    end = time.monotonic() + 60
    while doorbell.connection().scard("rq:workers") < len(doorbell.LANES):
        assert worker.running, worker.last_lines()
        assert time.monotonic() < end, worker.last_lines()
        time.sleep(0.1)


def test_a_dead_workers_rows_are_done_within_its_lease_and_one_sweep(
    due: Work,
    real_worker: Part,
    figure: Figure,
) -> None:
    owner = due.owner
    due.held_by_another(timedelta(hours=1))
    comes_up(real_worker)
    due.held_by_another(LEFT)
    began = time.monotonic()
    took: dict[str, float] = {}
    longest = LEFT.total_seconds() + max(EVERY[kind.ring] for kind in KINDS) + SLOW_MACHINE
    while len(took) < len(KINDS):
        assert time.monotonic() - began < longest, f"done: {took}\n{real_worker.last_lines()}"
        for kind in KINDS:
            waiting = f"select exists (select 1 from {kind.table} where {WAITING[kind.table]})"
            if kind.ring not in took and not owner.one(waiting):
                took[kind.ring] = time.monotonic() - began
        time.sleep(0.1)
    for kind in KINDS:
        bound = LEFT.total_seconds() + EVERY[kind.ring]
        assert took[kind.ring] < bound + SLOW_MACHINE, took
    figure(
        "dead worker",
        **{
            f"s_{kind.ring}_of_at_most_{LEFT.total_seconds() + EVERY[kind.ring]:.0f}": round(
                took[kind.ring], 1
            )
            for kind in KINDS
        },
    )
