"""Fresh invoices, their lines and payments, in the shape of the pinned API version."""

from typing import Any

from sandbox.stripe.shapes_billing import listing
from sandbox.stripe.world import Obj, World


def invoice(world: World, subscription: Obj, customer: Obj, reason: str) -> Obj:
    """A finalized, open invoice over the subscription's items; nothing paid yet."""
    invoice_id = world.new_id("in")
    lines = [_line(world, invoice_id, subscription, item) for item in subscription["items"]["data"]]
    total = sum(line["amount"] for line in lines)
    number = customer["next_invoice_sequence"]
    customer["next_invoice_sequence"] = number + 1
    return {
        "id": invoice_id,
        "object": "invoice",
        **_money(total),
        **_blank(),
        "automatic_tax": {
            "disabled_reason": None,
            "enabled": False,
            "liability": None,
            "provider": None,
            "status": None,
        },
        "billing_reason": reason,
        "created": world.now(),
        "currency": subscription["currency"],
        "customer": customer["id"],
        "customer_email": customer["email"],
        "customer_name": customer["name"],
        "customer_phone": customer["phone"],
        "effective_at": world.now(),
        "lines": listing(f"/v1/invoices/{invoice_id}/lines", lines),
        "number": f"{customer['invoice_prefix']}-{number:04}",
        "parent": _parent(subscription),
        # For a subscription these two name the span before; the lines name the span paid for.
        "period_end": world.now(),
        "period_start": world.now(),
        "status_transitions": {
            "finalized_at": world.now(),
            "marked_uncollectible_at": None,
            "paid_at": None,
            "voided_at": None,
        },
    }


def _money(total: int) -> Obj:
    return {
        "amount_due": total,
        "amount_overpaid": 0,
        "amount_paid": 0,
        "amount_remaining": total,
        "amount_shipping": 0,
        "ending_balance": 0,
        "post_payment_credit_notes_amount": 0,
        "pre_payment_credit_notes_amount": 0,
        "starting_balance": 0,
        "subtotal": total,
        "subtotal_excluding_tax": total,
        "total": total,
        "total_discount_amounts": [],
        "total_excluding_tax": total,
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
    }


def _blank() -> Obj:
    empty: Obj = dict.fromkeys(
        (
            "account_tax_ids",
            "application",
            "automatically_finalizes_at",
            "custom_fields",
            "customer_account",
            "customer_address",
            "customer_shipping",
            "default_payment_method",
            "default_source",
            "description",
            "due_date",
            "footer",
            "from_invoice",
            "hosted_invoice_url",
            "invoice_pdf",
            "last_finalization_error",
            "latest_revision",
            "next_payment_attempt",
            "on_behalf_of",
            "receipt_number",
            "rendering",
            "shipping_cost",
            "shipping_details",
            "statement_descriptor",
            "test_clock",
            "webhooks_delivered_at",
        )
    )
    return {
        **empty,
        "account_country": "JP",
        "account_name": "Monban sandbox",
        "attempt_count": 0,
        "attempted": False,
        "auto_advance": True,
        "collection_method": "charge_automatically",
        "customer_tax_exempt": "none",
        "customer_tax_ids": [],
        "default_tax_rates": [],
        "discounts": [],
        "issuer": {"type": "self"},
        "livemode": False,
        "metadata": {},
        "payment_settings": {
            "default_mandate": None,
            "payment_method_options": None,
            "payment_method_types": None,
        },
        "status": "open",
    }


def _parent(subscription: Obj) -> Obj:
    return {
        "quote_details": None,
        "subscription_details": {
            "metadata": dict(subscription["metadata"]),
            "subscription": subscription["id"],
        },
        "type": "subscription_details",
    }


def _line(world: World, invoice_id: str, subscription: Obj, item: Obj) -> Obj:
    trial = subscription["status"] == "trialing" and subscription["trial_end"] > world.now()
    amount = 0 if trial else item["price"]["unit_amount"] * item["quantity"]
    return {
        "id": world.new_id("il"),
        "object": "line_item",
        "amount": amount,
        "currency": item["price"]["currency"],
        "description": f"{item['quantity']} × {item['price']['nickname'] or item['price']['id']}",
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": invoice_id,
        "livemode": False,
        "metadata": dict(subscription["metadata"]),
        "parent": {
            "invoice_item_details": None,
            "subscription_item_details": {
                "invoice_item": None,
                "proration": False,
                "proration_details": {"credited_items": None},
                "subscription": subscription["id"],
                "subscription_item": item["id"],
            },
            "type": "subscription_item_details",
        },
        "period": {"end": item["current_period_end"], "start": item["current_period_start"]},
        "pretax_credit_amounts": [],
        "pricing": {
            "price_details": {"price": item["price"]["id"], "product": item["price"]["product"]},
            "type": "price_details",
            "unit_amount_decimal": item["price"]["unit_amount_decimal"],
        },
        "quantity": item["quantity"],
        "subscription": subscription["id"],
        "subtotal": amount,
        "taxes": [],
    }


def invoice_payment(world: World, invoice: Obj, intent_id: str) -> Obj:
    payment: dict[str, Any] = {"payment_intent": intent_id, "type": "payment_intent"}
    return {
        "id": world.new_id("inpay"),
        "object": "invoice_payment",
        "amount_paid": None,
        "amount_requested": invoice["amount_due"],
        "created": world.now(),
        "currency": invoice["currency"],
        "invoice": invoice["id"],
        "is_default": True,
        "livemode": False,
        "payment": payment,
        "status": "open",
        "status_transitions": {"canceled_at": None, "paid_at": None},
    }
