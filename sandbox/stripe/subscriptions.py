"""Subscriptions as the API sees them."""

from sandbox.stripe import billing, catalog, customers, params, periods, shapes_billing
from sandbox.stripe.errors import invalid, refused
from sandbox.stripe.params import Params
from sandbox.stripe.world import Obj, World

_BEHAVIOURS = ("default_incomplete", "allow_incomplete")
_PRORATIONS = ("create_prorations", "none", "always_invoice")
_SETTINGS = (
    "metadata",
    "description",
    "default_payment_method",
    "cancel_at_period_end",
    "payment_settings",
    "payment_behavior",
    "proration_behavior",
    "items",
    "off_session",
)
_ENDED = ("canceled", "incomplete_expired")


def create(world: World, given: Params) -> Obj:
    """Incomplete until its first invoice is paid, unless a method on file pays it at once."""
    params.only(given, (*_SETTINGS, "customer", "collection_method", "trial_period_days"))
    customer = world.get("customer", params.need_text(given, "customer"), "customer")
    behaviour = params.choice(given, "payment_behavior", _BEHAVIOURS) or "allow_incomplete"
    wanted = _wanted_items(world, given)
    subscription = shapes_billing.subscription(
        world, customer["id"], wanted[0][0]["currency"], metadata=params.metadata(given)
    )
    _apply_settings(world, subscription, given)
    for price, quantity in wanted:
        _add_item(world, subscription, price, quantity)
    if days := params.positive(given, "trial_period_days"):
        _begin_trial(world, subscription, days)
    world.add(subscription)
    customer["currency"] = subscription["currency"]
    invoice = billing.issue(world, subscription, "subscription_create")
    world.emit("customer.subscription.created", subscription)
    if behaviour != "default_incomplete":
        billing.charge(world, invoice)
    return subscription


def retrieve(world: World, given: Params, subscription_id: str) -> Obj:
    return world.get("subscription", subscription_id)


def update(world: World, given: Params, subscription_id: str) -> Obj:
    params.only(given, (*_SETTINGS, "pause_collection", "cancellation_details", "cancel_at"))
    subscription = _live(world, subscription_id)
    params.choice(given, "proration_behavior", _PRORATIONS)
    with world.changing(subscription, "customer.subscription.updated"):
        subscription["metadata"] = params.metadata(given, subscription["metadata"])
        _apply_settings(world, subscription, given)
        _apply_cancel_at(world, subscription, given)
        _apply_pause(subscription, given)
        for row in params.rows(given, "items"):
            _switch_item(world, subscription, row)
    return subscription


def cancel(world: World, given: Params, subscription_id: str) -> Obj:
    """DELETE: ends now. No proration is computed here."""
    params.only(given, ("cancellation_details", "invoice_now", "prorate"))
    subscription = _live(world, subscription_id)
    end(world, subscription, "cancellation_requested")
    return subscription


def end(world: World, subscription: Obj, reason: str) -> None:
    subscription.update(
        status="canceled",
        canceled_at=subscription["canceled_at"] or world.now(),
        ended_at=world.now(),
    )
    subscription["cancellation_details"]["reason"] = reason
    world.emit("customer.subscription.deleted", subscription)


def period_end(subscription: Obj) -> int:
    """The earliest of its items' periods."""
    return int(min(item["current_period_end"] for item in subscription["items"]["data"]))


def _live(world: World, subscription_id: str) -> Obj:
    subscription = world.get("subscription", subscription_id)
    if subscription["status"] in _ENDED:
        message = f"No such subscription: {subscription_id}"
        raise refused(message, code="resource_missing", param="id")
    return subscription


def _wanted_items(world: World, given: Params) -> list[tuple[Obj, int]]:
    rows = params.rows(given, "items")
    if not rows:
        raise invalid("Missing required param: items.", code="parameter_missing", param="items")
    return [(_recurring_price(world, row), params.positive(row, "quantity") or 1) for row in rows]


def _recurring_price(world: World, row: Params) -> Obj:
    fresh = params.table(row, "price_data")
    if fresh:
        return catalog.create_price(world, fresh)
    price = world.get("price", params.need_text(row, "price"), "items[0][price]")
    if price["recurring"] is None:
        message = "The price specified is set to `type=one_time`; a recurring one is needed."
        raise invalid(message, param="items[0][price]")
    return price


def _add_item(world: World, subscription: Obj, price: Obj, quantity: int) -> None:
    start = world.now()
    item = shapes_billing.item(world, subscription["id"], dict(price), quantity, start)
    item["current_period_end"] = periods.later(start, price, start)
    subscription["items"]["data"].append(item)


def _apply_settings(world: World, subscription: Obj, given: Params) -> None:
    if "description" in given:
        subscription["description"] = params.text(given, "description")
    if method_id := params.text(given, "default_payment_method"):
        method = customers.resolve(world, method_id)
        subscription["default_payment_method"] = method["id"]
    saved = params.table(given, "payment_settings").get("save_default_payment_method")
    if saved:
        subscription["payment_settings"]["save_default_payment_method"] = saved
    _apply_end(world, subscription, params.boolean(given, "cancel_at_period_end"))


def _apply_end(world: World, subscription: Obj, at_period_end: bool | None) -> None:
    if at_period_end is None or at_period_end == subscription["cancel_at_period_end"]:
        return
    subscription.update(
        cancel_at_period_end=at_period_end,
        cancel_at=period_end(subscription) if at_period_end else None,
        canceled_at=world.now() if at_period_end else None,
    )
    reason = "cancellation_requested" if at_period_end else None
    subscription["cancellation_details"]["reason"] = reason


def _apply_cancel_at(world: World, subscription: Obj, given: Params) -> None:
    """An instant, or '' to clear it; `cancel_at_period_end` does not clear an instant."""
    if "cancel_at" not in given:
        return
    at = params.integer(given, "cancel_at")
    if at is not None and at <= world.now():
        raise invalid("Invalid timestamp: must be in the future.", param="cancel_at")
    if at is None and subscription["cancel_at_period_end"]:
        return
    subscription.update(
        cancel_at=at, cancel_at_period_end=False, canceled_at=world.now() if at else None
    )
    subscription["cancellation_details"]["reason"] = "cancellation_requested" if at else None


def _begin_trial(world: World, subscription: Obj, days: int) -> None:
    """Nothing is charged until it is over, and the period is the trial."""
    end = world.now() + days * 86_400
    subscription.update(status="trialing", trial_start=world.now(), trial_end=end)
    subscription["billing_cycle_anchor"] = end
    for item in subscription["items"]["data"]:
        item["current_period_end"] = end


def _apply_pause(subscription: Obj, given: Params) -> None:
    if "pause_collection" not in given:
        return
    pause = params.table(given, "pause_collection")
    behaviours = ("keep_as_draft", "mark_uncollectible", "void")
    behaviour = params.choice(pause, "behavior", behaviours)
    if pause and behaviour is None:
        message = "Missing required param: pause_collection[behavior]."
        raise invalid(message, code="parameter_missing", param="pause_collection[behavior]")
    resumes = params.integer(pause, "resumes_at")
    subscription["pause_collection"] = (
        {"behavior": behaviour, "resumes_at": resumes} if pause else None
    )


def _switch_item(world: World, subscription: Obj, row: Params) -> None:
    """Change an item's price or quantity; another interval starts a new period today."""
    item_id = params.text(row, "id")
    if item_id is None:
        price = _recurring_price(world, row)
        _add_item(world, subscription, price, params.positive(row, "quantity") or 1)
        return
    item = _item(subscription, item_id)
    if params.boolean(row, "deleted"):
        subscription["items"]["data"].remove(item)
        return
    if params.text(row, "price"):
        _reprice(world, item, _recurring_price(world, row))
    item["quantity"] = params.positive(row, "quantity") or item["quantity"]


def _item(subscription: Obj, item_id: str) -> Obj:
    items: list[Obj] = subscription["items"]["data"]
    for item in items:
        if item["id"] == item_id:
            return item
    message = f"No such subscription item: '{item_id}'"
    raise refused(message, code="resource_missing", param="items[0][id]")


def _reprice(world: World, item: Obj, price: Obj) -> None:
    before = item["price"]["recurring"]
    item.update(price=dict(price), plan=shapes_billing.plan(price))
    if price["recurring"]["interval"] != before["interval"]:
        now = world.now()
        end = periods.later(now, price, now)
        item.update(current_period_start=now, current_period_end=end)
