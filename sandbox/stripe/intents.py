"""Payment intents as the API sees them: create, read, update, confirm, capture, cancel."""

from sandbox.stripe import attempts, customers, params, shapes
from sandbox.stripe.errors import ApiError, invalid, refused
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

MINIMUM = {"jpy": 50, "usd": 50, "eur": 50}
"""Smallest charge in the currency's smallest unit (https://docs.stripe.com/currencies)."""

_MAXIMUM = 99_999_999
_EDITABLE = ("amount", "currency", "customer", "description", "metadata", "receipt_email")
_CREATE = (
    *_EDITABLE,
    "automatic_payment_methods",
    "payment_method_types",
    "capture_method",
    "confirm",
    "payment_method",
    "off_session",
    "return_url",
    "setup_future_usage",
    "statement_descriptor_suffix",
)
_OPEN = ("requires_payment_method", "requires_confirmation", "requires_action")


def create(world: World, given: Params) -> Obj:
    params.only(given, _CREATE)
    amount, currency = _amount_and_currency(given)
    intent = shapes.intent(world, amount, currency, **_settings(world, given))
    method_id = params.text(given, "payment_method")
    method = customers.resolve(world, method_id) if method_id else None
    if method is not None:
        intent.update(payment_method=method["id"], status="requires_confirmation")
    world.add(intent)
    world.emit("payment_intent.created", intent)
    if params.boolean(given, "confirm"):
        return _confirm(world, intent, given)
    return intent


def retrieve(world: World, given: Params, intent_id: str) -> Obj:
    return world.get("payment_intent", intent_id)


def update(world: World, given: Params, intent_id: str) -> Obj:
    """The amount may change while nothing is under way. Stripe sends no event for it."""
    params.only(given, (*_EDITABLE, "capture_method", "payment_method", "setup_future_usage"))
    intent = world.get("payment_intent", intent_id)
    if "amount" in given or "currency" in given:
        _require(intent, _OPEN, "update")
        amount, currency = _amount_and_currency({**_as_text(intent), **given})
        intent.update(amount=amount, currency=currency)
    for name in ("capture_method", "description", "receipt_email", "setup_future_usage"):
        if name in given:
            intent[name] = params.text(given, name)
    intent["metadata"] = params.metadata(given, intent["metadata"])
    if method_id := params.text(given, "payment_method"):
        _require(intent, _OPEN, "update")
        method = customers.resolve(world, method_id)
        intent.update(payment_method=method["id"], status="requires_confirmation")
    return intent


def confirm(world: World, given: Params, intent_id: str) -> Obj:
    params.only(given, ("payment_method", "return_url", "off_session", "setup_future_usage"))
    return _confirm(world, world.get("payment_intent", intent_id), given)


def capture(world: World, given: Params, intent_id: str) -> Obj:
    params.only(given, ("amount_to_capture",))
    intent = world.get("payment_intent", intent_id)
    _require(intent, ("requires_capture",), "capture")
    amount = params.positive(given, "amount_to_capture") or intent["amount_capturable"]
    if amount > intent["amount_capturable"]:
        raise invalid("You cannot capture more than was authorized.", param="amount_to_capture")
    attempts.capture(world, intent, amount)
    return intent


def cancel(world: World, given: Params, intent_id: str) -> Obj:
    params.only(given, ("cancellation_reason",))
    intent = world.get("payment_intent", intent_id)
    _require(intent, (*_OPEN, "requires_capture"), "cancel")
    return withdraw(world, intent, params.text(given, "cancellation_reason"))


def withdraw(world: World, intent: Obj, reason: str | None) -> Obj:
    intent.update(
        status="canceled",
        canceled_at=world.now(),
        cancellation_reason=reason,
        amount_capturable=0,
        next_action=None,
    )
    attempts.release(world, intent)
    world.emit("payment_intent.canceled", intent)
    return intent


def _confirm(world: World, intent: Obj, given: Params) -> Obj:
    _require(intent, _OPEN, "confirm")
    method_id = params.text(given, "payment_method") or intent["payment_method"]
    if method_id is None:
        message = (
            "You cannot confirm this PaymentIntent because it's missing a payment method. "
            "You can either update the PaymentIntent with a payment method and then confirm it "
            "again, or confirm it again directly with a payment method."
        )
        raise refused(message, code="payment_intent_unexpected_state")
    method = customers.resolve(world, method_id)
    attempts.attempt(
        world,
        intent,
        method,
        return_url=params.text(given, "return_url"),
        off_session=bool(params.boolean(given, "off_session")),
    )
    return intent


def _require(intent: Obj, allowed: tuple[str, ...], verb: str) -> None:
    if intent["status"] not in allowed:
        raise unexpected_state(intent, verb)


def unexpected_state(intent: Obj, verb: str) -> ApiError:
    """Stripe sends the intent along, so that the caller sees what it is now."""
    message = f"You cannot {verb} this PaymentIntent because it has a status of {intent['status']}."
    return refused(message, code="payment_intent_unexpected_state", payment_intent=dict(intent))


def _amount_and_currency(given: Params) -> tuple[int, str]:
    params.need_text(given, "amount")
    amount = params.positive(given, "amount") or 0
    currency = params.need_text(given, "currency").lower()
    minimum = MINIMUM.get(currency)
    if minimum is None:
        raise invalid(f"Invalid currency: {currency}", param="currency")
    if amount < minimum:
        message = f"Amount must be at least {minimum} {currency}"
        raise invalid(message, code="amount_too_small", param="amount")
    if amount > _MAXIMUM:
        message = f"Amount must be no more than {_MAXIMUM} {currency}"
        raise invalid(message, code="amount_too_large", param="amount")
    return amount, currency


def _as_text(intent: Obj) -> Params:
    return {"amount": str(intent["amount"]), "currency": intent["currency"]}


def _settings(world: World, given: Params) -> Obj:
    settings: Obj = {
        name: params.text(given, name)
        for name in ("description", "receipt_email", "statement_descriptor_suffix")
    }
    settings["metadata"] = params.metadata(given)
    settings["setup_future_usage"] = params.choice(
        given, "setup_future_usage", ("on_session", "off_session")
    )
    capture = params.choice(given, "capture_method", ("automatic", "automatic_async", "manual"))
    settings["capture_method"] = capture or "automatic_async"
    if customer_id := params.text(given, "customer"):
        settings["customer"] = world.get("customer", customer_id, "customer")["id"]
    if types := params.rows(given, "payment_method_types"):
        settings["payment_method_types"] = types
    else:
        settings["automatic_payment_methods"] = {"allow_redirects": "always", "enabled": True}
    return settings
