"""What the clock brings about: renewals, ends of period, expiry, decided processing."""

from sandbox.stripe import attempts, billing, paid_invoices, periods, subscriptions
from sandbox.stripe.world import Obj, World

_FIRST_PAYMENT_WITHIN = 23 * 3600
"""An incomplete subscription expires: https://docs.stripe.com/billing/subscriptions/overview"""

_MOST_RENEWALS = 120
_RUNNING = ("trialing", "active", "past_due")
_FAR = 100 * 366 * 86_400


def advance(world: World, seconds: int, processing_seconds: int | None) -> None:
    """Move the clock, stopping at every period's end, so that renewals happen at their time."""
    with world.lock:
        target = world.clock_offset + seconds
        while world.clock_offset < target:
            step = min(target, world.clock_offset + _until_next_end(world))
            world.clock_offset = step
            tick(world, processing_seconds)
        world.clock_offset = target
        tick(world, processing_seconds)


def _until_next_end(world: World) -> int:
    """Seconds, at least 1; a long way off when no subscription runs."""
    now = world.now()
    ends = [
        min(subscriptions.period_end(subscription), subscription["cancel_at"] or now + _FAR)
        for subscription in world.objects.get("subscription", {}).values()
        if subscription["status"] in _RUNNING
    ]
    return max(1, min(ends, default=now + _FAR) - now)


def tick(world: World, processing_seconds: int | None) -> None:
    """Do whatever is due by now. `processing_seconds` None leaves processing to the tests."""
    with world.lock:
        if processing_seconds is not None:
            _decide_processing(world, processing_seconds)
        for subscription in list(world.objects.get("subscription", {}).values()):
            _advance(world, subscription)


def renew(world: World, subscription: Obj) -> Obj:
    """Lay the next period and charge it. Returns the invoice."""
    with world.changing(subscription, "customer.subscription.updated"):
        for item in subscription["items"]["data"]:
            start = item["current_period_end"]
            end = periods.later(start, item["price"], subscription["billing_cycle_anchor"])
            item.update(current_period_start=start, current_period_end=end)
        if subscription["status"] == "trialing":
            subscription["status"] = "active"
        invoice = billing.issue(world, subscription, "subscription_cycle")
    pause = subscription["pause_collection"]
    if pause:
        billing.shelve(world, invoice, pause["behavior"])
    elif not billing.charge(world, invoice):
        _fall_behind(world, subscription)
    return invoice


def _fall_behind(world: World, subscription: Obj) -> None:
    with world.changing(subscription, "customer.subscription.updated"):
        subscription["status"] = "past_due"


def _advance(world: World, subscription: Obj) -> None:
    if subscription["status"] == "incomplete":
        _expire(world, subscription)
        return
    _resume(world, subscription)
    for _ in range(_MOST_RENEWALS):
        if subscription["status"] not in _RUNNING:
            return
        if subscription["cancel_at"] is not None and subscription["cancel_at"] <= world.now():
            subscriptions.end(world, subscription, "cancellation_requested")
            return
        if subscriptions.period_end(subscription) > world.now():
            return
        renew(world, subscription)


def _resume(world: World, subscription: Obj) -> None:
    pause = subscription["pause_collection"]
    if pause and pause["resumes_at"] and pause["resumes_at"] <= world.now():
        with world.changing(subscription, "customer.subscription.updated"):
            subscription["pause_collection"] = None


def _expire(world: World, subscription: Obj) -> None:
    if world.now() - subscription["created"] < _FIRST_PAYMENT_WITHIN:
        return
    invoice = world.get("invoice", subscription["latest_invoice"])
    intent = paid_invoices.intent_of(world, invoice)
    if intent is not None and intent["status"] == "processing":
        return
    if invoice["status"] == "open":
        billing.void(world, {}, invoice["id"])
    with world.changing(subscription, "customer.subscription.updated"):
        subscription.update(status="incomplete_expired", ended_at=world.now())


def _decide_processing(world: World, seconds: int) -> None:
    for intent in list(world.objects.get("payment_intent", {}).values()):
        began = world.private.get(f"processing:{intent['id']}", world.now())
        if intent["status"] == "processing" and began + seconds <= world.now():
            attempts.finish_processing(world, intent, succeeded=True)
