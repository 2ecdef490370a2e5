"""What a ring asks for: look for due work of one kind until there is none.

One job drains its kind in claimed batches, so a ring costs one job and not one a row.
"""

import time
from collections.abc import Callable

from portal import doorbell, log
from portal.doorbell import Kind
from portal.jobs import events, keys, locks, memberships, messages, payments, refunds
from portal.jobs.house import House, at_work

SECONDS = 30
"""When a job gives way; what is left rings again. Who is told to stop ends its job first."""


def drain(kind: Kind, request_id: str = "") -> int:
    """Answer one ring: the number of rows that were worked on."""
    with at_work() as house, log.request(request_id or log.new_request_id()):
        doorbell.answered(kind)
        total, end = 0, time.monotonic() + SECONDS
        while done := WORK[kind](house):
            total += done
            if time.monotonic() > end:
                doorbell.ring(kind)
                break
        return total


WORK: dict[Kind, Callable[[House], int]] = {
    "inbox": events.apply_due,
    "locks": locks.run_due,
    "refunds": refunds.send_due,
    "outbox": messages.dispatch_due,
    "payments": payments.read_due,
    "keys": keys.poll_due,
    "memberships": memberships.look,
}
