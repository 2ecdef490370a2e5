"""PostgreSQL is shut down at once, again and again, under load, on a cluster that keeps what it has
acknowledged: nobody's acknowledged write is lost, and whoever heard nothing asks again and is told.

The load is what a house does all day: bookings, cash, deliveries of events and their application,
each on its own connection. Whoever is cut off keeps asking under the same key until it is answered.
"""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from flask import Flask
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from portal import clock, config, inbox
from portal.db import Tx, transaction
from portal.jobs import drain, events, house
from portal.jobs.house import House
from portal.outcome import Applied, Code, Noop, Outcome
from portal.verbs import bookings, cash
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from portal.web import factory
from sandbox import parts
from sandbox.process import Part
from tests.cast import Cast
from tests.conftest import migrate
from tests.endurance.ground import records_equal_transitions
from tests.figures import Figure
from tests.outside import Owner

pytestmark = pytest.mark.proof

RESTARTS = 50
SHARE = 2
HANDS = 4
PRICE = 6000
PATIENCE = 120


@dataclass
class Safe:
    """A cluster of its own that syncs to disk, as a house would run it."""

    data: Path
    part: Part

    @property
    def settings(self) -> dict[str, str]:
        return {
            "DATABASE_URL": parts.with_database(self.part.url, "monban", "portal_app"),
            "DATABASE_OWNER_URL": parts.with_database(self.part.url, "monban"),
        }

    def restart_at_once(self) -> None:
        """What `pg_ctl stop -m immediate` does: nobody says goodbye, and the log is replayed."""
        self.part.process.send_signal(signal.SIGQUIT)
        self.part.process.wait(60)
        self.part = parts.postgres(self.data)


@pytest.fixture(scope="module")
def safe(folder: Path) -> Iterator[Safe]:
    data = folder / "safe" / "data"
    made = Safe(data, parts.postgres(data))
    with psycopg.connect(made.part.url) as wire:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert wire.execute(f"show {setting}").fetchone() == ("on",)
    parts.create_database(made.part.url, "monban")
    migrate(made.settings)
    yield made
    made.part.stop()


@pytest.fixture
def portal(safe: Safe, settings: dict[str, str]) -> Flask:
    made = factory.create_app(config.from_environment({**settings, **safe.settings}))
    made.config["TESTING"] = True
    return made


@dataclass
class Hand:
    """One person or sender at work. `acknowledged` is what it was told is done."""

    app: Flask
    cast: Cast
    space: str
    house: House
    stop: threading.Event
    booked: dict[UUID, UUID] = field(default_factory=dict)
    paid: dict[UUID, UUID] = field(default_factory=dict)
    received: list[str] = field(default_factory=list)
    doubtful: int = 0
    settled_by_asking: int = 0

    def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            self.book_and_pay(number)
            self.receive_and_apply()

    def book_and_pay(self, number: int) -> None:
        starts = clock.now() + timedelta(days=2 * number)
        form = NewStay(
            form_key=uuid4(),
            guest=NewGuest(**self.cast.hanako),
            space_id=self.cast.tokyo.spaces[self.space],
            plan_id=None,
            starts_at=starts,
            ends_at=starts + timedelta(hours=19),
            price=PRICE,
        )
        actor = self.cast.sato.actor
        said = self.ask(lambda tx: bookings.create(tx, actor, form), Code.STAY_ALREADY_CREATED)
        assert said.subject is not None
        self.booked[form.form_key] = said.subject
        stay, key = said.subject, uuid4()
        self.ask(lambda tx: cash.take(tx, actor, stay, PRICE, key), Code.CASH_ALREADY_BOOKED)
        self.paid[key] = stay

    def ask(self, verb: Callable[[Tx], Outcome], already: Code) -> Applied | Noop:
        """The same form until somebody answers."""
        asked = 0

        def press() -> Outcome:
            nonlocal asked
            asked += 1
            with transaction(self.cast.tokyo.id) as tx:
                return verb(tx)

        said = self.until_answered(press)
        assert isinstance(said, Applied) or (said.code == already and asked > 1), said
        self.settled_by_asking += not isinstance(said, Applied)
        assert isinstance(said, Applied | Noop)
        return said

    def receive_and_apply(self) -> None:
        named = f"evt_{uuid4().hex}"

        def receive() -> str:
            with transaction(None) as tx:
                return inbox.receive(
                    tx,
                    "stripe",
                    event_id=named,
                    kind="payment_intent.succeeded",
                    created=clock.now(),
                    payload=b'{"data": {"object": {}}}',
                    headers={},
                    livemode=True,  # not ours in test mode: completed as ignored
                )

        self.until_answered(receive)
        self.received.append(named)
        self.until_answered(lambda: events.apply_due(self.house))

    def until_answered(self, call: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with self.app.app_context():
                    return call()
            except (DBAPIError, PoolTimeoutError):
                assert time.monotonic() < end
                self.doubtful += 1
                time.sleep(0.05)


def test_a_restart_at_once_loses_no_acknowledged_write(
    safe: Safe, portal: Flask, worker: House, whole: bool, figure: Figure
) -> None:
    cast = Cast(portal)
    _ = cast.sato
    stop = threading.Event()
    here = replace(worker, context=portal.app_context)
    house.open_house(here)
    hands = [Hand(portal, cast, space, here, stop) for space in cast.tokyo.spaces]
    assert len(hands) == HANDS
    faults: list[BaseException] = []

    def work(hand: Hand) -> None:
        try:
            hand.run()
        except BaseException as fault:  # noqa: BLE001 (a thread's fault is the test's)
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(hand,)) for hand in hands]
    for one in threads:
        one.start()
    restarts = RESTARTS if whole else SHARE
    chance = random.Random(4)
    for _ in range(restarts):
        before = sum(len(hand.paid) for hand in hands)
        end = time.monotonic() + PATIENCE
        while sum(len(hand.paid) for hand in hands) < before + HANDS and not faults:
            assert time.monotonic() < end
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.2))
        safe.restart_at_once()
    stop.set()
    for one in threads:
        one.join(PATIENCE)
    assert faults == []
    owner = Owner(safe.settings["DATABASE_OWNER_URL"])
    owner.run("update webhook_events set claimed_at = null, next_attempt_at = now()")
    drain.drain("inbox")  # what was claimed when the line was cut
    nothing_is_lost(owner, hands)
    owner.wire.close()
    figure(
        "restarts of PostgreSQL",
        restarts=restarts,
        acknowledged_writes=sum(len(h.booked) + len(h.paid) + len(h.received) for h in hands),
        lost=0,
        doubled=0,
        calls_cut_off=sum(hand.doubtful for hand in hands),
        of_them_committed_and_found_by_asking_again=sum(hand.settled_by_asking for hand in hands),
    )


def nothing_is_lost(owner: Owner, hands: list[Hand]) -> None:
    """Every acknowledged write stands, once, with all that belongs to it; and nothing else does."""
    booked = {form: stay for hand in hands for form, stay in hand.booked.items()}
    assert dict(owner.rows("select form_key, id from stays")) == booked
    charges = owner.rows("select stay_id, amount from ledger_lines where kind = 'charge'")
    assert sorted(charges) == sorted((stay, PRICE) for stay in booked.values())
    paid = {form: stay for hand in hands for form, stay in hand.paid.items()}
    lines = owner.rows("select form_key, stay_id from ledger_lines where kind = 'cash'")
    assert sorted(lines) == sorted(paid.items())
    told = owner.rows("select stay_id from outbox where event_type = 'stay_created'")
    assert sorted(row[0] for row in told) == sorted(booked.values())
    received = sorted(named for hand in hands for named in hand.received)
    assert sorted(row[0] for row in owner.rows("select event_id from webhook_events")) == received
    done = owner.rows("select distinct state, outcome from webhook_events")
    assert done == [("completed", "ignored")]
    records_equal_transitions(owner)
