"""A fresh dispute, in the shape of the pinned API version."""

from sandbox.stripe.world import Obj, World

_DAY = 86_400

_EVIDENCE = (
    "access_activity_log",
    "billing_address",
    "cancellation_policy",
    "cancellation_policy_disclosure",
    "cancellation_rebuttal",
    "customer_communication",
    "customer_email_address",
    "customer_name",
    "customer_purchase_ip",
    "customer_signature",
    "duplicate_charge_documentation",
    "duplicate_charge_explanation",
    "duplicate_charge_id",
    "product_description",
    "receipt",
    "refund_policy",
    "refund_policy_disclosure",
    "refund_refusal_explanation",
    "service_date",
    "service_documentation",
    "shipping_address",
    "shipping_carrier",
    "shipping_date",
    "shipping_documentation",
    "shipping_tracking_number",
    "uncategorized_file",
    "uncategorized_text",
)


def dispute(world: World, charge: Obj, amount: int, reason: str) -> Obj:
    return {
        "id": world.new_id("du"),
        "object": "dispute",
        "amount": amount,
        "balance_transactions": [],
        "charge": charge["id"],
        "created": world.now(),
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": {**dict.fromkeys(_EVIDENCE), "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": world.now() + 10 * _DAY,
            "enhanced_eligibility": {},
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
            "submission_method": "not_submitted",
        },
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "network_reason_code": None,
        "payment_intent": charge["payment_intent"],
        "payment_method_details": {
            "card": {
                "brand": "visa",
                "case_type": "chargeback",
                "network": "visa",
                "network_reason_code": "10.4",
            },
            "type": "card",
        },
        "reason": reason,
        "status": "needs_response",
    }
