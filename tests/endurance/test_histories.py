"""Events of a payment's life, delivered as networks do: doubled, reordered, late in heaps, told
again under other ids, and some not at all. Whatever the history, the end is that of the order in
which things happened; what never arrived comes by the catch-up.

The events are the stand-in's own, recorded once for each life and received anew in each history.
"""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
import stripe as sdk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.edges.payments.port import ProviderEvent
from portal.jobs import catch_up
from sandbox.stripe.testing import StandIn, client
from tests.endurance.ground import Ground, records_equal_transitions
from tests.figures import Figure
from tests.outside import STRIPE_KEY, pay, receive, work
from tests.outside import events as told_events

pytestmark = pytest.mark.proof

HISTORIES = 1000
SHARE = 24
PRICE = 10_000

# Lives --------------------------------------------------------------------------------------------


def declined_then_paid_then_partly_returned_and_disputed(stripe: StandIn, intent: str) -> None:
    with suppress(sdk.CardError):
        pay(stripe, intent, "pm_card_visa_chargeDeclined")
    pay(stripe, intent)
    stripe.post("refunds/next", statuses=["pending", "succeeded", "pending"])
    slow, good, bad = (
        stripe.post("refunds", payment_intent=intent, amount=amount)["id"]
        for amount in (3000, 500, 2000)
    )
    stripe.post(f"refunds/{slow}", status="succeeded")
    stripe.post(f"refunds/{bad}", status="succeeded")
    stripe.post(f"refunds/{bad}", status="failed", failure_reason="lost_or_stolen_card")
    dispute = stripe.post("disputes", payment_intent=intent)["id"]
    stripe.post(f"disputes/{dispute}/close", status="won")
    assert good


def slow_money_that_all_goes_back(stripe: StandIn, intent: str) -> None:
    pay(stripe, intent, "pm_card_processing")
    stripe.post(f"payment_intents/{intent}/finish", outcome="succeeded")
    for amount in (1, PRICE - 1):
        stripe.post("refunds", payment_intent=intent, amount=amount)


def slow_money_that_never_comes(stripe: StandIn, intent: str) -> None:
    pay(stripe, intent, "pm_card_processing")
    stripe.post(f"payment_intents/{intent}/finish", outcome="declined")
    client(stripe.base, STRIPE_KEY).payment_intents.cancel(intent)


LIVES: tuple[Callable[[StandIn, str], None], ...] = (
    declined_then_paid_then_partly_returned_and_disputed,
    slow_money_that_all_goes_back,
    slow_money_that_never_comes,
)

# Histories ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """One event that arrives `times` times, under other ids too; then the worker may look."""

    event: int
    times: int
    twins: int
    then_work: bool


@st.composite
def histories(draw: Any, count: int) -> list[Delivery]:
    order = draw(st.permutations(range(count)))
    dropped = draw(st.sets(st.sampled_from(range(count))))
    again = draw(st.lists(st.sampled_from(range(count)), max_size=count))
    return [
        Delivery(
            one,
            draw(st.integers(1, 3)),
            draw(st.sampled_from((0, 0, 0, 1, 2))),
            draw(st.booleans()),
        )
        for one in (*order, *again)
        if one not in dropped
    ]


def twin(event: ProviderEvent, number: int) -> ProviderEvent:
    named = f"{event.id}_{number}"
    return replace(event, id=named, raw=json.dumps({**json.loads(event.raw), "id": named}).encode())


# The end ------------------------------------------------------------------------------------------


def picture(ground: Ground) -> dict[str, Any]:
    """What is true in the end, without the way that led there."""
    rows = ground.owner.rows
    return {
        "payment": rows("select state, amount from payments"),
        "balance": rows("select sum(amount) from ledger_lines"),
        "booked": rows(
            "select kind, sum(amount), count(*) from ledger_lines where payment_id is not null"
            " group by 1 order by 1"
        ),
        "refunds": rows(
            "select r.provider_refund_id, r.state, r.amount, coalesce(sum(l.amount), 0)"
            " from refunds r left join ledger_lines l on l.refund_id = r.id"
            " group by 1, 2, 3 order by 1"
        ),
        "receipts": rows("select count(*) from outbox where event_type = 'payment_received'"),
        "told of what went back": rows(
            "select r.provider_refund_id, count(o.id) from refunds r"
            " left join outbox o on o.dedupe_key = 'refund_sent:' || r.id"
            " where r.state = 'succeeded' group by 1 order by 1"
        ),
        "left to a person": rows("select count(*) from dead_letters"),
        "not completed": rows("select count(*) from webhook_events where state <> 'completed'"),
    }


def whoever_was_told_wrong_was_corrected(ground: Ground) -> None:
    """A refund that failed was either never announced, or announced and taken back."""
    wrong = ground.owner.rows(
        """
        select r.provider_refund_id from refunds r where r.state = 'failed'
          and exists (select 1 from outbox where dedupe_key = 'refund_sent:' || r.id)
           <> exists (select 1 from outbox where dedupe_key = 'refund_failed:' || r.id)
        """
    )
    assert wrong == []


@dataclass
class Life:
    """A payment's events, and the house as it was before the first of them."""

    ground: Ground
    events: list[ProviderEvent]

    def live(self, history: list[Delivery]) -> dict[str, Any]:
        self.ground.snapshots.restore()
        for one in history:
            event = self.events[one.event]
            receive(*[event] * one.times, *(twin(event, number) for number in range(one.twins)))
            if one.then_work:
                work(self.ground.worker, "inbox")
        catch_up.fetch_missed(self.ground.worker)
        self.ground.owner.make_due()
        work(self.ground.worker, "inbox")
        by_events_alone = picture(self.ground)
        self.ground.owner.make_due()
        work(self.ground.worker, "payments", "inbox", "refunds")
        assert picture(self.ground) == by_events_alone
        records_equal_transitions(self.ground.owner)
        whoever_was_told_wrong_was_corrected(self.ground)
        return by_events_alone


@pytest.mark.parametrize("told", LIVES, ids=lambda told: told.__name__)
def test_any_history_ends_like_the_one_in_order(
    told: Callable[[StandIn, str], None],
    ground: Ground,
    stripe: StandIn,
    whole: bool,
    figure: Figure,
) -> None:
    intent = ground.opened(ground.cast.book(price=PRICE))[1]
    ground.snapshots.take()
    told(stripe, intent)
    life = Life(ground, told_events(ground.worker))
    in_order = life.live([Delivery(one, 1, 0, True) for one in range(len(life.events))])
    assert in_order["payment"][0][0] in ("succeeded", "refunded", "canceled")
    seen: Counter[str] = Counter()

    @settings(
        max_examples=-(-(HISTORIES if whole else SHARE) // len(LIVES)),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(history=histories(len(life.events)))
    def prove(history: list[Delivery]) -> None:
        assert life.live(history) == in_order
        arrived = {one.event for one in history}
        seen["histories"] += 1
        seen["deliveries"] += sum(one.times + one.twins for one in history)
        seen["twins"] += sum(one.twins for one in history)
        seen["events_dropped"] += len(life.events) - len(arrived)

    prove()
    figure("delivery histories", **seen, other_ends=0)
