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
from multiprocessing.connection import wait

from redis.exceptions import RedisError
from rq import SimpleWorker

from app import create_app
from portal import doorbell, isolation, log
from portal.config import Config, from_environment
from portal.db import db
from portal.edges.channels import channels
from portal.jobs import sweeps
from portal.jobs.house import House, open_house

RETRY_SECONDS = 2
LOOK_SECONDS = 1
PR_SET_PDEATHSIG = 1


def main() -> int:
    """Prove isolation, start the lanes and the sweeps, and stand by until told to stop. 1 when one
    of them ended by itself: whoever started us starts us again."""
    open_for_work(from_environment())
    fork, us = multiprocessing.get_context("fork"), os.getpid()
    ours = [fork.Process(target=work, args=(lane, us), name=lane[0]) for lane in doorbell.LANES]
    ours.append(fork.Process(target=sweep, args=(us,), name="sweeps"))
    for one in ours:
        one.start()
    told: list[int] = []  # not before: a lane would be born deaf to it
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    while not told and all(one.is_alive() for one in ours):
        wait([one.sentinel for one in ours], timeout=LOOK_SECONDS)
    for one in ours:
        if not told and not one.is_alive():
            log.get("worker").error("lane_ended", lane=one.name, exit_code=one.exitcode)
        one.terminate()
    for one in ours:
        one.join()
    return 0 if told else 1


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
    """Serve one lane. A Redis that is gone is waited for: it holds no work of ours, only rings."""
    die_with(parent)
    while True:
        try:
            queues = [doorbell.queue(name) for name in lane]
            SimpleWorker(queues, connection=doorbell.connection()).work(logging_level="WARNING")
            return
        except RedisError as fault:
            log.get("worker").warning("doorbell_unreachable", error=str(fault))
            time.sleep(RETRY_SECONDS)


def sweep(parent: int) -> None:
    """RQ's scheduler."""
    die_with(parent)
    while True:
        try:
            sweeps.scheduler(doorbell.connection()).start()  # type: ignore[no-untyped-call]
            return
        except RedisError:
            time.sleep(RETRY_SECONDS)


def die_with(parent: int) -> None:
    """A killed parent cannot stop its children, so on Linux the kernel does: by the signal at which
    a lane ends its job first."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
