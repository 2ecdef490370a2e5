"""The RQ workers and their periodic sweeps: `python worker.py`.

One process for each lane of work and one for the sweeps, and this one, which ends with any of them.
Every job drains rows that are already committed, so each may be killed at any moment and started
again: what it held is claimed anew once its lease has run out.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType

from redis.exceptions import RedisError
from rq import SimpleWorker
from rq.exceptions import StopRequested
from rq.worker import WorkerStatus

from app import create_app
from portal import doorbell, isolation, log
from portal.config import Config, from_environment
from portal.db import db
from portal.edges.channels import channels
from portal.jobs import sweeps
from portal.jobs.house import House, open_house

RETRY_SECONDS = 2
LOOK_SECONDS = 1
ENDING_SECONDS = 60
"""For a lane that is told to stop: longer than a job gives way in, and its last call takes."""

PR_SET_PDEATHSIG = 1


class Lane(SimpleWorker):
    """RQ's worker, but no signal breaks into a job: RQ speaks to Redis in the handler of the first,
    and raises at the second. A Redis that is gone is looked for every few seconds."""

    max_connection_wait_time = RETRY_SECONDS
    told = False

    def request_stop(self, signum: int | None, frame: FrameType | None) -> None:
        Lane.told = self._stop_requested = True
        if self.get_state() != WorkerStatus.BUSY:
            raise StopRequested

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        self.request_stop(signum, frame)


def main() -> int:
    """Prove isolation, start the lanes and the sweeps, and stand by until told to stop. 1 when one
    of them ended by itself: whoever started us starts us again."""
    open_for_work(from_environment())
    fork, us = multiprocessing.get_context("fork"), os.getpid()
    lanes = [fork.Process(target=work, args=(lane, us), name=lane[0]) for lane in doorbell.LANES]
    beside = fork.Process(target=sweep, args=(us,), name="sweeps")
    for one in (*lanes, beside):
        one.start()
    told: list[int] = []  # not before: a lane would be born deaf to it
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    while not told and all(one.is_alive() for one in (*lanes, beside)):
        wait([one.sentinel for one in (*lanes, beside)], timeout=LOOK_SECONDS)
    for one in (*lanes, beside):
        if not told and not one.is_alive():
            log.get("worker").error("lane_ended", lane=one.name, exit_code=one.exitcode)
    beside.kill()  # it holds nothing
    end(lanes)
    return 0 if told else 1


def end(lanes: Sequence[BaseProcess]) -> None:
    """Each ends its job first, unless that takes too long."""
    for lane in lanes:
        lane.terminate()
    latest = time.monotonic() + ENDING_SECONDS
    for lane in lanes:
        lane.join(max(0, latest - time.monotonic()))
        lane.kill()


def open_for_work(config: Config) -> None:
    """Nothing that two processes could speak on is left open: they are forked after this."""
    app = create_app()
    with app.app_context():
        isolation.prove()
        for engine in db.engines.values():
            engine.dispose()
    doorbell.connection().connection_pool.disconnect()
    held = app.extensions["monban.providers"]
    open_house(House(config, held, channels(config), context=app.app_context))


def work(lane: Sequence[str], parent: int) -> None:
    """Serve one lane until told to stop. RQ's worker also ends, and not always by an error, when
    Redis is gone at the end of a job; it holds no work of ours, only rings, so it is begun anew."""
    die_with(parent, signal.SIGTERM)
    while not Lane.told:
        with suppress(StopRequested):
            serve(lane)
            time.sleep(0 if Lane.told else RETRY_SECONDS)


def serve(lane: Sequence[str]) -> None:
    queues = [doorbell.queue(name) for name in lane]
    try:
        Lane(queues, connection=doorbell.connection()).work(logging_level="WARNING")
    except RedisError as fault:
        log.get("worker").warning("doorbell_unreachable", lane=lane[0], error=str(fault))


def sweep(parent: int) -> None:
    """RQ's scheduler, until it is killed."""
    die_with(parent, signal.SIGKILL)
    while True:
        try:
            sweeps.scheduler(doorbell.connection()).start()  # type: ignore[no-untyped-call]
            return
        except RedisError:
            time.sleep(RETRY_SECONDS)


def die_with(parent: int, how: signal.Signals) -> None:
    """A killed parent cannot stop its children, so on Linux the kernel does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, how)
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
