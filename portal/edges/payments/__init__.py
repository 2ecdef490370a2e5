"""Cards, through Stripe."""

from portal.edges.payments.port import (
    Intent,
    IntentStatus,
    Payments,
    ProviderEvent,
    Refund,
    RefundStatus,
    UnreadablePayload,
)
from portal.edges.payments.reading import (
    event_from_payload,
    intent_from_payload,
    refund_from_payload,
)
from portal.edges.payments.verify import BadBody, BadSignature, verify

__all__ = [
    "BadBody",
    "BadSignature",
    "Intent",
    "IntentStatus",
    "Payments",
    "ProviderEvent",
    "Refund",
    "RefundStatus",
    "UnreadablePayload",
    "event_from_payload",
    "intent_from_payload",
    "refund_from_payload",
    "verify",
]
