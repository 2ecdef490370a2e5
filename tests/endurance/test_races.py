"""Eight real connections, released together, on one event, one row, one form, one batch.

Exactly one of them does the work and the others are told so by the codes of the design. There is
no deadlock, and the records of transitions are the transitions that took place. Every race is run
twice: as the portal is built, and with READ COMMITTED given to whoever asks for more, because no
promise may rest on the isolation level alone.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import DataError

from portal import clock
from portal.db import SYSTEM, Tx, transaction
from portal.jobs import drain, events
from portal.models import Payment
from portal.outcome import Applied, Code, Outcome
from portal.verbs import bookings, cash, keys, refunds, refunds_owed, stay_changes, stays
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.endurance.ground import (
    Ground,
    moves,
    only_read_committed,
    records_equal_transitions,
    sqlstates,
)
from tests.figures import Figure
from tests.outside import at_once, codes_on_locks, deliver, receive
from tests.outside import events as told_events

pytestmark = pytest.mark.proof

CONNECTIONS = 8
ROUNDS = 1000
SHARE = 16
PRICE = 6000
LOTS = 1_000_000

Verb = Callable[[Tx], Outcome]
Round = Callable[[], None]


class Track:
    """One kind of race: laid out once, then run from the same rows again and again."""

    def __init__(self, ground: Ground, stripe: StandIn, seam: Running, mail: MailSink) -> None:
        self.ground, self.owner, self.cast = ground, ground.owner, ground.cast
        self.stripe, self.seam, self.mail = stripe, seam, mail
        self.actor = self.cast.sato.actor

    # Racing ---------------------------------------------------------------------------------------

    def verbs(self, *verbs: Verb) -> list[Outcome]:
        """Each in a transaction of its own, which is open before all of them are let go."""
        gate = threading.Barrier(len(verbs))

        def press(verb: Verb) -> Outcome:
            with transaction(self.cast.tokyo.id) as tx:
                tx.run("select 1")
                gate.wait(30)
                return verb(tx)

        return self.calls(*[partial(press, verb) for verb in verbs])

    def calls(self, *calls: Callable[[], Any]) -> list[Any]:
        said = at_once(self.ground.app, *calls)
        faults = [one for one in said if isinstance(one, BaseException)]
        assert faults == []
        return said

    def workers(self, kind: Any) -> list[int]:
        return self.calls(*[lambda: drain.drain(kind)] * CONNECTIONS)

    # Rows -----------------------------------------------------------------------------------------

    def count(self, sql: str) -> int:
        return int(self.owner.one(f"select count(*) from {sql}"))

    def admitted(self) -> UUID:
        stay = self.cast.book(price=0)
        with self.cast.transaction(stay.facility_id) as tx:
            assert isinstance(stays.admit(tx, self.actor, stay.id, 1), Applied)
        return stay.id

    def form(self, key: UUID) -> NewStay:
        now = clock.now()
        return NewStay(
            form_key=key,
            guest=NewGuest(**self.cast.hanako),
            space_id=self.cast.tokyo.spaces["A01"],
            plan_id=None,
            starts_at=now,
            ends_at=now + timedelta(hours=19),
            price=PRICE,
        )

    def granted_once(self) -> None:
        assert self.owner.rows("select state from payments") == [("succeeded",)]
        assert self.count("ledger_lines where kind = 'payment'") == 1
        assert self.count("outbox where event_type = 'payment_received'") == 1
        assert self.count("webhook_events where state <> 'completed'") == 0


def one_winner(said: list[Outcome], won: Code, *lost: Code) -> None:
    codes = [one.code for one in said]
    assert codes.count(won) == 1, codes
    assert set(codes) - {won} <= set(lost), codes


# One event ----------------------------------------------------------------------------------------


def one_event_received(track: Track) -> Round:
    track.ground.paid_there(track.stripe, price=PRICE)
    (event,) = _succeeded(track)

    def run() -> None:
        held = track.calls(*[lambda: receive(event)] * CONNECTIONS)
        assert held == [["received"]] * CONNECTIONS
        assert track.count("webhook_events") == 1

    return run


def one_event_claimed(track: Track) -> Round:
    track.ground.paid_there(track.stripe, price=PRICE)
    receive(*_succeeded(track))

    def run() -> None:
        assert sorted(track.workers("inbox")) == [0] * (CONNECTIONS - 1) + [1]
        track.granted_once()

    return run


def one_fact_in_eight_events(track: Track) -> Round:
    """Twins: each is claimed and applied by a process of its own, all about one payment."""
    track.ground.paid_there(track.stripe, price=PRICE)
    (event,) = _succeeded(track)
    twins = [_twin(event, number) for number in range(CONNECTIONS)]
    receive(*twins)
    house = track.ground.worker

    def run() -> None:
        calls = [lambda one=one: events.apply_now(house, "stripe", one.id) for one in twins]
        assert track.calls(*calls) == [True] * CONNECTIONS
        track.granted_once()
        results = [row[0] for row in track.owner.rows("select outcome from webhook_events")]
        assert sorted(results) == ["applied"] + ["superseded"] * (CONNECTIONS - 1)

    return run


def _succeeded(track: Track) -> list[Any]:
    told = told_events(track.ground.worker)
    return [one for one in told if one.type == "payment_intent.succeeded"]


def _twin(event: Any, number: int) -> Any:
    named = f"{event.id}_{number}"
    return replace(event, id=named, raw=json.dumps({**json.loads(event.raw), "id": named}).encode())


# One row ------------------------------------------------------------------------------------------


def one_stay_admitted(track: Track) -> Round:
    stay = track.cast.book(price=0).id

    def run() -> None:
        said = track.verbs(*[lambda tx: stays.admit(tx, track.actor, stay, 1)] * CONNECTIONS)
        one_winner(said, Code.STAY_ADMITTED, Code.STAY_ALREADY_ADMITTED)
        assert moves(track.owner, stay) == ["admitted"]
        assert track.count("entry_keys") == track.count("lock_commands") == 1

    return run


def one_stay_cancelled(track: Track) -> Round:
    stay = track.cast.book(price=PRICE).id

    def run() -> None:
        said = track.verbs(*[lambda tx: stays.cancel(tx, track.actor, stay, 1)] * CONNECTIONS)
        one_winner(said, Code.STAY_CANCELLED, Code.STAY_ALREADY_CANCELLED)
        assert moves(track.owner, stay) == ["cancelled"]
        assert track.count("ledger_lines where kind = 'charge_reversed'") == 1
        assert track.count("outbox where event_type = 'stay_cancelled'") == 1

    return run


def one_stay_departed(track: Track) -> Round:
    stay = track.admitted()

    def run() -> None:
        said = track.verbs(*[lambda tx: stays.depart(tx, track.actor, stay, 2)] * CONNECTIONS)
        one_winner(said, Code.STAY_DEPARTED, Code.STAY_ALREADY_DEPARTED)
        assert moves(track.owner, stay) == ["admitted", "departed"]
        assert track.count("lock_commands where kind = 'remove'") == 1

    return run


def one_stay_wanted_otherwise_by_all(track: Track) -> Round:
    """Admitted, cancelled, called a no-show, given other times: the first one has it."""
    stay = track.cast.book(price=0).id
    now = clock.now()
    wishes: list[Verb] = [
        lambda tx: stays.admit(tx, track.actor, stay, 1),
        lambda tx: stays.cancel(tx, track.actor, stay, 1),
        lambda tx: stays.mark_no_show(tx, track.actor, stay, 1),
        lambda tx: stay_changes.change_times(
            tx, track.actor, stay, 1, now, now + timedelta(hours=5), 0
        ),
    ]

    def run() -> None:
        said = track.verbs(*wishes * (CONNECTIONS // len(wishes)))
        assert [one.status for one in said].count("applied") == 1
        lost = {one.code for one in said if not isinstance(one, Applied)}
        assert lost <= {
            Code.STAY_ALREADY_ADMITTED,
            Code.STAY_ALREADY_CANCELLED,
            Code.STAY_ALREADY_NO_SHOW,
            Code.STAY_STATE_CHANGED,
            Code.STALE_PAGE,
        }
        assert track.owner.one("select version from stays") == 2
        assert track.count("transitions where machine = 'stay'") == 2

    return run


def one_key_reissued(track: Track) -> Round:
    stay = track.admitted()

    def run() -> None:
        said = track.verbs(*[lambda tx: keys.reissue(tx, track.actor, stay, 2)] * CONNECTIONS)
        one_winner(said, Code.KEY_ORDERED, Code.STALE_PAGE)
        assert track.count("entry_keys where state = 'requested'") == 1
        assert track.count("entry_keys where state = 'revoking'") == 1

    return run


# One form -----------------------------------------------------------------------------------------


def one_booking_form(track: Track) -> Round:
    def run() -> None:
        form = track.form(uuid4())
        said = track.verbs(*[lambda tx: bookings.create(tx, track.actor, form)] * CONNECTIONS)
        one_winner(said, Code.STAY_CREATED, Code.STAY_ALREADY_CREATED)
        assert track.count("stays") == track.count("guests") == track.count("outbox") == 1
        assert track.count("ledger_lines") == 1

    _ = track.cast.tokyo, track.actor
    return run


def one_space_on_eight_forms(track: Track) -> Round:
    def run() -> None:
        forms = [track.form(uuid4()) for _ in range(CONNECTIONS)]
        said = track.verbs(
            *[partial(bookings.create, actor=track.actor, wanted=form) for form in forms]
        )
        one_winner(said, Code.STAY_CREATED, Code.SPACE_TAKEN)
        assert track.count("stays") == track.count("guests") == 1

    _ = track.cast.tokyo, track.actor
    return run


def one_cash_form(track: Track) -> Round:
    stay = track.cast.book(price=PRICE).id

    def run() -> None:
        key = uuid4()
        press: Verb = lambda tx: cash.take(tx, track.actor, stay, PRICE // 3, key)  # noqa: E731
        one_winner(track.verbs(*[press] * CONNECTIONS), Code.CASH_TAKEN, Code.CASH_ALREADY_BOOKED)
        assert track.count("ledger_lines where kind = 'cash'") == 1

    return run


def one_debt_on_eight_cash_forms(track: Track) -> Round:
    stay = track.cast.book(price=PRICE).id

    def run() -> None:
        press: Verb = lambda tx: cash.take(tx, track.actor, stay, PRICE, uuid4())  # noqa: E731
        one_winner(track.verbs(*[press] * CONNECTIONS), Code.CASH_TAKEN, Code.NOTHING_DUE)
        assert track.count("ledger_lines where kind = 'cash'") == 1

    return run


def one_refund_form(track: Track) -> Round:
    """Through the provider: a row under the form's key, one call, one return."""
    stay = track.ground.paid_there(track.stripe, price=LOTS)
    deliver(track.ground.worker)
    payment = track.owner.one("select id from payments")
    desk = track.ground.worker.desk(stay.facility_id)

    def run() -> None:
        key, before = uuid4(), track.stripe.creates("refund")
        press = lambda: refunds.ask(desk, track.actor, payment, 10, key)  # noqa: E731
        said = track.calls(*[press] * CONNECTIONS)
        one_winner(said, Code.REFUND_SENT, Code.REFUND_ALREADY_ASKED)
        assert track.owner.rows("select state, amount from refunds") == [("succeeded", 10)]
        assert track.stripe.creates("refund") == before + 1
        assert track.count("ledger_lines where kind = 'refund'") == 1

    return run


# One batch ----------------------------------------------------------------------------------------


def one_batch_of_messages(track: Track) -> Round:
    for number in range(CONNECTIONS):
        starts = clock.now() + timedelta(days=number)
        track.cast.book(price=0, starts_at=starts)

    def run() -> None:
        track.mail.forget()
        assert sum(track.workers("outbox")) == CONNECTIONS
        sent = [got.message["Message-ID"] for got in track.mail.received]
        wanted = [f"<{row[0]}@monban>" for row in track.owner.rows("select id from outbox")]
        assert sorted(sent) == sorted(wanted)
        assert track.count("outbox where sent_at is null or attempts <> 1") == 0
        assert track.count("consumed_effects") == CONNECTIONS

    return run


def one_lock_command(track: Track) -> Round:
    track.admitted()

    def run() -> None:
        track.seam.reset()
        assert sorted(track.workers("locks")) == [0] * (CONNECTIONS - 1) + [1]
        assert len(codes_on_locks(track.seam)) == 1
        assert track.seam.counts()["POST /access_codes/create"] == 1
        assert track.owner.rows("select attempts, result from lock_commands") == [(1, "accepted")]

    return run


def one_refund_owed(track: Track) -> Round:
    """Its row is the provider's key, so every round is the same refund there."""
    stay = track.ground.paid_there(track.stripe, price=LOTS)
    deliver(track.ground.worker)
    payment = track.owner.one("select id from payments")
    with track.cast.transaction(stay.facility_id) as tx:
        assert tx.get(Payment, payment) is not None
        refunds_owed.owe(tx, SYSTEM, payment, 10, reason="surplus")

    def run() -> None:
        assert sorted(track.workers("refunds")) == [0] * (CONNECTIONS - 1) + [1]
        assert track.owner.rows("select state, attempts from refunds") == [("succeeded", 1)]
        assert track.stripe.creates("refund") == 1
        assert track.count("ledger_lines where kind = 'refund'") == 1

    return run


RACES: tuple[Callable[[Track], Round], ...] = (
    one_event_received,
    one_event_claimed,
    one_fact_in_eight_events,
    one_stay_admitted,
    one_stay_cancelled,
    one_stay_departed,
    one_stay_wanted_otherwise_by_all,
    one_key_reissued,
    one_booking_form,
    one_space_on_eight_forms,
    one_cash_form,
    one_debt_on_eight_cash_forms,
    one_refund_form,
    one_batch_of_messages,
    one_lock_command,
    one_refund_owed,
)


@pytest.fixture(params=["as built", "read committed only"])
def isolation(
    request: pytest.FixtureRequest, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> str:
    if request.param == "read committed only":
        only_read_committed(ground.app, monkeypatch)
    return str(request.param)


@pytest.fixture
def track(ground: Ground, stripe: StandIn, seam: Running, mail: MailSink) -> Track:
    return Track(ground, stripe, seam, mail)


def test_the_count_of_conflicts_hears_what_postgresql_refuses(inside: Flask) -> None:
    """Statements go past SQLAlchemy and its events; a count that listens there hears nothing."""
    with sqlstates() as answered, pytest.raises(DataError), transaction(None) as tx:
        tx.run("select 1 / 0")
    assert answered == ["22012"]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_of_eight_at_once_one_does_it(
    race: Callable[[Track], Round], track: Track, isolation: str, whole: bool, figure: Figure
) -> None:
    rounds = -(-(ROUNDS if whole else SHARE) // len(RACES))
    run = race(track)
    track.ground.snapshots.take()
    with sqlstates() as answered:
        for _ in range(rounds):
            track.ground.snapshots.restore()
            run()
            records_equal_transitions(track.owner)
    deadlocks = answered.count("40P01")
    assert deadlocks == 0
    figure(
        f"races, {isolation}",
        rounds=rounds,
        connections=str(CONNECTIONS),
        doubled=0,
        deadlocks=deadlocks,
        serialization_conflicts=answered.count("40001"),
    )
