"""A guest who pays at the deadline, and the sweep, each in a process of its own, let go together:
one of them wins, and nothing is both ended and kept."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
import stripe as stripe_sdk

from portal import clock
from portal.jobs.house import House
from portal.outcome import Applied, Outcome
from portal.verbs import cash, payments
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.figures import Figure
from tests.outside import Owner, deliver, events, pay, receive, work
from tests.proofs.processes import Child, Nursery
from tests.verbs.test_deposits import DEPOSIT, PRICE, overdue, state, waiting
from tests.verbs.test_stays import balance, do

pytestmark = pytest.mark.proof

SWEEP = "end_missed_deposits"
STAY_LOCKED = "before for no key update of s"
"""The statement by which each of them takes the stay."""
ROUNDS = 60
SHARE = 6


class Race:
    """The deadline of one booking after the other passes, each in days of its own."""

    def __init__(self, cast: Cast, worker: House, owner: Owner, stripe: StandIn) -> None:
        self.cast, self.worker, self.owner, self.stripe = cast, worker, owner, stripe
        self.days = 10

    def booked(self) -> Booked:
        self.days += 3
        return waiting(self.cast, starts_at=clock.now() + timedelta(days=self.days))

    def at_card_form(self) -> tuple[Booked, str]:
        stay = self.booked()
        desk = self.worker.desk(stay.facility_id)
        payments.open_payment(desk, self.cast.sato.actor, stay.id, "deposit")
        intent = self.owner.one("select intent_id from payments where stay_id = %s", stay.id)
        return overdue(self.owner, stay), str(intent)

    def pays(self, intent: str) -> None:
        """The guest's last press; their event has come in and waits for its worker."""
        pay(self.stripe, intent)
        receive(*(one for one in events(self.worker) if one.type == "payment_intent.succeeded"))

    def settles(self) -> None:
        """All that is known is applied, and what is owed is sent."""
        for _ in range(2):
            deliver(self.worker)
            self.owner.make_due()
            work(self.worker, "payments", "refunds")

    def kept(self, stay: Booked) -> int:
        """What the provider holds of the guest's, in yen."""
        mine = {row[0] for row in self.owner.rows(
            "select intent_id from payments where stay_id = %s", stay.id
        )}  # fmt: skip
        there = self.stripe.get("objects")
        paid = sum(
            one["amount_received"] for one in there.get("payment_intent", []) if one["id"] in mine
        )
        back = sum(
            one["amount"] for one in there.get("refund", []) if one["payment_intent"] in mine
        )
        return int(paid - back)

    def is_even(self, stay: Booked) -> str:
        """Ended and nothing kept, or kept and going on: the state that it came to."""
        came_to = state(self.owner, stay)
        assert came_to in ("reserved", "cancelled")
        in_hand = self.kept(stay) + self._cash(stay)
        assert in_hand == (DEPOSIT if came_to == "reserved" else 0)
        owed = PRICE - DEPOSIT if came_to == "reserved" else 0
        assert balance(self.owner, stay.id) == owed
        ends = "select count(*) from transitions where subject_id = %s and to_state = 'cancelled'"
        assert self.owner.one(ends, stay.id) == (came_to == "cancelled")
        return came_to

    def _cash(self, stay: Booked) -> int:
        return int(self.owner.one(
            "select coalesce(-sum(amount), 0) from ledger_lines"
            " where stay_id = %s and kind in ('cash', 'cash_returned')",
            stay.id,
        ))  # fmt: skip


@pytest.fixture
def race(cast: Cast, worker: House, owner: Owner, stripe: StandIn) -> Race:
    return Race(cast, worker, owner, stripe)


def together(*children: tuple[Child, str]) -> None:
    """Each comes to the stay's lock, and all are let go at once."""
    for child, work_of in children:
        child.stand(STAY_LOCKED)
        child.begin(work_of)
    for child, _ in children:
        child.stopped()
    for child, _ in children:
        child.go()
    for child, _ in children:
        child.done()


def test_an_event_against_the_sweep(
    race: Race, nursery: Nursery, whole: bool, figure: Figure
) -> None:
    worker, sweep = nursery.child(), nursery.child()
    rounds = ROUNDS if whole else SHARE
    for _ in range(rounds):
        stay, intent = race.at_card_form()
        race.pays(intent)
        together((worker, "inbox"), (sweep, SWEEP))
        race.settles()
        assert race.is_even(stay) == "reserved", "the provider has the money, and says so"
    figure("deposits at their deadline", paid_by_card=rounds)


@pytest.mark.parametrize("point", ["call payments.cancel_intent", "called payments.cancel_intent"])
def test_a_guest_who_pays_as_the_attempt_is_cancelled(
    race: Race, nursery: Nursery, point: str
) -> None:
    """Before the provider has cancelled it, the money comes and is kept; after it, none can."""
    stay, intent = race.at_card_form()
    sweep = nursery.child()
    sweep.stand(point)
    sweep.begin(SWEEP)
    sweep.stopped()
    if point.startswith("called"):
        with pytest.raises(stripe_sdk.InvalidRequestError):
            race.pays(intent)
    else:
        race.pays(intent)
    sweep.go()
    sweep.done()
    race.settles()
    assert race.is_even(stay) == ("cancelled" if point.startswith("called") else "reserved")


def test_a_guest_who_presses_again_once_the_attempt_is_cancelled(
    race: Race, nursery: Nursery
) -> None:
    """Between the provider's answer and the end there is a new attempt: it is waited for."""
    stay, _ = race.at_card_form()
    sweep = nursery.child()
    sweep.stand("before for no key update of s, p")
    sweep.begin(SWEEP)
    sweep.stopped()
    desk = race.worker.desk(stay.facility_id)
    race.settles()
    said = payments.open_payment(desk, race.cast.sato.actor, stay.id, "deposit")
    assert isinstance(said, Applied), said
    intent = race.owner.one("select intent_id from payments where id = %s", said.subject)
    sweep.go()
    assert sweep.done() == 0
    race.pays(intent)
    race.settles()
    assert race.is_even(stay) == "reserved"


def test_cash_against_the_sweep(race: Race, nursery: Nursery, whole: bool, figure: Figure) -> None:
    """This process is the desk's."""
    sweep, kept = nursery.child(), 0
    rounds = ROUNDS if whole else SHARE
    for number in range(rounds):
        stay = overdue(race.owner, race.booked())
        sweep.stand("before for no key update of s, p")
        sweep.begin(SWEEP)
        sweep.stopped()
        said: list[Outcome] = []
        desk = threading.Thread(
            target=lambda stay=stay, said=said: said.append(
                do(race.cast, cash.take, stay.id, DEPOSIT, uuid4())
            )
        )
        if number % 3 == 0:
            desk.start()
            desk.join(60)  # before the sweep has the lock, and after its first look
            sweep.go()
        else:
            first, second = (desk.start, sweep.go) if number % 3 == 1 else (sweep.go, desk.start)
            first()
            second()
        sweep.done()
        desk.join(60)
        (taken,) = said
        goes_on = race.is_even(stay) == "reserved"
        assert (taken.status == "applied") == goes_on
        assert goes_on or number % 3
        kept += goes_on
    figure("deposits at their deadline", in_cash=rounds, of_those_in_time=kept)


def test_a_sweep_that_is_killed_at_the_provider_is_gone_on_with(
    race: Race, nursery: Nursery
) -> None:
    """The attempt is cancelled there and nobody here knows: the next look asks again."""
    stay, _ = race.at_card_form()
    doomed = nursery.child()
    doomed.stand("called payments.cancel_intent")
    doomed.begin(SWEEP)
    doomed.stopped()
    doomed.kill()
    assert state(race.owner, stay) == "reserved"
    assert nursery.child().work(SWEEP) == 1
    race.settles()
    assert race.is_even(stay) == "cancelled"
