"""kill -9 of real workers at random moments, while guests pay, cancel, arrive and leave.

The card provider delivers its events over HTTP, every one twice and some under another id. Two
workers look for work of every kind and are killed wherever they happen to be; what they held is
claimed anew after its lease. In the end nothing is lost and nothing is done twice. A message that
was accepted while our mark of it was lost is not sent again: it waits for a person, and is counted.
"""

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from portal import clock
from portal.jobs.payment_events import HANDLERS
from portal.outcome import Applied
from portal.verbs import messages, stays
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.endurance.ground import Ground, records_equal_transitions
from tests.figures import Figure
from tests.outside import codes_on_locks
from tests.proofs.processes import Child, Nursery

pytestmark = pytest.mark.proof

KILLS = 1000
SHARE = 30
WORKERS = 2
PRICE = 6000
WORK = ("inbox", "locks", "refunds", "outbox", "payments", "keys")
CLAIMED = ("webhook_events", "outbox", "lock_commands", "refunds")
DOORS = ("A01", "A02", "A03")
LINE_ID = "U" + "7" * 32

WAITING = """
    select (select count(*) from webhook_events where state = 'processing')
         + (select count(*) from refunds where state in ('asked', 'unknown', 'pending'))
         + (select count(*) from lock_commands where done_at is null and dead_at is null)
         + (select count(*) from entry_keys where state in ('requested', 'revoking'))
         + (select count(*) from outbox where sent_at is null and suppressed_at is null
              and withdrawn_at is null and dropped_at is null and dead_at is null
              and unknown_at is null)
"""


class Mortal(Child):
    def kill_at_work(self) -> bool:
        """kill -9. True when it had not said yet that it was done with everything."""
        os.kill(self.pid, signal.SIGKILL)
        done = 0
        with suppress(ConnectionResetError):  # it died with orders that it had not read
            for line in self._reading:
                done += '"done"' in line
        self.close()
        return done < len(WORK)


@dataclass
class Town:
    """Guests who come and go, the far side, and whoever is to be killed."""

    ground: Ground
    nursery: Nursery
    forks: Path
    stripe: StandIn
    seam: Running
    mail: MailSink
    line: Running
    chance: random.Random = field(default_factory=lambda: random.Random(3))
    booked: int = 0
    kills: int = 0
    at_work: int = 0
    life: float = 0
    twins: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.owner, self.cast = self.ground.owner, self.ground.cast
        self.actor = self.cast.sato.actor
        url = self.nursery.child().serve()
        self.stripe.post(
            "webhooks/endpoints",
            url=f"{url}/webhooks/stripe",
            secret="whsec_monban_test",
            enabled_events=sorted(HANDLERS),
        )
        self.stripe.post("webhooks", duplicate=1, retry_delays=[0.1] * 600)

    # The stream -----------------------------------------------------------------------------------

    def one_pays(self) -> None:
        """Every fourth guest hears from us on LINE."""
        self.booked += 1
        guest = {**self.cast.hanako, "line_user_id": LINE_ID if self.booked % 4 == 0 else None}
        starts = clock.now() + timedelta(days=2 * self.booked)
        self.ground.paid_there(self.stripe, price=PRICE, guest=guest, space="B01", starts_at=starts)
        if self.booked % 5 == 0:
            newest = self._newest("payment_intent.succeeded")
            self.twins.add(self.stripe.post("webhooks/twin", event=newest)["event"])

    def one_cancels(self) -> None:
        """Somebody who has paid: the house owes all of it back."""
        paid = self.owner.rows(
            "select s.id from stays s join payments p on p.stay_id = s.id"
            " where s.state = 'reserved' and p.state = 'succeeded' order by s.created_at limit 1"
        )
        for (stay,) in paid:
            self._do(stays.cancel, stay)

    def doors_move(self) -> None:
        """At each door: a guest comes, gets a key, leaves; the next one comes when it is gone."""
        for code in DOORS:
            stay = self.owner.row(
                """
                select s.id, s.state, k.state from stays s join spaces p on p.id = s.space_id
                left join entry_keys k on k.stay_id = s.id
                where p.code = %s order by s.created_at desc limit 1
                """,
                code,
            )
            if stay is None or stay[2] == "revoked":
                self._do(stays.admit, self.cast.book(price=0, space=code).id)
            elif stay[1] == "admitted" and stay[2] == "issued":
                self._do(stays.depart, stay[0])

    def _do(self, verb: Any, stay: UUID) -> None:
        with self.cast.transaction(self.cast.tokyo.id) as tx:
            seen = tx.scalar("select version from stays where id = :id", id=stay)
            said = verb(tx, self.actor, stay, seen)
        assert isinstance(said, Applied), said

    def _newest(self, kind: str) -> str:
        events = self.stripe.get("webhooks/deliveries")
        return str(next(one["event"] for one in reversed(events) if one["type"] == kind))

    # The kills ------------------------------------------------------------------------------------

    def one_lives(self) -> None:
        """How long a worker needs for all that it finds, measured now and then: that is how long
        the others may live, so kills fall before, into and after their work."""
        worker = self.nursery.child()
        began = time.monotonic()
        for kind in WORK:
            worker.begin(kind)
        for _ in WORK:
            worker.done()
        self.life = time.monotonic() - began
        worker.close()

    def kill_two(self) -> None:
        workers = [Mortal(self.forks, "queued") for _ in range(WORKERS)]
        for one in workers:
            for kind in WORK:
                one.begin(kind)
        for one in workers:
            time.sleep(self.chance.uniform(0, self.life))
            self.kills += 1
            self.at_work += one.kill_at_work()

    def claims(self) -> list[UUID]:
        """The tokens under which something is claimed. Everybody who could hold one is dead."""
        tokens = " union ".join(
            f"select claim_token from {table} where claim_token is not null" for table in CLAIMED
        )
        return [row[0] for row in self.owner.rows(tokens)]

    def leases_end(self, tokens: list[UUID]) -> None:
        for table in CLAIMED:
            self.owner.run(
                f"update {table} set claimed_at = claimed_at - interval '1 hour'"
                " where claim_token = any(%s)",
                tokens,
            )
        # What such a worker sent to a lock has long arrived, too.
        self.owner.run("update lock_commands set unknown_at = unknown_at - interval '1 hour'")
        self.owner.make_due()

    # The end --------------------------------------------------------------------------------------

    def until_quiet(self) -> None:
        """Nobody is killed any more. Whoever is in house leaves; a person decides what waits."""
        end = time.monotonic() + 300
        while self._more_to_do():
            assert time.monotonic() < end, f"never quiet: {self.owner.one(WAITING)} wait"
            self.leases_end(self.claims())
            worker = self.nursery.child()
            for kind in WORK:
                worker.work(kind)
            worker.close()

    def _more_to_do(self) -> bool:
        self.stripe.wait_delivered(120)
        return bool(self.owner.one(WAITING))

    def all_leave(self) -> None:
        for (stay,) in self.owner.rows("select id from stays where state = 'admitted'"):
            self._do(stays.depart, stay)

    def reached(self) -> list[str]:
        """The ids of what mail and LINE have accepted."""
        mails = [str(got.message["Message-ID"]) for got in self.mail.kept]
        return mails + [f"<{one['retry_key']}@monban>" for one in self.line.control("pushes")]

    def a_person_decides(self) -> tuple[int, int]:
        """Messages of which we do not know whether they were sent: (accepted, never sent)."""
        accepted = self.reached()
        told = [0, 0]
        for (message,) in self.owner.rows("select id from outbox where unknown_at is not null"):
            came = f"<{message}@monban>" in accepted
            told[0 if came else 1] += 1
            with self.cast.transaction(self.cast.tokyo.id) as tx:
                decide = messages.drop if came else messages.resend
                assert isinstance(decide(tx, self.actor, message), Applied)
        return told[0], told[1]

    # What must be true ----------------------------------------------------------------------------

    def nothing_is_lost_or_doubled(self) -> None:
        owner = self.owner
        delivered = {one["event"] for one in self.stripe.get("webhooks/deliveries")}
        held = {row[0] for row in owner.rows("select event_id from webhook_events")}
        assert delivered | self.twins == held
        assert owner.one("select count(*) from dead_letters") == 0
        assert owner.one("select count(*) from lock_commands where dead_at is not null") == 0
        self._money()
        self._doors()
        self._words()
        records_equal_transitions(owner)

    def _money(self) -> None:
        """Ours equals the provider's, payment by payment, and every yen is booked once."""
        theirs = self.stripe.get("objects")
        here = dict(self.owner.rows("select intent_id, id from payments"))
        assert {one["id"] for one in theirs["payment_intent"]} == set(here)
        booked = self.owner.rows(
            "select payment_id, array_agg(amount) from ledger_lines where kind = 'payment'"
            " group by 1"
        )
        assert dict(booked) == {payment: [-PRICE] for payment in here.values()}
        returned = self.owner.rows(
            "select r.provider_refund_id, r.amount, count(l.id) from refunds r"
            " left join ledger_lines l on l.refund_id = r.id and l.kind = 'refund'"
            " where r.state = 'succeeded' group by 1, 2"
        )
        assert {(one["id"], one["amount"], 1) for one in theirs.get("refund", [])} == set(returned)
        assert self.owner.one("select count(*) from refunds") == len(returned)
        states = "select p.state, s.state from payments p join stays s on s.id = p.stay_id"
        assert set(self.owner.rows(states)) <= {
            ("succeeded", "reserved"),
            ("refunded", "cancelled"),
        }

    def _doors(self) -> None:
        """One code was made for each key, and none is left."""
        keys = self.owner.rows("select state, count(*) from entry_keys group by 1")
        assert [state for state, _ in keys] == ["revoked"]
        assert codes_on_locks(self.seam) == []
        assert self.seam.counts()["POST /access_codes/create"] == keys[0][1]

    def _words(self) -> None:
        """Each row reached its guest once, or says nothing that is true any more."""
        reached = self.reached()
        assert len(reached) == len(set(reached))
        rows = self.owner.rows(
            "select id from outbox where sent_at is not null or dropped_at is not null"
        )
        assert {f"<{row[0]}@monban>" for row in rows} == set(reached)
        unsaid = (
            "select count(*) from outbox where dead_at is not null or suppressed_at is not null"
        )
        assert self.owner.one(unsaid) == 0


@pytest.fixture
def town(
    ground: Ground,
    nursery: Nursery,
    forks: Path,
    stripe: StandIn,
    seam: Running,
    mail: MailSink,
    line: Running,
) -> Town:
    return Town(ground, nursery, forks, stripe, seam, mail, line)


def test_killed_workers_lose_nothing_and_double_nothing(
    town: Town, whole: bool, figure: Figure
) -> None:
    old: list[UUID] = []
    town.one_pays()
    town.doors_move()
    town.one_lives()
    while town.kills < (KILLS if whole else SHARE):
        town.one_pays()
        if town.booked % 3 == 0:
            town.one_cancels()
        town.doors_move()
        if town.booked % 10 == 0:
            town.one_lives()
        town.kill_two()
        # A lease outlives whatever its worker had sent off: it ends one round later.
        town.leases_end(old)
        old = town.claims()
    town.until_quiet()
    town.all_leave()
    town.until_quiet()
    marks_lost, never_sent = town.a_person_decides()
    town.until_quiet()
    town.nothing_is_lost_or_doubled()
    figure(
        "killed workers",
        kills=town.kills,
        in_the_middle_of_work=town.at_work,
        events_lost=0,
        effects_doubled=0,
        accepted_with_our_mark_lost_and_not_sent_again=marks_lost,
        begun_and_never_accepted_and_sent_by_a_person=never_sent,
        sent_twice=0,
    )
