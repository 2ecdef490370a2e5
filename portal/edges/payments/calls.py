"""How Stripe is called, whatever it is asked: one client, one meaning of each failure, its lists
read page by page. The names of what is asked stand in the adapters."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
import stripe

from portal.edges.errors import Unknown, Unreachable
from portal.edges.payments import faults
from portal.edges.payments.port import UnreadablePayload

API_VERSION = "2026-10-28.endive"
STRIPE_API = "https://api.stripe.com"
CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
PAGE = 100
MOST_PAGES = 50
CLOCK_MARGIN = timedelta(minutes=5)
"""How far our clock and Stripe's may differ when a list is bounded by time."""

# What the SDK itself breaks on when an answer is not Stripe's (bytes that are no UTF-8, an `error`
# that is no object): by then the request is sent.
INDIGESTIBLE = (AttributeError, KeyError, TypeError, ValueError)

ANSWERED = "monban_answered_at"
"""Under which an answer carries the second in which it was given, by the provider's own clock."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

# The SDK would write an identifier of this machine to disk and send it along.
stripe.enable_telemetry = False

T = TypeVar("T")
Row = dict[str, Any]


def client(
    api_key: str, base: str, *, connect_seconds: float, read_seconds: float
) -> stripe.V1Services:
    """Safe to share between threads; opens no connection by itself."""
    return stripe.StripeClient(
        api_key,
        stripe_version=API_VERSION,
        base_addresses={"api": base},
        # A retry inside the SDK would repeat a write whose fate nobody has asked about.
        max_network_retries=0,
        http_client=stripe.RequestsClient(
            timeout=(connect_seconds, read_seconds), session=_session(base)
        ),
    ).v1


def _session(base: str) -> requests.Session:
    session = requests.Session()
    # A kept connection can be closed just as a write begins, and a forked worker would share
    # it. Card calls are few: each one connects afresh.
    session.headers["Connection"] = "close"
    # A proxy of the environment cannot reach a stand-in on this machine.
    session.trust_env = urlsplit(base).hostname not in _LOOPBACK
    return session


def write(call: Callable[[], Any], reading: Callable[[Row], T]) -> T:
    """An answer that cannot be read leaves the write Unknown: it was carried out."""
    try:
        answer = call()
    except stripe.StripeError as error:
        raise faults.of_write(error) from error
    except INDIGESTIBLE as bug:
        raise Unknown("the card provider's answer cannot be read") from bug
    try:
        return reading(_json(answer))
    except UnreadablePayload as reason:
        raise Unknown(f"the card provider's answer cannot be read: {reason}") from reason


def read(call: Callable[[], Any], reading: Callable[[Row], T]) -> T:
    try:
        answer = call()
    except stripe.StripeError as error:
        raise faults.of_read(error) from error
    except INDIGESTIBLE as bug:
        raise Unreachable("the card provider's answer cannot be read") from bug
    return readable(answer, lambda whole: reading(_json(whole)))


def readable(row: Any, reading: Callable[[Any], T]) -> T:
    try:
        return reading(row)
    except UnreadablePayload as reason:
        message = f"the card provider's answer cannot be read: {reason}"
        raise Unreachable(message) from reason


def params(paging: Row, **filters: Any) -> Any:
    """The SDK types every list's parameters apart; paging is the same for all."""
    return {**filters, **paging}


def page(call: Callable[[Row], Any], paging: Row) -> tuple[list[Row], bool]:
    """The rows of one page, newest first, and whether there are more."""
    return read(lambda: call(paging), _rows_and_more)


def rows_since(
    listed: Callable[[Any], Any], since: datetime, until: datetime | None
) -> tuple[list[Row], datetime]:
    """Newest first, and from when on these are all. A list cut at the bound reaches less far."""
    rows: list[Row] = []
    bounds = {"gte": int((since - CLOCK_MARGIN).timestamp())}
    if until is not None:
        bounds["lt"] = int((until + CLOCK_MARGIN).timestamp())
    for _ in range(MOST_PAGES):
        cursor = {"starting_after": rows[-1]["id"]} if rows else {}
        found, more = page(
            lambda paging: listed(params(paging, created=bounds)), {"limit": PAGE, **cursor}
        )
        rows.extend(found)
        if not (found and more):
            return rows, since
    oldest = datetime.fromtimestamp(int(rows[-1]["created"]), UTC)
    return rows, oldest + CLOCK_MARGIN


def all_rows(call: Callable[[Row], Any]) -> list[Row]:
    """Every page. A list too long to read raises: half of it would pass for the whole."""
    rows: list[Row] = []
    for _ in range(MOST_PAGES):
        cursor = {"starting_after": rows[-1]["id"]} if rows else {}
        found, more = page(call, {"limit": PAGE, **cursor})
        rows.extend(found)
        if not (found and more):
            return rows
    raise Unreachable("the card provider's list is too long to read", code="list_too_long")


def _json(answer: Any) -> Row:
    """The answer as it came, before the SDK made decimals and objects of it."""
    if not isinstance(answer, stripe.StripeObject) or answer.last_response is None:
        raise UnreadablePayload("not an object")
    parsed: Row = json.loads(answer.last_response.body)
    if date := answer.last_response.headers.get("Date"):
        parsed[ANSWERED] = int(parsedate_to_datetime(date).timestamp())
    return parsed


def _rows_and_more(listed: Row) -> tuple[list[Row], bool]:
    rows, more = listed.get("data"), listed.get("has_more")
    if not isinstance(rows, list) or not isinstance(more, bool):
        raise UnreadablePayload("not a list")
    return rows, more
