"""What a ring asks for: look for due work of one kind until there is none.

One job drains its kind in claimed batches, so a ring costs one job and not one a row.
"""

from collections.abc import Callable

from portal import doorbell, log
from portal.doorbell import Kind
from portal.jobs import events, keys, locks, messages, payments, refunds
from portal.jobs.house import House, at_work

ROUNDS = 200
"""A bound on one job; what is left rings again."""


def drain(kind: Kind, request_id: str = "") -> int:
    """Answer one ring: the number of rows that were worked on."""
    with at_work() as house, log.request(request_id or log.new_request_id()):
        doorbell.answered(kind)
        total = 0
        for _ in range(ROUNDS):
            done = WORK[kind](house)
            if done == 0:
                return total
            total += done
        doorbell.ring(kind)
        return total


WORK: dict[Kind, Callable[[House], int]] = {
    "inbox": events.apply_due,
    "locks": locks.run_due,
    "refunds": refunds.send_due,
    "outbox": messages.dispatch_due,
    "payments": payments.read_due,
    "keys": keys.poll_due,
}
