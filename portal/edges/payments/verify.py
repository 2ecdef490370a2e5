"""Is this webhook Stripe's? Pure: bytes, header, secrets and the time come from outside.

The SDK decodes before it verifies, so a stranger's bytes raise UnicodeDecodeError there, and it
lets signatures from the future pass; hence this one (https://docs.stripe.com/webhooks#verify-manually).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NoReturn

from portal.edges.payments.port import ProviderEvent, UnreadablePayload
from portal.edges.payments.reading import event_from_payload


class BadSignature(Exception):
    """Not signed by any of the secrets, or at a time too far from now."""


class BadBody(Exception):
    """Signed, but not an event: not UTF-8, not JSON, or without what every event has."""


def verify(
    body: bytes,
    header: str | None,
    secrets: Sequence[str],
    now: datetime,
    tolerance: int = 300,
) -> ProviderEvent:
    """The event, when one of the secrets signed exactly these bytes within `tolerance` seconds.

    Any `v1` of the header counts, so that secrets can be rotated. Raises BadSignature or BadBody.
    """
    moment, offered = _parts(header)
    if abs(now.timestamp() - int(moment)) > tolerance:
        raise BadSignature("signed too long ago, or in the future")
    signed = moment.encode() + b"." + body
    # An empty secret is nobody's: anyone could sign with it.
    expected = [_sign(signed, secret) for secret in secrets if secret]
    if not _any_equal(offered, expected):
        raise BadSignature("no secret made this signature")
    return _event(body)


def _parts(header: str | None) -> tuple[str, list[str]]:
    """The time as written, and every v1."""
    pairs = [part.strip().partition("=") for part in (header or "").split(",")]
    moments = [value for name, _, value in pairs if name == "t"]
    offered = [value for name, _, value in pairs if name == "v1"]
    if len(moments) != 1 or not offered:
        raise BadSignature("not a signature header")
    moment = moments[0]
    if not (moment.isascii() and moment.isdigit() and len(moment) <= 12):
        raise BadSignature("the time is not a number of seconds")
    return moment, offered


def _sign(signed: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), signed, "sha256").hex().encode()


def _any_equal(offered: Iterable[str], expected: Sequence[bytes]) -> bool:
    """Compares every pair, so that the time taken says nothing."""
    pairs = [(mine, theirs.encode(errors="replace")) for theirs in offered for mine in expected]
    return sum(hmac.compare_digest(mine, theirs) for mine, theirs in pairs) > 0


def _event(body: bytes) -> ProviderEvent:
    try:
        payload: Any = json.loads(body.decode(), parse_constant=_not_json)
    except (ValueError, RecursionError):
        raise BadBody("not JSON in UTF-8") from None
    if not isinstance(payload, dict):
        raise BadBody("not a JSON object")
    try:
        return event_from_payload(payload, body)
    except UnreadablePayload as reason:
        raise BadBody(str(reason)) from None


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
