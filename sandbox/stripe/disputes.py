"""Disputes: opened and closed through the control door, read through the API."""

from sandbox.stripe import shapes_dispute
from sandbox.stripe.errors import refused
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World


def retrieve(world: World, given: Params, dispute_id: str) -> Obj:
    return world.get("dispute", dispute_id)


def open_on(world: World, charge: Obj, amount: int | None, reason: str) -> Obj:
    """The bank takes the money at once and holds it until the dispute is decided."""
    if blocks_refund(world, charge):
        raise refused(f"Charge {charge['id']} is disputed already.")
    remaining = charge["amount_captured"] - charge["amount_refunded"]
    dispute = world.add(shapes_dispute.dispute(world, charge, amount or remaining, reason))
    charge["disputed"] = True
    world.emit("charge.dispute.created", dispute)
    world.emit("charge.dispute.funds_withdrawn", dispute)
    return dispute


def close(world: World, dispute: Obj, status: str) -> Obj:
    """`won` gives the money back and lets the charge be refunded again; `lost` keeps it."""
    if dispute["status"] in ("won", "lost"):
        raise refused(f"This dispute is already {dispute['status']}.")
    dispute["status"] = status
    if status == "won":
        # Stripe leaves `disputed` true for ever; what decides is whether it may be refunded.
        dispute["is_charge_refundable"] = True
        world.emit("charge.dispute.funds_reinstated", dispute)
    world.emit("charge.dispute.closed", dispute)
    return dispute


def blocks_refund(world: World, charge: Obj) -> bool:
    of_charge = [d for d in world.newest_first("dispute") if d["charge"] == charge["id"]]
    return any(not dispute["is_charge_refundable"] for dispute in of_charge)
