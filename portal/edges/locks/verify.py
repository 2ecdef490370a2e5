"""Is this webhook Seam's? Pure: bytes, headers, secrets and the time come from outside.

Seam signs through Svix (https://docs.svix.com/receiving/verifying-payloads/how-manual). Their
library compares with its own clock, so only its signing is used and the time is judged here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any, NoReturn

from standardwebhooks import Webhook

TOLERANCE_SECONDS = 300
PIN_KEYS = {"code", "from", "to"}


class BadSignature(Exception):
    """Not signed by any of the secrets, or at a time too far from now."""


class BadBody(Exception):
    """Not an event: not UTF-8, not JSON, or without id, type or time."""


@dataclass(frozen=True, slots=True)
class LockEvent:
    """`id` is Seam's event id, the same in a webhook, its repeats and the list of events.

    Seam tells the PIN in some events. `payload` is without it, to be kept; `raw` is what was
    signed, PIN included, and must not be stored or logged.
    """

    id: str
    type: str
    created: datetime
    payload: dict[str, Any]
    raw: bytes = field(repr=False)


def verify(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], now: datetime
) -> LockEvent:
    """The event, when one of the secrets signed exactly these bytes within 300 s of `now`.

    Header names in any case, `svix-` or `webhook-`. Raises BadSignature or BadBody.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id = _header(given, "id")
    sent = _sent_at(_header(given, "timestamp"), now)
    text = _text(body)
    offered = _header(given, "signature").split()
    expected = [Webhook(secret).sign(message_id, sent, text) for secret in secrets]
    if not _any_equal(offered, expected):
        raise BadSignature("no secret made this signature")
    return _event(text, body)


def _header(given: Mapping[str, str], name: str) -> str:
    value = given.get(f"svix-{name}") or given.get(f"webhook-{name}")
    if not value:
        raise BadSignature(f"no {name} header")
    return value


def _sent_at(text: str, now: datetime) -> datetime:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise BadSignature("the time is not a number of seconds")
    if abs(now.timestamp() - int(text)) > TOLERANCE_SECONDS:
        raise BadSignature("signed too long ago, or in the future")
    return datetime.fromtimestamp(int(text), UTC)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BadBody("not UTF-8") from None


def _any_equal(offered: Iterable[str], expected: Iterable[str]) -> bool:
    """Compares every pair, so that the time taken says nothing. Bytes: headers may be odd."""
    wanted = [signature.encode() for signature in expected]
    pairs = [(mine, theirs.encode(errors="replace")) for theirs in offered for mine in wanted]
    return sum(compare_digest(mine, theirs) for mine, theirs in pairs) > 0


def _event(text: str, raw: bytes) -> LockEvent:
    payload = _object(text)
    event_id, kind = payload.get("event_id"), payload.get("event_type")
    if not (isinstance(event_id, str) and event_id and isinstance(kind, str) and kind):
        raise BadBody("no event_id or event_type")
    return LockEvent(event_id, kind, _created(payload.get("created_at")), payload, raw)


def _without_pins(value: Any) -> Any:
    """`code` is a PIN; `from` and `to` are old and new values of what changed, a PIN too."""
    if isinstance(value, dict):
        return {k: _without_pins(v) for k, v in value.items() if k not in PIN_KEYS}
    if isinstance(value, list):
        return [_without_pins(item) for item in value]
    return value


def _object(text: str) -> dict[str, Any]:
    try:
        payload = _without_pins(json.loads(text, parse_constant=_not_json))
    except (ValueError, RecursionError):
        raise BadBody("not JSON") from None
    if not isinstance(payload, dict):
        raise BadBody("not a JSON object")
    return payload


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _created(stamp: object) -> datetime:
    try:
        moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadBody("no created_at with an offset")
    return moment.astimezone(UTC)
