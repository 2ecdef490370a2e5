"""Fresh objects of the payment side, in the shape of the pinned API version.

Every field here is checked against the official SDK's own annotations by the tests.
"""

from typing import Any

from sandbox.stripe.cards import Card
from sandbox.stripe.world import Obj, World


def customer(world: World, **given: Any) -> Obj:
    return {
        "id": world.new_id("cus", 14),
        "object": "customer",
        "address": None,
        "balance": 0,
        "created": world.now(),
        "currency": None,
        "customer_account": None,
        "default_source": None,
        "delinquent": False,
        "description": None,
        "email": None,
        "invoice_prefix": world.new_id("", 8)[1:].upper(),
        "invoice_settings": {
            "custom_fields": None,
            "default_payment_method": None,
            "footer": None,
            "rendering_options": None,
        },
        "livemode": False,
        "metadata": {},
        "name": None,
        "next_invoice_sequence": 1,
        "phone": None,
        "preferred_locales": [],
        "shipping": None,
        "tax_exempt": "none",
        "test_clock": None,
        **given,
    }


def payment_method(world: World, card: Card) -> Obj:
    return {
        "id": world.new_id("pm"),
        "object": "payment_method",
        "allow_redisplay": "unspecified",
        "billing_details": _nobody(),
        "card": {
            "brand": "visa",
            "checks": {
                "address_line1_check": None,
                "address_postal_code_check": None,
                "cvc_check": "pass",
            },
            "country": "JP",
            "display_brand": "visa",
            "exp_month": 12,
            "exp_year": 2040,
            "fingerprint": "fp" + card.number[-14:],
            "funding": "credit",
            "generated_from": None,
            "last4": card.number[-4:],
            "networks": {"available": ["visa"], "preferred": None},
            "regulated_status": "unregulated",
            "three_d_secure_usage": {"supported": True},
            "wallet": None,
        },
        "created": world.now(),
        "customer": None,
        "customer_account": None,
        "livemode": False,
        "metadata": {},
        "type": "card",
    }


def _nobody() -> Obj:
    blank = dict.fromkeys(("city", "country", "line1", "line2", "postal_code", "state"))
    return {"address": blank, "email": None, "name": None, "phone": None, "tax_id": None}


def intent(world: World, amount: int, currency: str, **given: Any) -> Obj:
    intent_id = world.new_id("pi")
    return {
        "id": intent_id,
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": 0,
        "application": None,
        "application_fee_amount": None,
        "automatic_payment_methods": None,
        "canceled_at": None,
        "cancellation_reason": None,
        "capture_method": "automatic_async",
        "client_secret": f"{intent_id}_secret_{world.new_id('', 25)[1:]}",
        "confirmation_method": "automatic",
        "created": world.now(),
        "currency": currency,
        "customer": None,
        "customer_account": None,
        "description": None,
        "excluded_payment_method_types": None,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "metadata": {},
        "next_action": None,
        "on_behalf_of": None,
        "payment_method": None,
        "payment_method_configuration_details": None,
        "payment_method_options": _card_options(),
        "payment_method_types": ["card"],
        "payment_record": None,
        "processing": None,
        "receipt_email": None,
        "review": None,
        "setup_future_usage": None,
        "shipping": None,
        "source": None,
        "statement_descriptor": None,
        "statement_descriptor_suffix": None,
        "status": "requires_payment_method",
        "transfer_data": None,
        "transfer_group": None,
        **given,
    }


def _card_options() -> Obj:
    return {
        "card": {
            "installments": None,
            "mandate_options": None,
            "network": None,
            "request_extended_authorization": None,
            "request_incremental_authorization": None,
            "request_multicapture": None,
            "request_overcapture": None,
            "request_three_d_secure": "automatic",
            "setup_credential_usage": None,
            "setup_future_usage": None,
            "stored_credential_usage": None,
        }
    }


def charge(world: World, intent: Obj, method: Obj) -> Obj:
    """A charge not decided yet: pending, nothing captured."""
    return {
        "id": world.new_id("ch"),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": 0,
        "amount_refunded": 0,
        "application": None,
        "application_fee": None,
        "application_fee_amount": None,
        "balance_transaction": None,
        "billing_details": method["billing_details"],
        "calculated_statement_descriptor": "MONBAN SANDBOX",
        "captured": False,
        "created": world.now(),
        "currency": intent["currency"],
        "customer": intent["customer"],
        "description": intent["description"],
        "disputed": False,
        "failure_balance_transaction": None,
        "failure_code": None,
        "failure_message": None,
        "fraud_details": {},
        "livemode": False,
        "metadata": dict(intent["metadata"]),
        "on_behalf_of": None,
        "outcome": None,
        "paid": False,
        "payment_intent": intent["id"],
        "payment_method": method["id"],
        "payment_method_details": {"card": _charged_card(method["card"]), "type": "card"},
        "radar_options": {},
        "receipt_email": intent["receipt_email"],
        "receipt_number": None,
        "receipt_url": None,
        "refunded": False,
        "review": None,
        "shipping": None,
        "source": None,
        "source_transfer": None,
        "statement_descriptor": None,
        "statement_descriptor_suffix": None,
        "status": "pending",
        "transfer": None,
        "transfer_data": None,
        "transfer_group": None,
    }


def _charged_card(card: Obj) -> Obj:
    kept = ("brand", "checks", "country", "exp_month", "exp_year", "fingerprint", "funding")
    return {
        **{name: card[name] for name in kept},
        "authorization_code": None,
        "installments": None,
        "last4": card["last4"],
        "mandate": None,
        "network": "visa",
        "network_token": {"used": False},
        "network_transaction_id": None,
        "regulated_status": "unregulated",
        "setup_credential_usage": None,
        "stored_credential_usage": None,
        "three_d_secure": None,
        "wallet": None,
    }


def outcome(kind: str, seller_message: str, reason: str | None = None) -> Obj:
    """Why the network said yes or no; `kind` is authorized or issuer_declined."""
    return {
        "advice_code": None,
        "network_advice_code": None,
        "network_decline_code": None,
        "network_status": "approved_by_network" if kind == "authorized" else "declined_by_network",
        "reason": reason,
        "risk_level": "normal",
        "risk_score": 12,
        "rule": None,
        "seller_message": seller_message,
        "type": kind,
    }


def refund(world: World, charge: Obj, amount: int, status: str, **given: Any) -> Obj:
    return {
        "id": world.new_id("re"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": world.new_id("txn"),
        "charge": charge["id"],
        "created": world.now(),
        "currency": charge["currency"],
        "customer": charge["customer"],
        "customer_account": None,
        "destination_details": {
            "card": {
                "reference_status": "pending",
                "reference_type": "acquirer_reference_number",
                "type": "refund",
            },
            "type": "card",
        },
        "failure_balance_transaction": None,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "payment_method": charge["payment_method"],
        "pending_reason": "processing" if status == "pending" else None,
        "reason": None,
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": status,
        "transfer_reversal": None,
        **given,
    }
