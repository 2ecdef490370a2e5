"""The doorbell: an RQ job says "look now" and nothing else.

Every piece of work is a row; a lost ring costs time until the next sweep, never work. Rings are
coalesced with a flag that a job lowers when it starts and that falls by itself, so a job lost
between flag and queue delays its kind by seconds.
"""

from typing import Literal

import structlog
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue

from portal.log import request_id

Kind = Literal["inbox", "locks", "refunds", "outbox", "payments", "keys", "memberships"]

KINDS: tuple[Kind, ...] = (
    "inbox",
    "locks",
    "refunds",
    "outbox",
    "payments",
    "keys",
    "memberships",
)

HOUSEKEEPING = "housekeeping"
"""The queue of what is looked after now and then: nobody rings for it."""

LANES: tuple[tuple[str, ...], ...] = (
    ("inbox",),
    ("locks", "keys"),
    ("refunds", "payments", "memberships"),
    ("outbox",),
    (HOUSEKEEPING,),
)
"""Each is served by a process of its own: a mail server that does not answer holds up no door, and
a long comparison of the books no refund."""

FLAG_SECONDS = 10
NO_TIMEOUT = -1
"""RQ would break into a job wherever it is: between a mail that was accepted and the mark that it
was. Every call has its own time limit, and `drain` its own end."""

RESULT_SECONDS = 60

_redis: "Redis | None" = None


def configure(url: str) -> None:
    """Name the server; nothing connects before the first ring."""
    global _redis
    _redis = Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)


def connection() -> Redis:
    if _redis is None:
        raise RuntimeError("doorbell.configure was not called")
    return _redis


def queue(name: str) -> Queue:
    """That of a kind, or of housekeeping."""
    return Queue(name, connection=connection(), default_timeout=NO_TIMEOUT)


def ring(kind: Kind) -> bool:
    """Ask a worker to look for `kind`. False when Redis cannot be reached; the sweep will ring."""
    try:
        if _raised(kind):
            queue(kind).enqueue(
                "portal.jobs.drain.drain",
                kind,
                request_id(),
                result_ttl=RESULT_SECONDS,
                failure_ttl=RESULT_SECONDS,
            )
        return True
    except RedisError as fault:
        structlog.get_logger(__name__).warning("doorbell_unreachable", kind=kind, error=str(fault))
        return False


def answered(kind: Kind) -> None:
    """A worker has begun to look: what is written from now on rings again."""
    try:
        connection().delete(_flag(kind))
    except RedisError:
        return  # the flag falls by itself


def _raised(kind: Kind) -> bool:
    """Whether we are the one who raised the flag. Every webhook waits for this answer, so it is
    asked on a connection itself: the client's layers above cost more than the server."""
    pool = connection().connection_pool
    wire = pool.get_connection()
    try:
        wire.send_command("SET", _flag(kind), "1", "NX", "EX", FLAG_SECONDS)
        return wire.read_response() is not None
    finally:
        pool.release(wire)


def _flag(kind: Kind) -> str:
    return f"monban:ring:{kind}"
