"""`expand`: an id becomes its object, and what is only shown on request is shown."""

import copy
from typing import Any

from sandbox.stripe import paid_invoices, params
from sandbox.stripe.errors import ApiError, refused
from sandbox.stripe.params import Params
from sandbox.stripe.shapes_billing import listing
from sandbox.stripe.world import Obj, World


def render(world: World, obj: Obj, given: Params) -> Obj:
    """A copy of `obj` for the wire, with what `expand` asks for."""
    shown = copy.deepcopy(obj)
    for path in params.rows(given, "expand"):
        _expand(world, shown, str(path).split("."), str(path))
    return shown


def _expand(world: World, node: Any, path: list[str], whole: str) -> None:
    if isinstance(node, list):
        for child in node:
            _expand(world, child, path, whole)
        return
    name, rest = path[0], path[1:]
    if name not in node:
        node[name] = _on_request(world, node, name, whole)
    elif isinstance(node[name], str):
        node[name] = _object(world, node[name], whole)
    if rest and node[name] is not None:
        _expand(world, node[name], rest, whole)


def _object(world: World, object_id: str, whole: str) -> Obj:
    found = world.find(object_id)
    if found is None:
        raise _refuse(whole)
    return copy.deepcopy(found)


def _on_request(world: World, node: Obj, name: str, whole: str) -> Any:
    """Fields that Stripe leaves out unless asked for."""
    if (node.get("object"), name) == ("invoice", "payments"):
        payments = copy.deepcopy(paid_invoices.payments_of(world, node))
        return listing(f"/v1/invoice_payments?invoice={node['id']}", payments)
    if (node.get("object"), name) == ("invoice", "confirmation_secret"):
        return _confirmation_secret(world, node)
    if (node.get("object"), name) == ("charge", "refunds"):
        mine = [r for r in world.newest_first("refund") if r["charge"] == node["id"]]
        return listing(f"/v1/charges/{node['id']}/refunds", copy.deepcopy(mine))
    raise _refuse(whole)


def _confirmation_secret(world: World, invoice: Obj) -> Obj | None:
    intent = paid_invoices.intent_of(world, invoice)
    if intent is None or intent["status"] in ("succeeded", "canceled"):
        return None
    return {"client_secret": intent["client_secret"], "type": "payment_intent"}


def _refuse(path: str) -> ApiError:
    return refused(f"This property cannot be expanded ({path}).", param="expand")
