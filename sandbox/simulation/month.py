"""What people do in a month, what the provider does to them, and what the wires do to both.

Everything is drawn from one seeded source, so the same seed is the same month.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

import stripe as sdk

from portal import clock
from portal.db import transaction
from portal.doorbell import Kind
from portal.edges.payments.port import ProviderEvent
from portal.jobs import catch_up, drain
from portal.verbs import membership_money, memberships
from portal.verbs.guests import NewGuest
from portal.verbs.membership_end import Ending, end_membership
from portal.verbs.memberships import Application
from sandbox.simulation.ground import STAFF, Ground

DAY = 86_400
KINDS: tuple[Kind, ...] = ("inbox", "memberships", "payments", "refunds", "outbox")

# What goes wrong with a call to the provider: before the work, after it, or instead of it.
FAULTS: tuple[dict[str, Any], ...] = (
    {"mode": "refuse"},
    {"mode": "rate_limit"},
    {"mode": "error_500_before"},
    {"mode": "error_500_after"},
    {"mode": "do_then_drop"},
    {"mode": "stall", "when": "instead", "seconds": 0.05},
)

HELD, DROPPED, DOUBLED = 0.15, 0.03, 0.10
"""How many of the provider's events come a day late, never, and twice."""

FAULTY = 0.08
"""How many of the things that people do meet a fault."""


@dataclass
class Month:
    ground: Ground
    chance: Random
    acts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    held: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)

    def apply(self, number: int) -> None:
        """Somebody new, or somebody who has left, applies."""
        ground = self.ground
        plan = self.chance.choice(sorted(ground.plans))
        wanted = Application(
            form_key=uuid4(),
            plan_id=ground.plans[plan],
            seen=ground.one(
                "select version from membership_plans where id = %s", ground.plans[plan]
            ),
            guest=NewGuest(name=f"会員 {number}", email=f"{number}@guest.example", locale="ja"),
            confirmation={},
        )
        with transaction(ground.house_id) as tx:
            said = memberships.apply(tx, STAFF, wanted)
        self.acts[f"apply {said.code}"] += 1

    def day(self) -> None:
        """People act in the order of their memberships, and the wires carry what was said. Who is
        approved in the morning pays, or does not, in the evening."""
        for state in ("", "checkout"):
            for row in self.ground.rows(
                "select id, state, version from memberships where %s in ('', state)"
                " order by created_at, id",
                state,
            ):
                self._live(*row)
            self.deliver()
            self.work()

    def _live(self, membership: UUID, state: str, version: int) -> None:
        for chance, act in LIVES.get(state, ()):
            if self.chance.random() < chance:
                self._spoil()
                try:
                    said = act(self, membership, version)
                except (sdk.StripeError, OSError):
                    said = "the provider did not take it"
                finally:
                    self.ground.stripe.delete("faults")
                self.acts[f"{act.__name__.strip('_')} {getattr(said, 'code', said)}"] += 1
                return

    def _spoil(self) -> None:
        if self.chance.random() < FAULTY:
            fault = self.chance.choice(FAULTS)
            self.faults[fault["mode"]] += 1
            self.ground.stripe.fault(path="/v1/.*", method="POST|DELETE|GET", **fault)

    def deliver(self, *, everything: bool = False) -> None:
        """Shuffled; some late, some never, some twice."""
        fresh = [one for one in self._events() if one.id not in self.told]
        self.chance.shuffle(fresh)
        for event in fresh:
            if not everything and event.id not in self.held and self.chance.random() < HELD:
                self.held.add(event.id)
                self.faults["late"] += 1
                continue
            self.told.add(event.id)
            if not everything and self.chance.random() < DROPPED:
                self.faults["lost"] += 1
                continue
            _receive(event)
            if self.chance.random() < DOUBLED:
                self.faults["twice"] += 1
                _receive(event)

    def _events(self) -> list[ProviderEvent]:
        since = clock.now() - timedelta(days=4)
        return list(self.ground.house.providers.payments.events_since(since))

    def work(self) -> None:
        """What a worker does on every sweep of a day."""
        for _ in range(3):
            for table, column in DUE:
                self.ground.owner.execute(
                    f"update {table} set {column} = now() where {column} is not null"
                    f" and {column} < now() + interval '1 day'"
                )
            for kind in KINDS:
                drain.drain(kind)

    def catch_up(self) -> None:
        catch_up.fetch_missed(self.ground.house)

    def pass_day(self) -> None:
        self.ground.age(DAY)


DUE = (
    ("webhook_events", "next_attempt_at"),
    ("billing_legs", "next_read_at"),
    ("payments", "next_read_at"),
    ("refunds", "next_attempt_at"),
    ("outbox", "next_attempt_at"),
    ("memberships", "next_look_at"),
    ("end_obligations", "next_look_at"),
)


def _receive(event: ProviderEvent) -> None:
    with transaction(None) as tx:
        catch_up.put(tx, event)


# What people do ---------------------------------------------------------------------------------


def _approve(month: Month, membership: UUID, version: int) -> Any:
    return memberships.approve(month.ground.desk, STAFF, membership, version)


def _reject(month: Month, membership: UUID, version: int) -> Any:
    ending = Ending("application_rejected", seen=version)
    return end_membership(month.ground.desk, STAFF, membership, ending)


def _pay(month: Month, membership: UUID, version: int) -> Any:
    """On the pay page, with a card that is good, or with one that is declined, or only later."""
    said = membership_money.pay(month.ground.desk, STAFF, membership)
    intent = month.ground.one(
        "select intent_id from payments where id = %s", getattr(said, "subject", None)
    )
    if intent is None:
        return said
    card = month.chance.choice(["pm_card_visa"] * 5 + ["pm_card_visa_chargeDeclined"])
    month.ground.provider.payment_intents.confirm(
        intent, {"payment_method": card, "return_url": "https://example.com/back"}
    )
    return card


def _leave(month: Month, membership: UUID, version: int) -> Any:
    when: Any = month.chance.choice(["period_end", "month_boundary"])
    ending = Ending("self_cancel", when=when, seen=version)
    return end_membership(month.ground.desk, STAFF, membership, ending)


def _put_out(month: Month, membership: UUID, version: int) -> Any:
    ending = Ending("force_cancel", note="simulated", seen=version)
    return end_membership(month.ground.desk, STAFF, membership, ending)


def _come_back(month: Month, membership: UUID, version: int) -> Any:
    return memberships.resume(month.ground.desk, STAFF, membership, version)


def _switch(month: Month, membership: UUID, version: int) -> Any:
    plan = month.ground.plans[month.chance.choice(sorted(month.ground.plans))]
    return memberships.switch_plan(month.ground.desk, STAFF, membership, plan, version)


def _card_fails(month: Month, membership: UUID, version: int) -> Any:
    """The bank will decline the next renewal."""
    mirror = month.ground.rows(
        "select subscription_id, customer_id from subscription_mirror where membership_id = %s",
        membership,
    )
    if not mirror:
        return "no subscription"
    ((subscription, customer),) = mirror
    provider = month.ground.provider
    card = provider.payment_methods.attach("pm_card_chargeCustomerFail", {"customer": customer})
    provider.subscriptions.update(subscription, {"default_payment_method": card.id})
    return "done"


def _dashboard(month: Month, membership: UUID, version: int) -> Any:
    """Somebody sets or takes back an end, or pauses, in the provider's own pages."""
    subscription = month.ground.one(
        "select subscription_id from subscription_mirror where membership_id = %s", membership
    )
    if subscription is None:
        return "no subscription"
    changes: Any = month.chance.choice(
        [
            {"cancel_at_period_end": True},
            {"cancel_at_period_end": False},
            {"pause_collection": {"behavior": "void"}},
            {"pause_collection": ""},
        ]
    )
    month.ground.provider.subscriptions.update(subscription, changes)
    return "done"


Act = Callable[[Month, UUID, int], Any]

LIVES: dict[str, tuple[tuple[float, Act], ...]] = {
    "applying": ((0.85, _approve), (0.15, _reject)),
    "checkout": ((0.75, _pay), (0.10, _leave)),
    "active": (
        (0.015, _leave),
        (0.005, _put_out),
        (0.02, _card_fails),
        (0.01, _dashboard),
        (0.01, _switch),
    ),
    "past_due": ((0.35, _pay), (0.05, _leave), (0.02, _put_out)),
    "scheduled_to_end": ((0.10, _come_back), (0.02, _put_out), (0.01, _dashboard)),
}


def live(ground: Ground, seed: int, members: int, days: int) -> Month:
    """The month: people join over its first third, act, and are renewed; in the end the wires are
    quiet and whatever waits is done."""
    month = Month(ground, Random(seed))
    joining = max(1, members // max(1, days // 3))
    joined = 0
    for day in range(days):
        for _ in range(min(joining, members - joined)):
            joined += 1
            month.apply(joined)
        if joined == members and month.chance.random() < 0.5:
            month.apply(month.chance.randint(1, members))  # one who has left, or has not
        month.day()
        if day % 3 == 2:
            month.catch_up()
            month.work()
        month.pass_day()
        month.deliver()
        month.work()
    calm(month)
    return month


def calm(month: Month) -> None:
    """Three days in which nobody does anything and nothing is lost."""
    for _ in range(3):
        month.deliver(everything=True)
        month.catch_up()
        month.ground.owner.execute(
            "update subscription_mirror set next_read_at = now() where next_read_at is not null"
        )
        month.work()
        month.pass_day()
    month.deliver(everything=True)
    month.work()
