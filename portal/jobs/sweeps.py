"""The periodic sweeps, on RQ's own scheduler: they ring for whatever is due, lost rings or not."""

from collections.abc import Callable
from datetime import timedelta

from redis import Redis
from rq.cron import CronScheduler

from portal import doorbell, inbox, log
from portal.db import transaction
from portal.doorbell import HOUSEKEEPING, KINDS, Kind
from portal.jobs import deposits, walk_ins
from portal.jobs.catch_up import fetch_missed
from portal.jobs.drain import drain
from portal.jobs.house import at_work
from portal.jobs.reconcile import SETTLES_SECONDS, reconcile

# Seconds between two looks at each kind of work, when nothing rings.
EVERY: dict[Kind, int] = {
    "inbox": 10,
    "locks": 10,
    "refunds": 15,
    "outbox": 10,
    "payments": 30,
    "keys": 10,
    "memberships": 30,
}

CATCH_UP_SECONDS = 300
WALK_INS_SECONDS = 120
DEPOSITS_SECONDS = 120
PRUNE_SECONDS = 3600
RECONCILE_SECONDS = 3600
PURGED_AT_ONCE = 500
KEEP_COMPLETED = timedelta(days=30)


def scheduler(connection: Redis) -> CronScheduler:
    """A job that waits longer than its interval is dropped: the next one does the same work, so a
    stopped worker leaves no pile behind."""
    cron = CronScheduler(connection)
    for kind in KINDS:
        _every(cron, EVERY[kind], kind, drain, kind)
    _every(cron, CATCH_UP_SECONDS, HOUSEKEEPING, catch_up)
    _every(cron, WALK_INS_SECONDS, HOUSEKEEPING, let_walk_ins_go)
    _every(cron, DEPOSITS_SECONDS, HOUSEKEEPING, end_missed_deposits)
    _every(cron, PRUNE_SECONDS, HOUSEKEEPING, prune)
    _every(cron, PRUNE_SECONDS, HOUSEKEEPING, purge)
    _every(cron, RECONCILE_SECONDS, HOUSEKEEPING, compare)
    return cron


def _every(
    cron: CronScheduler, seconds: int, queue: str, job: Callable[..., int], *args: str
) -> None:
    cron.register(
        job,
        queue,
        args=args,
        interval=seconds,
        ttl=seconds,
        job_timeout=doorbell.NO_TIMEOUT,
        result_ttl=doorbell.RESULT_SECONDS,
        failure_ttl=doorbell.RESULT_SECONDS,
    )


def catch_up() -> int:
    """Feed what the provider says happened and we never received through the same door."""
    with at_work() as house, log.request(log.new_request_id()):
        found = fetch_missed(house)
    if found:
        doorbell.ring("inbox")
    return found


def let_walk_ins_go() -> int:
    """Spaces that nobody who stood at a tablet has paid for are free again."""
    with at_work(), log.request(log.new_request_id()):
        return walk_ins.let_go()


def end_missed_deposits() -> int:
    """Bookings whose deposit did not come in time hold no space any more."""
    with at_work() as house, log.request(log.new_request_id()):
        return deposits.end_missed(house)


def prune() -> int:
    """Completed events older than 30 days are dead weight."""
    with at_work(), transaction(None) as tx:
        return inbox.prune(tx, KEEP_COMPLETED)


def purge() -> int:
    """Entries in the register of guests are gone three years after the guest has left. A batch a
    transaction, until there is none."""
    gone = 0
    with at_work():
        while batch := _purged():
            gone += batch
    return gone


def _purged() -> int:
    with transaction(None) as tx:
        return int(tx.scalar("select purge_registers(:most)", most=PURGED_AT_ONCE))


def compare(settle: float = SETTLES_SECONDS) -> int:
    """Our books beside the provider's and the locks': what differs is shown to a person. What
    seems to differ is looked at again after `settle` seconds."""
    with at_work() as house, log.request(log.new_request_id()):
        return reconcile(house.providers, settle).open
