"""Fresh objects of the billing side, in the shape of the pinned API version.

Periods live on subscription items, an invoice names its subscription under `parent`, and its
payments are a list of their own: none of these is top-level any more.
"""

from typing import Any

from sandbox.stripe.world import Obj, World

_SELF: Obj = {"type": "self"}


def product(world: World, name: str, **given: Any) -> Obj:
    return {
        "id": world.new_id("prod", 14),
        "object": "product",
        "active": True,
        "created": world.now(),
        "default_price": None,
        "description": None,
        "images": [],
        "livemode": False,
        "marketing_features": [],
        "metadata": {},
        "name": name,
        "package_dimensions": None,
        "shippable": None,
        "statement_descriptor": None,
        "tax_code": None,
        "type": "service",
        "unit_label": None,
        "updated": world.now(),
        "url": None,
        **given,
    }


def price(world: World, product_id: str, amount: int, currency: str, **given: Any) -> Obj:
    return {
        "id": world.new_id("price"),
        "object": "price",
        "active": True,
        "billing_scheme": "per_unit",
        "created": world.now(),
        "currency": currency,
        "custom_unit_amount": None,
        "livemode": False,
        "lookup_key": None,
        "metadata": {},
        "nickname": None,
        "product": product_id,
        "recurring": None,
        "tax_behavior": "unspecified",
        "tiers_mode": None,
        "transform_quantity": None,
        "type": "recurring" if given.get("recurring") else "one_time",
        "unit_amount": amount,
        "unit_amount_decimal": str(amount),
        **given,
    }


def plan(price: Obj) -> Obj:
    """The old view of a recurring price, which items still carry."""
    return {
        "id": price["id"],
        "object": "plan",
        "active": price["active"],
        "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"],
        "billing_scheme": "per_unit",
        "created": price["created"],
        "currency": price["currency"],
        "interval": price["recurring"]["interval"],
        "interval_count": price["recurring"]["interval_count"],
        "livemode": False,
        "metadata": {},
        "meter": None,
        "nickname": None,
        "product": price["product"],
        "tiers_mode": None,
        "transform_usage": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }


def item(world: World, subscription_id: str, price: Obj, quantity: int, start: int) -> Obj:
    """`current_period_end` equals the start until the first period is laid."""
    return {
        "id": world.new_id("si", 14),
        "object": "subscription_item",
        "billing_thresholds": None,
        "created": world.now(),
        "current_period_end": start,
        "current_period_start": start,
        "discounts": [],
        "metadata": {},
        "plan": plan(price),
        "price": price,
        "quantity": quantity,
        "subscription": subscription_id,
        "tax_rates": [],
    }


def subscription(world: World, customer_id: str, currency: str, **given: Any) -> Obj:
    subscription_id = world.new_id("sub")
    now = world.now()
    return {
        "id": subscription_id,
        "object": "subscription",
        "application": None,
        "application_fee_percent": None,
        "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None},
        "billing_cycle_anchor": now,
        "billing_cycle_anchor_config": None,
        "billing_mode": {
            "flexible": {"proration_discounts": "included"},
            "type": "flexible",
            "updated_at": now,
        },
        "billing_schedules": [],
        "billing_thresholds": None,
        "cancel_at": None,
        "cancel_at_period_end": False,
        "canceled_at": None,
        "cancellation_details": {
            "comment": None,
            "feedback": None,
            "feedback_option": None,
            "reason": None,
        },
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer_id,
        "customer_account": None,
        "days_until_due": None,
        "default_payment_method": None,
        "default_source": None,
        "default_tax_rates": [],
        "description": None,
        "discounts": [],
        "ended_at": None,
        "invoice_settings": {"account_tax_ids": None, "issuer": dict(_SELF)},
        "items": listing(f"/v1/subscription_items?subscription={subscription_id}", []),
        "latest_invoice": None,
        "livemode": False,
        "metadata": {},
        "next_pending_invoice_item_invoice": None,
        "on_behalf_of": None,
        "pause_collection": None,
        "payment_settings": {
            "payment_method_options": None,
            "payment_method_types": None,
            "save_default_payment_method": "off",
        },
        "pending_invoice_item_interval": None,
        "pending_setup_intent": None,
        "pending_update": None,
        "schedule": None,
        "start_date": now,
        "status": "incomplete",
        "test_clock": None,
        "transfer_data": None,
        "trial_end": None,
        "trial_settings": {
            "end_behavior": {
                "billing_cycle_anchor": None,
                "missing_payment_method": "create_invoice",
            }
        },
        "trial_start": None,
        **given,
    }


def listing(url: str, data: list[Obj]) -> Obj:
    return {"object": "list", "data": data, "has_more": False, "url": url}
