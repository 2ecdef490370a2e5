"""The doorbell: rings are coalesced, come after the commit, and losing them loses only time."""

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from flask import Flask
from redis import Redis
from rq import SimpleWorker
from rq.job import Job

from portal import doorbell, lock_commands, log
from portal.db import transaction
from portal.jobs import drain, sweeps
from portal.jobs.house import House
from portal.outcome import Applied
from portal.verbs import stays
from sandbox.mail import MailSink
from sandbox.process import Part
from tests.cast import Cast
from tests.outside import Owner, at_once
from tests.verbs.test_stays import do


def waiting(kind: str = "outbox") -> list[Job]:
    return list(doorbell.queue(kind).jobs)  # type: ignore[arg-type]


@pytest.fixture
def no_redis(inside: Flask, queue: Part) -> Iterator[None]:
    doorbell.configure("redis://127.0.0.1:9/0")
    yield
    doorbell.configure(queue.url)


def answer(worker: House, *kinds: str) -> None:
    """What a real worker does with the jobs that wait, in this process."""
    names = kinds or doorbell.KINDS
    SimpleWorker(list(names), connection=doorbell.connection()).work(
        burst=True, logging_level="ERROR"
    )


def test_a_hundred_rings_are_one_job(inside: Flask) -> None:
    assert all(doorbell.ring("outbox") for _ in range(100))
    assert len(waiting()) == 1
    (job,) = waiting()
    assert (job.func_name, job.args[0]) == ("portal.jobs.drain.drain", "outbox")


def test_rings_from_eight_threads_are_one_job(inside: Flask, app: Flask) -> None:
    at_once(app, *[lambda: doorbell.ring("locks")] * 8)
    assert len(waiting("locks")) == 1


def test_each_kind_has_its_own_bell(inside: Flask) -> None:
    for kind in doorbell.KINDS:
        doorbell.ring(kind)
    assert [len(waiting(kind)) for kind in doorbell.KINDS] == [1] * len(doorbell.KINDS)
    assert set(drain.WORK) == set(doorbell.KINDS) == set(sweeps.EVERY)


def test_every_kind_and_the_housekeeping_is_served_by_one_lane() -> None:
    served = [name for lane in doorbell.LANES for name in lane]
    assert sorted(served) == sorted([*doorbell.KINDS, doorbell.HOUSEKEEPING])


def test_no_job_is_broken_into(inside: Flask) -> None:
    """RQ's time limit would raise wherever a job is, between a mail and its mark as well."""
    doorbell.ring("outbox")
    cron = sweeps.scheduler(doorbell.connection())
    assert {waiting()[0].timeout, *(job.job_options["job_timeout"] for job in cron.get_jobs())} == {
        -1
    }


def test_a_long_job_gives_way_and_rings_again(
    cast: Cast, worker: House, mail: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "SECONDS", -1)
    cast.book()
    answer(worker, "outbox")  # the first job gives way, the second finds nothing and ends
    assert (len(waiting()), len(mail.kept)) == (0, 1)
    cast.book(space="A02")
    waiting()[0].delete()
    assert drain.drain("outbox") == 1
    assert len(waiting()) == 1


def test_a_worker_that_looks_lowers_the_flag_first(
    cast: Cast, worker: House, mail: MailSink
) -> None:
    cast.book()
    assert len(waiting()) == 1
    answer(worker, "outbox")
    assert (len(waiting()), len(mail.kept)) == (0, 1)
    cast.book(space="A02")
    assert len(waiting()) == 1
    answer(worker, "outbox")
    assert len(mail.kept) == 2


def test_the_request_id_goes_with_the_ring(inside: Flask) -> None:
    with log.request("req-7"):
        doorbell.ring("outbox")
    assert waiting()[0].args == ("outbox", "req-7")


def test_j5_nothing_rings_before_the_commit(cast: Cast, inside: Flask) -> None:
    house = cast.tokyo.id
    with transaction(house) as tx:
        tx.ring("locks")
        assert waiting("locks") == []
    assert len(waiting("locks")) == 1


def test_j5_nothing_rings_for_what_was_rolled_back(cast: Cast, inside: Flask) -> None:
    def broken() -> None:
        with transaction(cast.tokyo.id) as tx:
            tx.ring("locks")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert waiting("locks") == []


@pytest.mark.parametrize("loss", ["job", "queue", "everything"])
def test_j2_a_lost_job_costs_time_only(
    cast: Cast, worker: House, mail: MailSink, loss: str
) -> None:
    cast.book()
    redis: Redis = doorbell.connection()
    if loss == "job":
        redis.delete(waiting()[0].key)
    elif loss == "queue":
        redis.delete(doorbell.queue("outbox").key)
    else:
        redis.flushall()
    answer(worker, "outbox")
    assert mail.kept == []
    if loss != "everything":
        left = redis.ttl("monban:ring:outbox")
        assert 0 < left <= doorbell.FLAG_SECONDS
        redis.delete("monban:ring:outbox")  # as it falls by itself
    assert doorbell.ring("outbox")
    answer(worker, "outbox")
    assert len(mail.kept) == 1


def test_j2_the_flag_falls_by_itself(inside: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorbell, "FLAG_SECONDS", 1)
    doorbell.ring("keys")
    doorbell.connection().delete(doorbell.queue("keys").key)
    time.sleep(1.1)
    doorbell.ring("keys")
    assert len(waiting("keys")) == 1


def test_j2_the_sweep_asks_no_flag(cast: Cast, worker: House, mail: MailSink) -> None:
    """A flag that stands without a job: the sweep's own job drains all the same."""
    cast.book()
    doorbell.connection().flushall()
    doorbell.connection().set("monban:ring:outbox", "1", ex=60)
    for job in sweeps.scheduler(doorbell.connection()).get_jobs():
        if job.args == ("outbox",):
            doorbell.queue("outbox").enqueue(job.func, *job.args)
    answer(worker, "outbox")
    assert len(mail.kept) == 1


def test_j7_a_job_that_is_written_but_not_queued_blocks_nothing(
    cast: Cast, worker: House, mail: MailSink
) -> None:
    cast.book()
    redis = doorbell.connection()
    redis.delete(doorbell.queue("outbox").key)
    redis.delete("monban:ring:outbox")
    assert doorbell.ring("outbox")
    answer(worker, "outbox")
    assert len(mail.kept) == 1


def test_j4_verbs_succeed_while_redis_is_away(
    cast: Cast, worker: House, mail: MailSink, owner: Owner, queue: Part
) -> None:
    doorbell.configure("redis://127.0.0.1:9/0")
    try:
        stay = cast.book(price=0)
        assert isinstance(do(cast, stays.admit, stay.id, 1), Applied)
        assert doorbell.ring("outbox") is False
        doorbell.answered("outbox")
    finally:
        doorbell.configure(queue.url)
    assert owner.row(
        "select (select count(*) from outbox), (select count(*) from lock_commands)"
    ) == (1, 1)
    drain.drain("outbox")
    assert len(mail.kept) == 1


def test_j4_draining_needs_no_redis(
    cast: Cast, worker: House, mail: MailSink, no_redis: None
) -> None:
    cast.book()
    assert drain.drain("outbox") == 1
    assert len(mail.kept) == 1


def test_a_drain_stops_when_nothing_is_due(cast: Cast, worker: House) -> None:
    for kind in doorbell.KINDS:
        assert drain.drain(kind) == 0
    stay = cast.book(price=0)
    do(cast, stays.admit, stay.id, 1)
    with transaction(None) as tx:
        assert len(lock_commands.claim(tx, uuid4())) == 1
    assert drain.drain("locks") == 0
