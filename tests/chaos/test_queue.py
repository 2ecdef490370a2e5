"""Redis is a doorbell: emptied, gone, restarted, its jobs lost or doubled. No work is lost and none
is done twice, and nobody at a page is told otherwise.

Two real workers with their real sweeps stand at a Redis of their own. To catch a ring between the
bell and the worker, they are stopped (SIGSTOP) and let go again.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from rq import Worker as RQWorker

from portal import doorbell
from sandbox import parts
from sandbox.mail import MailSink
from sandbox.process import Part
from sandbox.seam.running import Running, eventually
from tests.cast import Booked, Cast
from tests.chaos.test_database import delivery
from tests.endurance.test_lanes import family
from tests.outside import Owner
from tests.web.audit import audit, form_data
from tests.web.test_hooks_stripe import header

pytestmark = pytest.mark.proof

PATIENCE = 60
"""Seconds. The sweeps come every ten; a busy machine may be late."""


class Bell:
    """A Redis of its own, that can go and come back at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, parts.free_port()
        self.part = parts.valkey(folder, port=self.port)

    def go(self) -> None:
        self.part.kill()

    def come_back(self) -> None:
        self.part = parts.valkey(self._folder, port=self.port)


@pytest.fixture(scope="module")
def bell(folder: Path) -> Iterator[Bell]:
    made = Bell(folder / "bell")
    yield made
    made.go()


class Workers:
    def __init__(self, made: list[Part]) -> None:
        self._made = made

    def lanes(self) -> set[int]:
        """Every process of theirs, their sweeps included."""
        return {one.pid for made in self._made for one in family(made)}

    def last_lines(self) -> str:
        return "\n".join(worker.last_lines(40) for worker in self._made)

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, what: signal.Signals) -> None:
        for worker in self._made:
            os.killpg(worker.process.pid, what)  # its sweeps are in its group

    def alive(self) -> bool:
        return all(worker.running for worker in self._made)


@pytest.fixture(scope="module")
def two_workers(place: dict[str, str], bell: Bell, folder: Path) -> Iterator[Workers]:
    env = {**place, "REDIS_URL": bell.part.url}
    made = [parts.worker(env, log=folder / f"worker-{number}.log") for number in (1, 2)]
    redis, lanes = Redis.from_url(bell.part.url), len(made) * len(doorbell.LANES)
    assert eventually(lambda: RQWorker.count(connection=redis) == lanes, PATIENCE)
    yield Workers(made)
    for worker in made:
        worker.kill()


@pytest.fixture
def workers(app: Flask, bell: Bell, two_workers: Workers) -> Iterator[Workers]:
    doorbell.configure(bell.part.url)
    two_workers.go_on()
    yield two_workers
    two_workers.go_on()
    assert two_workers.alive()


@pytest.fixture
def client(cast: Cast) -> FlaskClient:
    return cast.signed_in(cast.sato)


def check_in(client: FlaskClient, stay: Booked) -> str:
    """What the page says of it."""
    page = f"/staff/stays/{stay.id}"
    form = form_data(audit(client.get(page), client), f"{page}/check-in")
    answer = client.post(f"{page}/check-in", data=form)
    assert answer.status_code == 303
    return client.get(answer.location).get_data(as_text=True)


def everything_is_done(owner: Owner, mail: MailSink, seam: Running, stays: int) -> bool:
    """Each stay has one code on its lock; each message has left once."""
    left = "select count(*) from outbox where sent_at is null"
    done = "select count(*) from entry_keys where state = 'issued'"
    codes = seam.control("codes")
    return bool(
        owner.one(left) == 0
        and owner.one(done) == stays == len(codes)
        and len(mail.kept) == owner.one("select count(*) from outbox") == 2 * stays
    )


def settled(owner: Owner, mail: MailSink, seam: Running, stays: int) -> None:
    assert eventually(lambda: everything_is_done(owner, mail, seam, stays), PATIENCE)
    assert len({got.message["Message-ID"] for got in mail.kept}) == len(mail.received)


@pytest.mark.parametrize("loss", ["everything", "jobs", "never queued"])
def test_a_ring_that_is_lost_costs_time_only(
    cast: Cast,
    client: FlaskClient,
    workers: Workers,
    mail: MailSink,
    seam: Running,
    owner: Owner,
    loss: str,
) -> None:
    workers.stop()
    redis = doorbell.connection()
    if loss == "never queued":  # whoever raised the flags died before it queued a job
        for kind in doorbell.KINDS:
            redis.set(f"monban:ring:{kind}", "1", ex=doorbell.FLAG_SECONDS)
    assert "STAY_ADMITTED" in check_in(client, cast.book(price=0))
    if loss == "jobs":  # some of them are in the hands of a stopped worker already
        redis.delete(*redis.keys("rq:job:*"))
    elif loss == "everything":
        redis.flushall()
    workers.go_on()
    settled(owner, mail, seam, 1)


def test_a_doubled_job_is_done_once(
    cast: Cast, client: FlaskClient, workers: Workers, mail: MailSink, seam: Running, owner: Owner
) -> None:
    """Two workers drain the same rows at the same time, several times over."""
    workers.stop()
    for space in ("A01", "A02", "A03", "B01"):
        check_in(client, cast.book(price=0, space=space))
    for kind in doorbell.KINDS:
        for _ in range(4):
            doorbell.queue(kind).enqueue("portal.jobs.drain.drain", kind, "doubled")
    workers.go_on()
    settled(owner, mail, seam, 4)
    assert owner.one("select count(*) from lock_commands") == 4


def test_redis_is_gone_at_the_ring_and_comes_back(
    cast: Cast,
    app: Flask,
    client: FlaskClient,
    bell: Bell,
    workers: Workers,
    mail: MailSink,
    seam: Running,
    owner: Owner,
) -> None:
    """The page's act is committed and told as done; a delivery is not called received until
    somebody will look at it; the workers outlive it and the sweeps find the work."""
    bell.go()
    assert "STAY_ADMITTED" in check_in(client, cast.book(price=0))
    raw = delivery(1)

    def deliver() -> tuple[int, str]:
        told = {"Stripe-Signature": header(raw)}
        answer = app.test_client().post("/webhooks/stripe", data=raw, headers=told)
        return answer.status_code, answer.get_data(as_text=True)

    assert deliver() == (503, "not now")
    assert owner.one("select count(*) from webhook_events") == 1
    bell.come_back()
    assert deliver()[0] == 200
    settled(owner, mail, seam, 1)
    completed = "select state = 'completed' from webhook_events"
    assert eventually(lambda: owner.one(completed), PATIENCE), workers.last_lines()
    assert deliver() == (200, "duplicate")


def test_redis_is_away_at_the_end_of_a_job(
    cast: Cast,
    client: FlaskClient,
    bell: Bell,
    workers: Workers,
    mail: MailSink,
    seam: Running,
    owner: Owner,
) -> None:
    """What was done is done, though RQ cannot book it. The lane goes on when Redis is back, and no
    other lane is ended for it."""
    lanes = workers.lanes()
    mail.slow(2, times=1)
    stay = cast.book(price=0)
    doorbell.ring("outbox")
    begun = "select count(*) from outbox where sending_at is not null"
    assert eventually(lambda: owner.one(begun) == 1, PATIENCE), workers.last_lines()
    bell.go()
    sent = "select count(*) from outbox where sent_at is not null"
    assert eventually(lambda: owner.one(sent) == 1, PATIENCE), workers.last_lines()
    bell.come_back()
    check_in(client, stay)
    settled(owner, mail, seam, 1)
    assert workers.lanes() == lanes, workers.last_lines()
