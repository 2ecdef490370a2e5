"""Customers and the payment methods that they keep."""

from sandbox.stripe import cards, params, shapes
from sandbox.stripe.cards import Card
from sandbox.stripe.errors import ApiError, invalid, missing
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

_CUSTOMER = ("name", "email", "phone", "description", "metadata", "preferred_locales")
_METHOD = ("type", "card", "billing_details", "metadata")


def create(world: World, given: Params) -> Obj:
    params.only(given, (*_CUSTOMER, "payment_method", "invoice_settings"))
    customer = shapes.customer(world, **_customer_fields(given, {}))
    world.add(customer)
    if method_id := params.text(given, "payment_method"):
        _attach(world, resolve(world, method_id), customer)
    _set_default(world, customer, given)
    world.emit("customer.created", customer)
    return customer


def retrieve(world: World, given: Params, customer_id: str) -> Obj:
    return world.get("customer", customer_id)


def update(world: World, given: Params, customer_id: str) -> Obj:
    params.only(given, (*_CUSTOMER, "invoice_settings"))
    customer = world.get("customer", customer_id)
    with world.changing(customer, "customer.updated"):
        customer.update(_customer_fields(given, customer["metadata"]))
        _set_default(world, customer, given)
    return customer


def _customer_fields(given: Params, before: dict[str, str]) -> Obj:
    fields: Obj = {
        name: params.text(given, name)
        for name in ("name", "email", "phone", "description")
        if name in given
    }
    if "preferred_locales" in given:
        fields["preferred_locales"] = params.rows(given, "preferred_locales")
    return {**fields, "metadata": params.metadata(given, before)}


def _set_default(world: World, customer: Obj, given: Params) -> None:
    settings = params.table(given, "invoice_settings")
    if method_id := params.text(settings, "default_payment_method"):
        method = world.get("payment_method", method_id, "default_payment_method")
        if method["customer"] != customer["id"]:
            message = "The customer does not have a payment method with that ID."
            raise invalid(message, code="resource_missing", param="default_payment_method")
        customer["invoice_settings"]["default_payment_method"] = method_id


# --- payment methods


def create_method(world: World, given: Params) -> Obj:
    """From `card[number]` or `card[token]`; the expiry and CVC are taken as they come."""
    params.only(given, _METHOD)
    if params.need_text(given, "type") != "card":
        raise invalid("Only cards here.", param="type")
    card = params.table(given, "card")
    token = params.text(card, "token")
    method = keep(
        world, cards.by_token(token) if token else cards.by_number(params.need_text(card, "number"))
    )
    method["metadata"] = params.metadata(given)
    return method


def retrieve_method(world: World, given: Params, method_id: str) -> Obj:
    return world.get("payment_method", method_id)


def attach(world: World, given: Params, method_id: str) -> Obj:
    params.only(given, ("customer",))
    customer = world.get("customer", params.need_text(given, "customer"), "customer")
    method = resolve(world, method_id)
    _attach(world, method, customer)
    return method


def detach(world: World, given: Params, method_id: str) -> Obj:
    method = world.get("payment_method", method_id)
    method["customer"] = None
    world.emit("payment_method.detached", method)
    return method


def _attach(world: World, method: Obj, customer: Obj) -> None:
    card = card_of(world, method)
    if card.behaviour == "decline" and card.alias != "chargeCustomerFail":
        raise declined(card, None)
    method["customer"] = customer["id"]
    world.emit("payment_method.attached", method)


def keep(world: World, card: Card) -> Obj:
    """A new payment method that remembers which test card it is."""
    method = world.add(shapes.payment_method(world, card))
    world.private[method["id"]] = card.alias
    return method


def resolve(world: World, method_id: str) -> Obj:
    """A stored method, or a fresh one for a ready-made id such as `pm_card_visa`."""
    if method_id.startswith("pm_card_"):
        return keep(world, cards.by_alias(method_id.removeprefix("pm_card_")))
    return world.get("payment_method", method_id, "payment_method")


def card_of(world: World, method: Obj) -> Card:
    alias = world.private.get(method["id"])
    if alias is None:
        raise missing("PaymentMethod", method["id"], "payment_method")
    return cards.by_alias(alias)


def declined(card: Card, intent: Obj | None, charge_id: str | None = None) -> ApiError:
    """The 402 of a declined card; it carries the intent as it now is."""
    more: Obj = {"decline_code": card.decline_code} if card.decline_code else {}
    if intent is not None:
        more["payment_intent"] = dict(intent)
    if charge_id is not None:
        more["charge"] = charge_id
    return ApiError(402, "card_error", card.message, code=card.code, executed=True, **more)
