"""Each kind of work has a process of its own: what is slow holds up only its like."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from portal import doorbell
from portal.outcome import Applied
from portal.verbs import stays
from sandbox import parts
from sandbox.mail import MailSink
from sandbox.process import Part
from sandbox.seam.running import Running, eventually
from tests.cast import Cast
from tests.outside import Owner, codes_on_locks
from tests.verbs.test_stays import do

pytestmark = pytest.mark.proof

LETTERS = 3
SECONDS = 8
"""For each letter, until the mail server says yes."""
PATIENCE = 60


@pytest.fixture
def at_work(place: dict[str, str], inside: object) -> Iterator[Part]:
    """`python worker.py`, with all its lanes up, and the sweeps, which it starts last."""
    part = parts.worker(place)
    assert eventually(_all_lanes, PATIENCE), part.last_lines()
    assert eventually(lambda: len(family(part)) == len(doorbell.LANES) + 1, PATIENCE)
    yield part
    part.kill()


def _all_lanes() -> bool:
    return bool(doorbell.connection().scard("rq:workers") == len(doorbell.LANES))


def family(part: Part) -> list[psutil.Process]:
    return psutil.Process(part.process.pid).children()


def gone(processes: list[psutil.Process]) -> Callable[[], bool]:
    return lambda: (
        not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)
    )


def test_a_mail_server_that_is_slow_holds_up_no_door(
    cast: Cast, at_work: Part, owner: Owner, mail: MailSink, seam: Running
) -> None:
    mail.slow(SECONDS, times=LETTERS)
    booked = [cast.book(price=0, space=f"A0{number + 1}") for number in range(LETTERS)]
    doorbell.ring("outbox")
    begun = "select count(*) from outbox where sending_at is not null"
    assert eventually(lambda: owner.one(begun) > 0, PATIENCE), at_work.last_lines()
    assert isinstance(do(cast, stays.admit, booked[0].id, 1), Applied)
    doorbell.ring("locks")
    assert eventually(lambda: len(codes_on_locks(seam)) == 1, (LETTERS - 1) * SECONDS)
    assert len(mail.kept) < LETTERS
    assert owner.one("select state from entry_keys") in ("requested", "issued")


def test_told_to_stop_it_ends_with_all_its_lanes(at_work: Part) -> None:
    lanes = family(at_work)
    assert len(lanes) == len(doorbell.LANES) + 1  # and the sweeps
    at_work.process.send_signal(signal.SIGTERM)
    assert at_work.process.wait(PATIENCE) == 0
    assert gone(lanes)()


def test_a_killed_worker_leaves_no_lane_behind(at_work: Part) -> None:
    lanes = family(at_work)
    at_work.process.kill()
    assert eventually(gone(lanes), PATIENCE)


def test_one_lane_that_dies_ends_the_worker_and_is_named(at_work: Part) -> None:
    """Whoever started it starts it again, whole: a lane is never missing unseen."""
    lanes = family(at_work)
    lanes[1].kill()
    assert at_work.process.wait(PATIENCE) == 1
    assert gone(lanes)()
    assert '"lane": "locks"' in at_work.last_lines()


def test_what_rq_stumbles_over_ends_no_lane(
    cast: Cast, at_work: Part, owner: Owner, seam: Running
) -> None:
    """RQ then ends its worker and says nothing to whoever runs it. The lane begins another."""
    lanes, redis = family(at_work), doorbell.connection()
    redis.set("rq:job:not-a-job", "")
    redis.rpush("rq:queue:locks", "not-a-job")
    assert eventually(lambda: "quitting" in at_work.said(), PATIENCE)
    assert isinstance(do(cast, stays.admit, cast.book(price=0).id, 1), Applied)
    assert eventually(lambda: len(codes_on_locks(seam)) == 1, PATIENCE), at_work.last_lines()
    assert family(at_work) == lanes


def test_told_to_stop_while_redis_is_gone_it_ends_its_job_first(
    cast: Cast, place: dict[str, str], owner: Owner, mail: MailSink, tmp_path: Path
) -> None:
    """Told twice, too, as by a terminal and then by whoever runs it."""
    bell = parts.valkey(tmp_path / "bell")
    part = parts.worker({**place, "REDIS_URL": bell.url})
    mail.slow(3, times=1)
    cast.book(price=0)
    begun = "select count(*) from outbox where sending_at is not null"
    assert eventually(lambda: owner.one(begun) == 1, PATIENCE), part.last_lines()
    lanes = family(part)
    bell.kill()
    for _ in range(2):
        os.killpg(part.process.pid, signal.SIGTERM)
        time.sleep(1.1)  # sooner, RQ takes the second for the first
    assert part.process.wait(PATIENCE) == 0
    assert gone(lanes)()
    assert owner.one("select count(*) from outbox where sent_at is not null") == 1
    assert len(mail.kept) == 1
