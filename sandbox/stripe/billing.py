"""Invoices: issued for a subscription and charged to the method on file."""

from sandbox.stripe import (
    attempts,
    customers,
    intents,
    paid_invoices,
    params,
    shapes,
    shapes_invoice,
)
from sandbox.stripe.errors import ApiError, refused
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World


def retrieve(world: World, given: Params, invoice_id: str) -> Obj:
    return world.get("invoice", invoice_id)


def pay_now(world: World, given: Params, invoice_id: str) -> Obj:
    """POST /v1/invoices/:id/pay: try again, perhaps with another method."""
    params.only(given, ("payment_method", "off_session"))
    invoice = world.get("invoice", invoice_id)
    if invoice["status"] != "open":
        raise refused(f"Invoice is {invoice['status']}, not open.")
    method_id = params.text(given, "payment_method") or _method_for(world, invoice)
    if method_id is None:
        raise refused("There is no payment method to pay this invoice with.")
    _try_payment(world, invoice, customers.resolve(world, method_id))
    return invoice


def issue(world: World, subscription: Obj, reason: str) -> Obj:
    """An open invoice with its intent behind it; nothing is charged yet."""
    customer = world.get("customer", subscription["customer"])
    invoice = world.add(shapes_invoice.invoice(world, subscription, customer, reason))
    subscription["latest_invoice"] = invoice["id"]
    world.emit("invoice.created", invoice)
    if invoice["amount_due"] >= intents.MINIMUM[invoice["currency"]]:
        _open_intent(world, invoice, subscription)
    world.emit("invoice.finalized", invoice)
    if invoice["amount_due"] == 0:
        paid_invoices.mark_paid(world, invoice, None)
    return invoice


def charge(world: World, invoice: Obj) -> bool:
    """Charge the method on file, nobody being there to authenticate. Says whether it paid."""
    method_id = _method_for(world, invoice)
    if invoice["status"] == "paid":
        return True
    if method_id is None:
        return False
    try:
        _try_payment(world, invoice, world.get("payment_method", method_id))
    except ApiError:
        return False
    return bool(invoice["status"] == "paid")


def shelve(world: World, invoice: Obj, behaviour: str) -> None:
    """A paused subscription's invoice, by its pause behaviour."""
    status = {"void": "void", "mark_uncollectible": "uncollectible", "keep_as_draft": "draft"}
    event = {"void": "invoice.voided", "mark_uncollectible": "invoice.marked_uncollectible"}
    invoice.update(status=status[behaviour], auto_advance=False)
    stamp = {"void": "voided_at", "mark_uncollectible": "marked_uncollectible_at"}.get(behaviour)
    if stamp:
        invoice["status_transitions"][stamp] = world.now()
        world.emit(event[behaviour], invoice)


def void(world: World, given: Params, invoice_id: str) -> Obj:
    """POST /v1/invoices/:id/void: nobody can pay it any more."""
    params.only(given, ())
    invoice = world.get("invoice", invoice_id)
    if invoice["status"] not in ("open", "uncollectible"):
        raise refused(f"You can only void open or uncollectible invoices, not {invoice['status']}.")
    intent = paid_invoices.intent_of(world, invoice)
    if intent is not None and intent["status"] == "processing":
        raise refused("You cannot void an invoice that has a payment in processing.")
    if intent is not None:
        intents.withdraw(world, intent, "void_invoice")
    shelve(world, invoice, "void")
    return invoice


def _open_intent(world: World, invoice: Obj, subscription: Obj) -> None:
    intent = shapes.intent(
        world,
        invoice["amount_due"],
        invoice["currency"],
        customer=invoice["customer"],
        description="Subscription",
        setup_future_usage="off_session",
    )
    world.add(intent)
    world.add(shapes_invoice.invoice_payment(world, invoice, intent["id"]))
    world.private[f"subscription:{intent['id']}"] = subscription["id"]
    world.emit("payment_intent.created", intent)


def _try_payment(world: World, invoice: Obj, method: Obj) -> None:
    intent = paid_invoices.intent_of(world, invoice)
    if intent is None:
        raise refused("This invoice has nothing to pay.")
    attempts.attempt(world, intent, method, off_session=True)


def _method_for(world: World, invoice: Obj) -> str | None:
    subscription = world.get("subscription", paid_invoices.subscription_id(invoice))
    customer = world.get("customer", invoice["customer"])
    settings = customer["invoice_settings"]
    chosen: str | None = (
        subscription["default_payment_method"] or settings["default_payment_method"]
    )
    return chosen
