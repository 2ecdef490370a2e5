"""What a card's bank has only set aside: no money, no end of the attempt, and seen by staff."""

import pytest
from stripe import CardError

from portal.jobs import deposits as job
from portal.jobs.house import House
from portal.jobs.reconcile import reconcile
from sandbox.stripe.testing import StandIn, client
from tests.cast import Booked, Cast
from tests.outside import STRIPE_KEY, Owner, deliver, pay, work
from tests.verbs.test_deposits import DEPOSIT, PRICE, news, overdue, state, waiting
from tests.verbs.test_payments import opened
from tests.verbs.test_stays import balance


def set_aside(cast: Cast, worker: House, stripe: StandIn, owner: Owner, stay: Booked) -> str:
    """Somebody set manual capture at the provider; the guest's card is fine."""
    intent = opened(worker, cast, owner, stay, "deposit")
    client(stripe.base, STRIPE_KEY).payment_intents.update(intent, {"capture_method": "manual"})
    pay(stripe, intent)
    return intent


def aside(owner: Owner) -> list[tuple[str, bool]]:
    return owner.rows("select state, authorised_at is not null from payments order by attempt")


@pytest.mark.parametrize("heard", ["event", "read"])
def test_an_amount_that_is_only_set_aside_is_no_money(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, heard: str
) -> None:
    stay = waiting(cast)
    set_aside(cast, worker, stripe, owner, stay)
    if heard == "event":
        deliver(worker)
    owner.make_due()
    work(worker, "payments")
    assert aside(owner) == [("open", True)]
    assert balance(owner, stay.id) == PRICE
    assert news(owner, stay, "payment_received") == []


@pytest.mark.parametrize("heard", ["event", "read"])
def test_the_attempt_ends_as_the_provider_lets_the_amount_go(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, heard: str
) -> None:
    stay = waiting(cast)
    intent = set_aside(cast, worker, stripe, owner, stay)
    deliver(worker)
    stripe.post(f"payment_intents/{intent}/expire")
    if heard == "event":
        deliver(worker)
    owner.make_due()
    work(worker, "payments")
    assert aside(owner) == [("canceled", False)]
    assert isinstance(opened(worker, cast, owner, stay, "deposit"), str), "another one may begin"


def test_what_is_taken_at_the_provider_is_money_then(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = waiting(cast)
    intent = set_aside(cast, worker, stripe, owner, stay)
    deliver(worker)
    client(stripe.base, STRIPE_KEY).payment_intents.capture(intent)
    deliver(worker)
    assert aside(owner) == [("succeeded", False)]
    assert balance(owner, stay.id) == PRICE - DEPOSIT


def test_another_press_releases_what_is_set_aside(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = waiting(cast)
    intent = set_aside(cast, worker, stripe, owner, stay)
    deliver(worker)
    fresh = opened(worker, cast, owner, stay, "deposit")
    assert fresh != intent
    assert stripe.get(f"objects/{intent}")["status"] == "canceled"
    assert aside(owner) == [("canceled", False), ("open", False)]


def test_an_old_event_does_not_unsay_that_it_is_set_aside(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = waiting(cast)
    intent = opened(worker, cast, owner, stay, "deposit")
    client(stripe.base, STRIPE_KEY).payment_intents.update(intent, {"capture_method": "manual"})
    with pytest.raises(CardError):
        pay(stripe, intent, "pm_card_visa_chargeDeclined")
    pay(stripe, intent)
    deliver(worker, "payment_intent.amount_capturable_updated")
    deliver(worker, "payment_intent.payment_failed")
    assert aside(owner) == [("open", True)]


def test_the_sweep_releases_what_is_set_aside_and_ends_the_booking(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = overdue(owner, waiting(cast))
    intent = set_aside(cast, worker, stripe, owner, stay)
    deliver(worker)
    assert job.end_missed(worker) == 1
    assert stripe.get(f"objects/{intent}")["status"] == "canceled"
    assert (state(owner, stay), aside(owner)) == ("cancelled", [("canceled", False)])


def test_a_lost_answer_that_turns_out_to_be_set_aside_is_an_open_attempt(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = waiting(cast)
    set_aside(cast, worker, stripe, owner, stay)
    owner.run(
        "set session_replication_role = replica;"
        " update payments set state = 'unknown'; set session_replication_role = origin"
    )
    work(worker, "payments")
    owner.make_due()
    work(worker, "payments")
    assert aside(owner) == [("open", True)]


def test_what_is_set_aside_is_a_difference_until_somebody_decides(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner
) -> None:
    stay = waiting(cast)
    intent = set_aside(cast, worker, stripe, owner, stay)
    deliver(worker)
    assert reconcile(worker.providers, settle=0).new == {"payment_differs": 1}
    assert "requires_capture" in owner.one("select theirs from divergences")
    stripe.post(f"payment_intents/{intent}/expire")
    deliver(worker)
    assert reconcile(worker.providers, settle=0).healed == 1
