"""One field of the provider's object: what it must be, or UnreadablePayload with its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from portal.edges.payments.port import UnreadablePayload

_ID = re.compile(r"[\x21-\x7e]{1,255}")
_LATEST = 253_402_300_799
"""The last second of the year 9999, where datetime ends."""


def require_kind(obj: Mapping[str, Any], kind: str) -> None:
    if not isinstance(obj, Mapping) or obj.get("object") != kind:
        raise UnreadablePayload(f"not a {kind}")


def identifier(obj: Mapping[str, Any], name: str) -> str:
    value = obj.get(name)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise UnreadablePayload(f"{name} is not an identifier")
    return value


def reference(obj: Mapping[str, Any], name: str) -> str | None:
    """An id, or the object itself where the sender has expanded it."""
    value = obj.get(name)
    if isinstance(value, Mapping):
        return identifier(value, "id")
    return None if value is None else identifier(obj, name)


def one_of(obj: Mapping[str, Any], name: str, literal: Any) -> Any:
    value = obj.get(name)
    if not isinstance(value, str) or value not in get_args(literal):
        raise UnreadablePayload(f"{name} is none that we know")
    return value


def amount(obj: Mapping[str, Any], name: str) -> int:
    value = obj.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnreadablePayload(f"{name} is not an amount")
    return value


def currency(obj: Mapping[str, Any]) -> str:
    value = obj.get("currency")
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z]{3}", value):
        raise UnreadablePayload("currency is not a currency")
    return value.upper()


def metadata(obj: Mapping[str, Any]) -> dict[str, str]:
    """Stripe types a refund's metadata as nullable; none is the same as empty."""
    value = obj.get("metadata") or {}
    if not isinstance(value, Mapping):
        raise UnreadablePayload("metadata is not an object")
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise UnreadablePayload("metadata is not text")
    return dict(value)


def flag(obj: Mapping[str, Any], name: str) -> bool:
    value = obj.get(name)
    if not isinstance(value, bool):
        raise UnreadablePayload(f"{name} is not true or false")
    return value


def moment(obj: Mapping[str, Any], name: str) -> datetime:
    value = obj.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LATEST:
        raise UnreadablePayload(f"{name} is not a time")
    return datetime.fromtimestamp(value, UTC)


def moment_or_none(obj: Mapping[str, Any], name: str) -> datetime | None:
    return None if obj.get(name) is None else moment(obj, name)


def table(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object within; empty where there is none."""
    value = obj.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnreadablePayload(f"{name} is not an object")
    return value


def text_or_none(obj: Mapping[str, Any], name: str) -> str | None:
    value = obj.get(name)
    if value is not None and not isinstance(value, str):
        raise UnreadablePayload(f"{name} is not text")
    return value
