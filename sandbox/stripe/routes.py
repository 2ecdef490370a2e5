"""Method and path → what is done. Everything the portal uses of Stripe's v1 API, no more."""

import re
from collections.abc import Callable
from typing import Any

from sandbox.stripe import (
    billing,
    catalog,
    customers,
    disputes,
    intents,
    lists,
    refunds,
    subscriptions,
)
from sandbox.stripe.errors import ApiError, missing
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

Endpoint = Callable[..., Obj]
"""(world, params, *ids from the path) → the object or list to answer with."""


def _field(name: str) -> Callable[[Obj], Any]:
    return lambda obj: obj[name]


def _payment(invoice_payment: Obj) -> Any:
    return invoice_payment["payment"]["payment_intent"]


def _of_subscription(invoice: Obj) -> Any:
    return invoice["parent"]["subscription_details"]["subscription"]


def _list(kind: str, url: str, **filters: Callable[[Obj], Any]) -> Endpoint:
    def listed(world: World, given: Params) -> Obj:
        return lists.page(world, given, kind, url, filters)

    return listed


def _list_subscriptions(world: World, given: Params) -> Obj:
    """Without a status, ended ones are left out; `all` brings them back."""
    filters = {"customer": _field("customer")}
    status = given.pop("status", None)
    if status == "all":
        return lists.page(world, given, "subscription", "/v1/subscriptions", filters)
    if status:
        given["status"] = status
        filters["status"] = _field("status")
    else:
        given["live"] = "yes"
        filters["live"] = lambda sub: "no" if sub["status"] == "canceled" else "yes"
    return lists.page(world, given, "subscription", "/v1/subscriptions", filters)


def _list_payments_of_invoices(world: World, given: Params) -> Obj:
    payment = given.pop("payment", {})
    if payment.get("payment_intent"):
        given["payment_intent"] = payment["payment_intent"]
    url = "/v1/invoice_payments"
    filters = {"invoice": _field("invoice"), "payment_intent": _payment, "status": _field("status")}
    return lists.page(world, given, "invoice_payment", url, filters)


def _retrieve_event(world: World, given: Params, event_id: str) -> Obj:
    event = world.events.get(event_id)
    if event is None:
        raise missing("event", event_id)
    return event


_INTENT_LIST = _list("payment_intent", "/v1/payment_intents", customer=_field("customer"))
_CHARGE_LIST = _list(
    "charge",
    "/v1/charges",
    customer=_field("customer"),
    payment_intent=_field("payment_intent"),
)
_REFUND_LIST = _list(
    "refund", "/v1/refunds", charge=_field("charge"), payment_intent=_field("payment_intent")
)
_DISPUTE_LIST = _list(
    "dispute", "/v1/disputes", charge=_field("charge"), payment_intent=_field("payment_intent")
)
_METHOD_LIST = _list(
    "payment_method", "/v1/payment_methods", customer=_field("customer"), type=_field("type")
)
_INVOICE_LIST = _list(
    "invoice",
    "/v1/invoices",
    customer=_field("customer"),
    subscription=_of_subscription,
    status=_field("status"),
)

_TABLE: tuple[tuple[str, str, Endpoint], ...] = (
    ("POST", "customers", customers.create),
    ("GET", "customers", _list("customer", "/v1/customers", email=_field("email"))),
    ("GET", "customers/:id", customers.retrieve),
    ("POST", "customers/:id", customers.update),
    ("POST", "payment_methods", customers.create_method),
    ("GET", "payment_methods", _METHOD_LIST),
    ("GET", "payment_methods/:id", customers.retrieve_method),
    ("POST", "payment_methods/:id/attach", customers.attach),
    ("POST", "payment_methods/:id/detach", customers.detach),
    ("POST", "payment_intents", intents.create),
    ("GET", "payment_intents", _INTENT_LIST),
    ("GET", "payment_intents/:id", intents.retrieve),
    ("POST", "payment_intents/:id", intents.update),
    ("POST", "payment_intents/:id/confirm", intents.confirm),
    ("POST", "payment_intents/:id/capture", intents.capture),
    ("POST", "payment_intents/:id/cancel", intents.cancel),
    ("GET", "charges", _CHARGE_LIST),
    ("GET", "charges/:id", refunds.retrieve_charge),
    ("POST", "refunds", refunds.create),
    ("GET", "refunds", _REFUND_LIST),
    ("GET", "refunds/:id", refunds.retrieve),
    ("POST", "refunds/:id", refunds.update),
    ("GET", "disputes", _DISPUTE_LIST),
    ("GET", "disputes/:id", disputes.retrieve),
    ("POST", "products", catalog.create_product),
    ("GET", "products/:id", catalog.retrieve_product),
    ("POST", "prices", catalog.create_price),
    ("GET", "prices/:id", catalog.retrieve_price),
    ("POST", "subscriptions", subscriptions.create),
    ("GET", "subscriptions", _list_subscriptions),
    ("GET", "subscriptions/:id", subscriptions.retrieve),
    ("POST", "subscriptions/:id", subscriptions.update),
    ("DELETE", "subscriptions/:id", subscriptions.cancel),
    ("GET", "invoices", _INVOICE_LIST),
    ("GET", "invoices/:id", billing.retrieve),
    ("POST", "invoices/:id/pay", billing.pay_now),
    ("POST", "invoices/:id/void", billing.void),
    ("GET", "invoice_payments", _list_payments_of_invoices),
    ("GET", "events", lists.events),
    ("GET", "events/:id", _retrieve_event),
)

_ROUTES = [
    (method, re.compile("/v1/" + path.replace(":id", r"([A-Za-z0-9_.\-]+)")), endpoint)
    for method, path, endpoint in _TABLE
]


def find(method: str, path: str) -> tuple[Endpoint, tuple[str, ...]]:
    for known, pattern, endpoint in _ROUTES:
        match = pattern.fullmatch(path)
        if known == method and match:
            return endpoint, match.groups()
    raise unknown_url(method, path)


def unknown_url(method: str, path: str) -> ApiError:
    message = f"Unrecognized request URL ({method}: {path})."
    return ApiError(404, "invalid_request_error", message)
