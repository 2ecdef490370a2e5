"""What happens when a card is tried: paid, declined, challenged, or left in processing."""

from sandbox.stripe import customers, paid_invoices, shapes
from sandbox.stripe.cards import Card
from sandbox.stripe.errors import ApiError, refused
from sandbox.stripe.world import Obj, World

_AUTHENTICATION_FAILED = Card(
    code="payment_intent_authentication_failure",
    message=(
        "We are unable to authenticate your payment method. "
        "Please choose a different payment method and try again."
    ),
)
_AUTHENTICATION_NEEDED = Card(
    code="authentication_required",
    decline_code="authentication_required",
    message="Your card was declined. This transaction requires authentication.",
)


def attempt(
    world: World,
    intent: Obj,
    method: Obj,
    *,
    return_url: str | None = None,
    off_session: bool = False,
) -> None:
    """Try to pay. Raises the card error on a decline, after having recorded it."""
    card = customers.card_of(world, method)
    intent.update(payment_method=method["id"], last_payment_error=None, next_action=None)
    if card.behaviour == "decline":
        raise decline(world, intent, method, card)
    if card.behaviour == "challenge" and off_session:
        raise decline(world, intent, method, _AUTHENTICATION_NEEDED)
    if card.behaviour == "challenge":
        return _challenge(world, intent, return_url)
    if card.behaviour == "process":
        return _process(world, intent, method)
    return pay(world, intent, _open_charge(world, intent, method))


def pay(world: World, intent: Obj, charge: Obj) -> None:
    """The network said yes: captured at once, or held when capture is manual."""
    charge.update(
        status="succeeded",
        paid=True,
        outcome=shapes.outcome("authorized", "Payment complete."),
        receipt_url=f"{world.base}/receipts/{charge['id']}",
    )
    intent.update(next_action=None, processing=None, last_payment_error=None)
    if intent["capture_method"] == "manual":
        intent.update(status="requires_capture", amount_capturable=intent["amount"])
        world.emit("charge.succeeded", charge)
        world.emit("payment_intent.amount_capturable_updated", intent)
        return
    _settle(world, intent, charge, charge["amount"])
    world.emit("charge.succeeded", charge)
    _succeed(world, intent)


def capture(world: World, intent: Obj, amount: int) -> None:
    charge = world.get("charge", intent["latest_charge"])
    _settle(world, intent, charge, amount)
    intent["amount_capturable"] = 0
    world.emit("charge.captured", charge)
    _succeed(world, intent)


def release(world: World, intent: Obj) -> None:
    """Give back what a cancelled intent held but never captured."""
    charge_id = intent["latest_charge"]
    charge = world.get("charge", charge_id) if charge_id else None
    if charge is not None and charge["paid"] and not charge["captured"]:
        charge.update(refunded=True, amount_refunded=charge["amount"])
        world.emit("charge.refunded", charge)


def decline(world: World, intent: Obj, method: Obj, card: Card) -> ApiError:
    """Record the refusal and hand back the error to raise."""
    charge = _open_charge(world, intent, method)
    _fail_charge(world, charge, card)
    _back_to_choosing(world, intent, method, card, charge["id"])
    return customers.declined(card, intent, charge["id"])


def answer_challenge(world: World, intent: Obj, approved: bool) -> None:
    """The person came back from 3-D Secure."""
    _require_status(intent, "requires_action")
    method = world.get("payment_method", intent["payment_method"])
    if approved:
        return pay(world, intent, _open_charge(world, intent, method))
    intent["next_action"] = None
    return _back_to_choosing(world, intent, method, _AUTHENTICATION_FAILED, None)


def finish_processing(world: World, intent: Obj, succeeded: bool) -> None:
    """A payment left in processing is decided."""
    _require_status(intent, "processing")
    charge = world.get("charge", intent["latest_charge"])
    if succeeded:
        return pay(world, intent, charge)
    method = world.get("payment_method", intent["payment_method"])
    card = Card(decline_code="generic_decline")
    _fail_charge(world, charge, card)
    return _back_to_choosing(world, intent, method, card, charge["id"])


def _require_status(intent: Obj, status: str) -> None:
    if intent["status"] != status:
        message = f"This PaymentIntent is {intent['status']}, not {status}."
        raise refused(message, code="payment_intent_unexpected_state")


def _challenge(world: World, intent: Obj, return_url: str | None) -> None:
    page = f"{world.base}/pay/{intent['id']}/authenticate?client_secret={intent['client_secret']}"
    intent.update(
        status="requires_action",
        next_action={
            "redirect_to_url": {"return_url": return_url, "url": page},
            "type": "redirect_to_url",
        },
    )
    world.emit("payment_intent.requires_action", intent)


def _process(world: World, intent: Obj, method: Obj) -> None:
    charge = _open_charge(world, intent, method)
    intent.update(status="processing", processing=None)
    world.private[f"processing:{intent['id']}"] = world.now()
    world.emit("charge.pending", charge)
    world.emit("payment_intent.processing", intent)


def _open_charge(world: World, intent: Obj, method: Obj) -> Obj:
    charge = world.add(shapes.charge(world, intent, method))
    intent["latest_charge"] = charge["id"]
    return charge


def _settle(world: World, intent: Obj, charge: Obj, amount: int) -> None:
    charge.update(captured=True, amount_captured=amount, balance_transaction=world.new_id("txn"))
    intent.update(status="succeeded", amount_received=amount)


def _succeed(world: World, intent: Obj) -> None:
    _keep_method(world, intent)
    world.emit("payment_intent.succeeded", intent)
    paid_invoices.intent_succeeded(world, intent)


def _keep_method(world: World, intent: Obj) -> None:
    """`setup_future_usage` attaches the method to the customer once it has paid."""
    if intent["setup_future_usage"] and intent["customer"]:
        method = world.get("payment_method", intent["payment_method"])
        method["customer"] = intent["customer"]


def _fail_charge(world: World, charge: Obj, card: Card) -> None:
    charge.update(
        status="failed",
        failure_code=card.code,
        failure_message=card.message,
        outcome=shapes.outcome("issuer_declined", "The bank declined.", card.decline_code),
    )
    world.emit("charge.failed", charge)


def _back_to_choosing(
    world: World, intent: Obj, method: Obj, card: Card, charge_id: str | None
) -> None:
    error: Obj = {
        "code": card.code,
        "doc_url": f"https://stripe.com/docs/error-codes/{card.code.replace('_', '-')}",
        "message": card.message,
        "payment_method": dict(method),
        "type": "card_error",
    }
    if card.decline_code:
        error["decline_code"] = card.decline_code
    if charge_id:
        error["charge"] = charge_id
    intent.update(
        status="requires_payment_method",
        payment_method=None,
        processing=None,
        last_payment_error=error,
    )
    world.emit("payment_intent.payment_failed", intent)
    paid_invoices.intent_failed(world, intent)
