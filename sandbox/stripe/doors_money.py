"""Doors for what happens at the provider without the portal: refunds, disputes, decisions."""

from typing import Any

from sandbox.stripe import attempts, disputes, intents, refunds, time_passing
from sandbox.stripe.bench import Bench
from sandbox.stripe.world import Obj, World


def external_refund(bench: Bench, given: Obj) -> Any:
    """A refund from the dashboard: no metadata of ours. {"payment_intent"|"charge", "amount"?}"""
    world = bench.world
    with world.lock:
        charge = _charge(world, given)
        remaining = charge["amount_captured"] - charge["amount_refunded"]
        refund = refunds.take(world, charge, int(given.get("amount", remaining)))
    world.save()
    return refund


def next_refunds(bench: Bench, given: Obj) -> Any:
    """{"statuses": ["pending", …]}: what the next refunds answer with, one each."""
    bench.world.private["next_refunds"] = [str(row) for row in given["statuses"]]
    return {}


def settle_refund(bench: Bench, given: Obj, refund_id: str) -> Any:
    """{"status": "succeeded"|"failed"|"canceled", "failure_reason"?}"""
    with bench.world.lock:
        refund = bench.world.get("refund", refund_id)
        refunds.settle(bench.world, refund, given["status"], given.get("failure_reason"))
    bench.world.save()
    return refund


def finish_intent(bench: Bench, given: Obj, intent_id: str) -> Any:
    """Decide a payment in processing. {"outcome": "succeeded"|"declined"}"""
    with bench.world.lock:
        intent = bench.world.get("payment_intent", intent_id)
        succeeded = given.get("outcome", "succeeded") == "succeeded"
        attempts.finish_processing(bench.world, intent, succeeded)
    bench.world.save()
    return intent


def expire_authorisation(bench: Bench, given: Obj, intent_id: str) -> Any:
    """What was set aside and never captured is let go, as it is by itself after seven days."""
    with bench.world.lock:
        intent = bench.world.get("payment_intent", intent_id)
        if intent["status"] != "requires_capture":
            raise ValueError(f"{intent_id} is {intent['status']}")
        intents.withdraw(bench.world, intent, "automatic")
    bench.world.save()
    return intent


def answer_challenge(bench: Bench, given: Obj, intent_id: str) -> Any:
    """{"approve": true|false}: 3-D Secure without the page."""
    with bench.world.lock:
        intent = bench.world.get("payment_intent", intent_id)
        attempts.answer_challenge(bench.world, intent, bool(given["approve"]))
    bench.world.save()
    return intent


def open_dispute(bench: Bench, given: Obj) -> Any:
    """{"payment_intent"|"charge", "amount"?, "reason"?}"""
    with bench.world.lock:
        charge = _charge(bench.world, given)
        reason = given.get("reason", "fraudulent")
        dispute = disputes.open_on(bench.world, charge, given.get("amount"), reason)
    bench.world.save()
    return dispute


def close_dispute(bench: Bench, given: Obj, dispute_id: str) -> Any:
    """{"status": "won"|"lost"}"""
    if given["status"] not in ("won", "lost"):
        raise ValueError("status must be won or lost")
    with bench.world.lock:
        dispute = bench.world.get("dispute", dispute_id)
        disputes.close(bench.world, dispute, given["status"])
    bench.world.save()
    return dispute


def renew(bench: Bench, given: Obj, subscription_id: str) -> Any:
    """The next period now, without moving the clock. Returns the invoice."""
    with bench.world.lock:
        subscription = bench.world.get("subscription", subscription_id)
        invoice = time_passing.renew(bench.world, subscription)
    bench.world.save()
    return invoice


def _charge(world: World, given: Obj) -> Obj:
    if "charge" in given:
        return world.get("charge", given["charge"])
    return world.get(
        "charge", world.get("payment_intent", given["payment_intent"])["latest_charge"]
    )
