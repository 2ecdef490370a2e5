"""The provider's objects, as parsed JSON, into ours. Nothing is guessed: odd shapes raise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from portal.edges.payments.port import (
    Intent,
    IntentStatus,
    ProviderEvent,
    Refund,
    RefundStatus,
    UnreadablePayload,
)

_ID = re.compile(r"[\x21-\x7e]{1,255}")
_LATEST = 253_402_300_799
"""The last second of the year 9999, where datetime ends."""


def intent_from_payload(obj: Mapping[str, Any]) -> Intent:
    """A payment_intent. Raises UnreadablePayload."""
    _require_kind(obj, "payment_intent")
    return Intent(
        id=_id(obj, "id"),
        status=_one_of(obj, "status", IntentStatus),
        amount=_amount(obj, "amount"),
        amount_received=_amount(obj, "amount_received"),
        currency=_currency(obj),
        client_secret=_text_or_none(obj, "client_secret"),
        metadata=_metadata(obj),
        latest_charge=_reference(obj, "latest_charge"),
        livemode=_flag(obj, "livemode"),
        created=_moment(obj, "created"),
        decline_code=_decline_code(obj),
    )


def refund_from_payload(obj: Mapping[str, Any]) -> Refund:
    """A refund. Raises UnreadablePayload."""
    _require_kind(obj, "refund")
    return Refund(
        id=_id(obj, "id"),
        status=_one_of(obj, "status", RefundStatus),
        amount=_amount(obj, "amount"),
        currency=_currency(obj),
        intent_id=_reference(obj, "payment_intent"),
        charge_id=_reference(obj, "charge"),
        metadata=_metadata(obj),
        failure_reason=_text_or_none(obj, "failure_reason"),
        created=_moment(obj, "created"),
    )


def event_from_payload(payload: Mapping[str, Any], raw: bytes) -> ProviderEvent:
    """An event, whatever its type: types that we do not know are events too."""
    data = payload.get("data")
    if not isinstance(data, Mapping) or not isinstance(data.get("object"), Mapping):
        raise UnreadablePayload("data.object is not an object")
    return ProviderEvent(
        id=_id(payload, "id"),
        type=_id(payload, "type"),
        created=_moment(payload, "created"),
        livemode=_flag(payload, "livemode"),
        account=_text_or_none(payload, "account"),
        api_version=_text_or_none(payload, "api_version"),
        payload=payload,
        raw=raw,
    )


def _require_kind(obj: Mapping[str, Any], kind: str) -> None:
    if not isinstance(obj, Mapping) or obj.get("object") != kind:
        raise UnreadablePayload(f"not a {kind}")


def _id(obj: Mapping[str, Any], name: str) -> str:
    value = obj.get(name)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise UnreadablePayload(f"{name} is not an identifier")
    return value


def _reference(obj: Mapping[str, Any], name: str) -> str | None:
    """An id, or the object itself where the sender has expanded it."""
    value = obj.get(name)
    if isinstance(value, Mapping):
        return _id(value, "id")
    return None if value is None else _id(obj, name)


def _one_of(obj: Mapping[str, Any], name: str, literal: Any) -> Any:
    value = obj.get(name)
    if not isinstance(value, str) or value not in get_args(literal):
        raise UnreadablePayload(f"{name} is none that we know")
    return value


def _amount(obj: Mapping[str, Any], name: str) -> int:
    value = obj.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnreadablePayload(f"{name} is not an amount")
    return value


def _currency(obj: Mapping[str, Any]) -> str:
    value = obj.get("currency")
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z]{3}", value):
        raise UnreadablePayload("currency is not a currency")
    return value.upper()


def _metadata(obj: Mapping[str, Any]) -> dict[str, str]:
    """Stripe types a refund's metadata as nullable; none is the same as empty."""
    value = obj.get("metadata") or {}
    if not isinstance(value, Mapping):
        raise UnreadablePayload("metadata is not an object")
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise UnreadablePayload("metadata is not text")
    return dict(value)


def _flag(obj: Mapping[str, Any], name: str) -> bool:
    value = obj.get(name)
    if not isinstance(value, bool):
        raise UnreadablePayload(f"{name} is not true or false")
    return value


def _moment(obj: Mapping[str, Any], name: str) -> datetime:
    value = obj.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LATEST:
        raise UnreadablePayload(f"{name} is not a time")
    return datetime.fromtimestamp(value, UTC)


def _text_or_none(obj: Mapping[str, Any], name: str) -> str | None:
    value = obj.get(name)
    if value is not None and not isinstance(value, str):
        raise UnreadablePayload(f"{name} is not text")
    return value


def _decline_code(obj: Mapping[str, Any]) -> str | None:
    error = obj.get("last_payment_error")
    if error is None:
        return None
    if not isinstance(error, Mapping):
        raise UnreadablePayload("last_payment_error is not an object")
    return _text_or_none(error, "decline_code") or _text_or_none(error, "code")
