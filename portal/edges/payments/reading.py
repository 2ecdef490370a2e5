"""The provider's objects, as parsed JSON, into ours. Nothing is guessed: odd shapes raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.edges.payments import fields
from portal.edges.payments.port import (
    Dispute,
    DisputeStatus,
    Intent,
    IntentStatus,
    ProviderEvent,
    Refund,
    RefundStatus,
    UnreadablePayload,
)


def intent_from_payload(obj: Mapping[str, Any]) -> Intent:
    """A payment_intent. Raises UnreadablePayload."""
    fields.require_kind(obj, "payment_intent")
    return Intent(
        id=fields.identifier(obj, "id"),
        status=fields.one_of(obj, "status", IntentStatus),
        amount=fields.amount(obj, "amount"),
        amount_received=fields.amount(obj, "amount_received"),
        currency=fields.currency(obj),
        client_secret=fields.text_or_none(obj, "client_secret"),
        metadata=fields.metadata(obj),
        latest_charge=fields.reference(obj, "latest_charge"),
        livemode=fields.flag(obj, "livemode"),
        created=fields.moment(obj, "created"),
        decline_code=_decline_code(obj),
    )


def refund_from_payload(obj: Mapping[str, Any]) -> Refund:
    """A refund. Raises UnreadablePayload."""
    fields.require_kind(obj, "refund")
    return Refund(
        id=fields.identifier(obj, "id"),
        status=fields.one_of(obj, "status", RefundStatus),
        amount=fields.amount(obj, "amount"),
        currency=fields.currency(obj),
        intent_id=fields.reference(obj, "payment_intent"),
        charge_id=fields.reference(obj, "charge"),
        metadata=fields.metadata(obj),
        failure_reason=fields.text_or_none(obj, "failure_reason"),
        created=fields.moment(obj, "created"),
    )


def dispute_from_payload(obj: Mapping[str, Any]) -> Dispute:
    """A dispute. Raises UnreadablePayload."""
    fields.require_kind(obj, "dispute")
    return Dispute(
        id=fields.identifier(obj, "id"),
        status=fields.one_of(obj, "status", DisputeStatus),
        amount=fields.amount(obj, "amount"),
        currency=fields.currency(obj),
        intent_id=fields.reference(obj, "payment_intent"),
        refundable=fields.flag(obj, "is_charge_refundable"),
        reason=fields.identifier(obj, "reason"),
        answer_by=fields.moment_or_none(fields.table(obj, "evidence_details"), "due_by"),
        livemode=fields.flag(obj, "livemode"),
        created=fields.moment(obj, "created"),
    )


def event_from_payload(payload: Mapping[str, Any], raw: bytes) -> ProviderEvent:
    """An event, whatever its type: types that we do not know are events too."""
    data = payload.get("data")
    if not isinstance(data, Mapping) or not isinstance(data.get("object"), Mapping):
        raise UnreadablePayload("data.object is not an object")
    return ProviderEvent(
        id=fields.identifier(payload, "id"),
        type=fields.identifier(payload, "type"),
        created=fields.moment(payload, "created"),
        livemode=fields.flag(payload, "livemode"),
        account=fields.text_or_none(payload, "account"),
        api_version=fields.text_or_none(payload, "api_version"),
        payload=payload,
        raw=raw,
    )


def _decline_code(obj: Mapping[str, Any]) -> str | None:
    error = obj.get("last_payment_error")
    if error is None:
        return None
    if not isinstance(error, Mapping):
        raise UnreadablePayload("last_payment_error is not an object")
    return fields.text_or_none(error, "decline_code") or fields.text_or_none(error, "code")
