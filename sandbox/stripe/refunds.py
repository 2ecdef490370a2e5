"""Refunds and the charges that they are taken from."""

from sandbox.stripe import disputes, params, shapes
from sandbox.stripe.errors import ApiError, invalid, refused
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

_REASONS = ("duplicate", "fraudulent", "requested_by_customer")


def create(world: World, given: Params) -> Obj:
    params.only(given, ("charge", "payment_intent", "amount", "reason", "metadata", "currency"))
    charge = _charge_to_refund(world, given)
    amount = params.positive(given, "amount")
    reason = params.choice(given, "reason", _REASONS)
    data = params.metadata(given)
    if refusal := _refusal(world, charge, amount):
        raise refusal
    remaining = charge["amount_captured"] - charge["amount_refunded"]
    return take(world, charge, amount or remaining, metadata=data, reason=reason)


def retrieve(world: World, given: Params, refund_id: str) -> Obj:
    return world.get("refund", refund_id)


def update(world: World, given: Params, refund_id: str) -> Obj:
    params.only(given, ("metadata",))
    refund = world.get("refund", refund_id)
    with world.changing(refund, "refund.updated"):
        refund["metadata"] = params.metadata(given, refund["metadata"])
    return refund


def retrieve_charge(world: World, given: Params, charge_id: str) -> Obj:
    return world.get("charge", charge_id)


def take(world: World, charge: Obj, amount: int, **given: object) -> Obj:
    """Move the money back, whoever asked for it. Pending refunds count as refunded."""
    status = _next_status(world)
    refund = world.add(shapes.refund(world, charge, amount, status, **given))
    _count(charge, amount)
    world.emit("refund.created", refund)
    world.emit("charge.refunded", charge)
    return refund


def settle(world: World, refund: Obj, status: str, reason: str | None) -> None:
    """Decide a refund later. One that fails or is cancelled gives its amount back."""
    if refund["status"] in ("failed", "canceled"):
        raise refused(f"This refund is already {refund['status']}.")
    with world.changing(refund, "refund.updated"):
        refund.update(status=status, pending_reason=None)
        if status == "failed":
            refund["failure_reason"] = reason or "expired_or_canceled_card"
            refund["failure_balance_transaction"] = world.new_id("txn")
    if status in ("failed", "canceled"):
        _count(world.get("charge", refund["charge"]), -refund["amount"])
    world.emit("charge.refund.updated", refund)
    if status == "failed":
        world.emit("refund.failed", refund)


def _count(charge: Obj, amount: int) -> None:
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] >= charge["amount_captured"]


def _next_status(world: World) -> str:
    """Tests line up statuses for the refunds to come; without any, a refund succeeds."""
    waiting: list[str] = world.private.get("next_refunds", [])
    return waiting.pop(0) if waiting else "succeeded"


def _charge_to_refund(world: World, given: Params) -> Obj:
    if charge_id := params.text(given, "charge"):
        return world.get("charge", charge_id, "charge")
    intent_id = params.text(given, "payment_intent")
    if intent_id is None:
        message = "One of the following params should be provided: payment_intent or charge."
        raise invalid(message, code="parameter_missing")
    intent = world.get("payment_intent", intent_id, "payment_intent")
    if intent["latest_charge"] is None or intent["status"] != "succeeded":
        message = f"This PaymentIntent ({intent_id}) does not have a successful charge to refund."
        raise refused(message)
    return world.get("charge", intent["latest_charge"])


def _refusal(world: World, charge: Obj, amount: int | None) -> ApiError | None:
    remaining = charge["amount_captured"] - charge["amount_refunded"]
    if charge["status"] != "succeeded" or not charge["captured"]:
        return refused(f"Charge {charge['id']} has not been captured; cannot issue a refund.")
    if disputes.blocks_refund(world, charge):
        message = f"Charge {charge['id']} has been charged back; cannot issue a refund."
        return refused(message, code="charge_disputed")
    if remaining == 0:
        message = f"Charge {charge['id']} has already been refunded."
        return refused(message, code="charge_already_refunded")
    if amount is not None and amount > remaining:
        message = f"Refund amount ({amount}) is greater than unrefunded amount ({remaining})"
        return refused(message, param="amount")
    return None
