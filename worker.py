"""The RQ worker and its periodic sweeps: `python worker.py`.

Every job drains rows that are already committed, so this process may be killed at any moment and
started again: what it held is claimed anew once its lease has run out.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import time

from redis.exceptions import RedisError
from rq import SimpleWorker

from app import create_app
from portal import doorbell, isolation, log
from portal.config import Config, from_environment
from portal.edges.channels import channels
from portal.jobs import sweeps
from portal.jobs.house import House, open_house

RETRY_SECONDS = 2
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Start the sweeps beside us, prove isolation, and work until told to stop."""
    config = from_environment()
    # Forked while this process holds no connection that two of us could speak on.
    beside = multiprocessing.get_context("fork").Process(target=sweep, args=(config, os.getpid()))
    beside.start()
    try:
        open_for_work(config)
        work()
    finally:
        beside.terminate()
        beside.join(5)


def open_for_work(config: Config) -> None:
    app = create_app()
    with app.app_context():
        isolation.prove()
    held = app.extensions["monban.providers"]
    open_house(House(config, held, channels(config), context=app.app_context))


def work() -> None:
    """Serve every kind of work, doors and money before words. A Redis that is gone is waited for:
    it holds no work of ours, only rings."""
    while True:
        try:
            queues = [doorbell.queue(kind) for kind in doorbell.KINDS]
            SimpleWorker(queues, connection=doorbell.connection()).work(logging_level="WARNING")
            return
        except RedisError as fault:
            log.get("worker").warning("doorbell_unreachable", error=str(fault))
            time.sleep(RETRY_SECONDS)


def sweep(config: Config, parent: int) -> None:
    """RQ's scheduler, for as long as our worker lives."""
    die_with(parent)
    doorbell.configure(config.redis_url)
    while True:
        try:
            sweeps.scheduler(doorbell.connection()).start()  # type: ignore[no-untyped-call]
            return
        except RedisError:
            time.sleep(RETRY_SECONDS)


def die_with(parent: int) -> None:
    """A killed worker cannot stop its child, so on Linux the kernel does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    main()
