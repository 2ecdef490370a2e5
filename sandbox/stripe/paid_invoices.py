"""What the end of an intent means for the invoice and the subscription behind it."""

from sandbox.stripe.world import Obj, World


def intent_succeeded(world: World, intent: Obj) -> None:
    payment = _payment_of(world, intent)
    if payment is not None:
        mark_paid(world, world.get("invoice", payment["invoice"]), payment)


def intent_failed(world: World, intent: Obj) -> None:
    payment = _payment_of(world, intent)
    if payment is None:
        return
    invoice = world.get("invoice", payment["invoice"])
    invoice.update(attempted=True, attempt_count=invoice["attempt_count"] + 1)
    world.emit("invoice.payment_failed", invoice)


def payments_of(world: World, invoice: Obj) -> list[Obj]:
    all_payments = world.newest_first("invoice_payment")
    return [payment for payment in all_payments if payment["invoice"] == invoice["id"]]


def intent_of(world: World, invoice: Obj) -> Obj | None:
    for payment in payments_of(world, invoice):
        return world.get("payment_intent", payment["payment"]["payment_intent"])
    return None


def mark_paid(world: World, invoice: Obj, payment: Obj | None) -> None:
    invoice.update(
        status="paid", attempted=True, amount_paid=invoice["amount_due"], amount_remaining=0
    )
    invoice["attempt_count"] += 1 if payment else 0
    invoice["status_transitions"]["paid_at"] = world.now()
    if payment is not None:
        payment.update(status="paid", amount_paid=payment["amount_requested"])
        payment["status_transitions"]["paid_at"] = world.now()
        world.emit("invoice_payment.paid", payment)
    world.emit("invoice.paid", invoice)
    world.emit("invoice.payment_succeeded", invoice)
    _wake_subscription(world, invoice)


def _wake_subscription(world: World, invoice: Obj) -> None:
    """The first payment starts a subscription; a late one ends its being past due."""
    subscription = world.get("subscription", subscription_id(invoice))
    if subscription["status"] in ("incomplete", "past_due", "unpaid"):
        with world.changing(subscription, "customer.subscription.updated"):
            subscription["status"] = "active"
            _remember_method(world, subscription, invoice)


def _remember_method(world: World, subscription: Obj, invoice: Obj) -> None:
    keeps = subscription["payment_settings"]["save_default_payment_method"] == "on_subscription"
    intent = intent_of(world, invoice)
    if keeps and intent is not None and intent["payment_method"]:
        subscription["default_payment_method"] = intent["payment_method"]


def subscription_id(invoice: Obj) -> str:
    return str(invoice["parent"]["subscription_details"]["subscription"])


def _payment_of(world: World, intent: Obj) -> Obj | None:
    for payment in world.newest_first("invoice_payment"):
        if payment["payment"]["payment_intent"] == intent["id"]:
            return payment
    return None
