"""Stripe, through its official SDK, its API version pinned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import requests
import stripe

from portal.edges.errors import Rejected, Unknown, Unreachable
from portal.edges.payments import faults
from portal.edges.payments.port import (
    Intent,
    Listed,
    ProviderEvent,
    Refund,
    UnreadablePayload,
)
from portal.edges.payments.reading import (
    event_from_payload,
    intent_from_payload,
    refund_from_payload,
)
from portal.fence import require_no_transaction

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

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

# The SDK would write an identifier of this machine to disk and send it along.
stripe.enable_telemetry = False

T = TypeVar("T")
Row = dict[str, Any]


class StripePayments:
    """Implements `Payments`. Safe to share between threads; opens no connection by itself."""

    def __init__(
        self,
        api_key: str,
        *,
        api_base: str | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._base = (api_base or STRIPE_API).rstrip("/")
        self._stripe = stripe.StripeClient(
            api_key,
            stripe_version=API_VERSION,
            base_addresses={"api": self._base},
            # A retry inside the SDK would repeat a write whose fate nobody has asked about.
            max_network_retries=0,
            http_client=stripe.RequestsClient(
                timeout=(connect_seconds, read_seconds), session=_session(self._base)
            ),
        ).v1

    def create_intent(
        self,
        *,
        key: str,
        amount: int,
        currency: str,
        metadata: Mapping[str, str],
        description: str,
    ) -> Intent:
        require_no_transaction("payments.create_intent")
        return _write(
            lambda: self._stripe.payment_intents.create(
                {
                    "amount": amount,
                    "currency": currency.lower(),
                    "metadata": dict(metadata),
                    "description": description,
                    "automatic_payment_methods": {"enabled": True},
                },
                {"idempotency_key": key},
            ),
            intent_from_payload,
        )

    def retrieve_intent(self, intent_id: str) -> Intent:
        require_no_transaction("payments.retrieve_intent")
        return _read(lambda: self._stripe.payment_intents.retrieve(intent_id), intent_from_payload)

    def find_intent(self, *, payment_id: str, since: datetime) -> Intent | None:
        """Reads every page, newest first; the one furthest along wins should there be several."""
        require_no_transaction("payments.find_intent")
        earliest = int((since - CLOCK_MARGIN).timestamp())
        rows = _all_rows(
            lambda paging: self._stripe.payment_intents.list(
                _params(paging, created={"gte": earliest})
            )
        )
        named = [row for row in rows if (row.get("metadata") or {}).get("payment_id") == payment_id]
        found = [_readable(row, intent_from_payload) for row in named]
        return min(found, key=_how_far_off, default=None)

    def intents_since(self, since: datetime, until: datetime | None = None) -> Listed[Intent]:
        require_no_transaction("payments.intents_since")
        rows, reached = _rows_since(self._stripe.payment_intents.list, since, until)
        named = [row for row in rows if (row.get("metadata") or {}).get("payment_id")]
        return Listed([_readable(row, intent_from_payload) for row in named], reached)

    def refunds_since(self, since: datetime, until: datetime | None = None) -> Listed[Refund]:
        require_no_transaction("payments.refunds_since")
        rows, reached = _rows_since(self._stripe.refunds.list, since, until)
        return Listed([_readable(row, refund_from_payload) for row in rows], reached)

    def cancel_intent(self, intent_id: str) -> Intent:
        require_no_transaction("payments.cancel_intent")
        try:
            return _write(
                lambda: self._stripe.payment_intents.cancel(intent_id), intent_from_payload
            )
        except Rejected as refusal:
            if refusal.code != "payment_intent_unexpected_state":
                raise
            intent = self.retrieve_intent(intent_id)
            if intent.status != "canceled":
                raise
            return intent

    def create_refund(
        self, *, key: str, intent_id: str, amount: int, metadata: Mapping[str, str]
    ) -> Refund:
        require_no_transaction("payments.create_refund")
        return _write(
            lambda: self._stripe.refunds.create(
                {"payment_intent": intent_id, "amount": amount, "metadata": dict(metadata)},
                {"idempotency_key": key},
            ),
            refund_from_payload,
        )

    def refunds_of(self, intent_id: str) -> list[Refund]:
        require_no_transaction("payments.refunds_of")
        rows = _all_rows(
            lambda paging: self._stripe.refunds.list(_params(paging, payment_intent=intent_id))
        )
        return [_readable(row, refund_from_payload) for row in reversed(rows)]

    def retrieve_refund(self, refund_id: str) -> Refund:
        require_no_transaction("payments.retrieve_refund")
        return _read(lambda: self._stripe.refunds.retrieve(refund_id), refund_from_payload)

    def events_since(
        self, since: datetime, *, after_event: str | None = None
    ) -> Iterator[ProviderEvent]:
        require_no_transaction("payments.events_since")
        return self._events(int(since.timestamp()), after_event)

    def hosted_page(self, intent: Intent, return_url: str) -> str | None:
        if self._base == STRIPE_API:
            return None
        query = urlencode({"client_secret": intent.client_secret or "", "return_url": return_url})
        return f"{self._base}/pay/{intent.id}?{query}"

    # --- the list of events: Stripe pages newest first, we want oldest first

    def _events(self, since: int, after_event: str | None) -> Iterator[ProviderEvent]:
        """Forward from a cursor, a page at a time; without one, from the oldest since `since`."""
        cursor = after_event if self._knows_event(after_event) else self._event_before(since)
        if cursor is None:
            rows = _all_rows(self._event_page(created={"gte": since}))
            yield from map(_event, reversed(rows))
            return
        for _ in range(MOST_PAGES):
            require_no_transaction("payments.events_since")
            rows, more = _page(self._event_page(), {"limit": PAGE, "ending_before": cursor})
            yield from (_event(row) for row in reversed(rows))
            if not (rows and more):
                return
            cursor = rows[0]["id"]

    def _knows_event(self, event_id: str | None) -> bool:
        """Stripe forgets events after 30 days, and our checkpoint may be older."""
        if event_id is None:
            return False
        try:
            _read(lambda: self._stripe.events.retrieve(event_id), dict)
        except Rejected as refusal:
            if refusal.code != "resource_missing":
                raise
            return False
        return True

    def _event_before(self, since: int) -> str | None:
        rows, _ = _page(self._event_page(created={"lt": since}), {"limit": 1})
        return rows[0]["id"] if rows else None

    def _event_page(self, **bounds: Any) -> Callable[[Row], Any]:
        return lambda paging: self._stripe.events.list(_params(paging, **bounds))


def _session(base: str) -> requests.Session:
    session = requests.Session()
    # A kept connection can be closed just as a write begins, and a forked worker would share
    # it. Card calls are few: each one connects afresh.
    session.headers["Connection"] = "close"
    # A proxy of the environment cannot reach a stand-in on this machine.
    session.trust_env = urlsplit(base).hostname not in _LOOPBACK
    return session


def _write(call: Callable[[], Any], read: Callable[[Row], T]) -> T:
    """An answer that cannot be read leaves the write Unknown: it was carried out."""
    try:
        answer = call()
    except stripe.StripeError as error:
        raise faults.of_write(error) from error
    except INDIGESTIBLE as bug:
        raise Unknown("the card provider's answer cannot be read") from bug
    try:
        return read(_json(answer))
    except UnreadablePayload as reason:
        raise Unknown(f"the card provider's answer cannot be read: {reason}") from reason


def _read(call: Callable[[], Any], read: Callable[[Row], T]) -> T:
    try:
        answer = call()
    except stripe.StripeError as error:
        raise faults.of_read(error) from error
    except INDIGESTIBLE as bug:
        raise Unreachable("the card provider's answer cannot be read") from bug
    return _readable(answer, lambda whole: read(_json(whole)))


def _readable(row: Any, read: Callable[[Any], T]) -> T:
    try:
        return read(row)
    except UnreadablePayload as reason:
        message = f"the card provider's answer cannot be read: {reason}"
        raise Unreachable(message) from reason


def _params(paging: Row, **filters: Any) -> Any:
    """The SDK types every list's parameters apart; paging is the same for all."""
    return {**filters, **paging}


def _json(answer: Any) -> Row:
    """The answer as it came, before the SDK made decimals and objects of it."""
    if not isinstance(answer, stripe.StripeObject) or answer.last_response is None:
        raise UnreadablePayload("not an object")
    parsed: Row = json.loads(answer.last_response.body)
    return parsed


def _page(call: Callable[[Row], Any], paging: Row) -> tuple[list[Row], bool]:
    """The rows of one page, newest first, and whether there are more."""
    return _read(lambda: call(paging), _rows_and_more)


def _rows_and_more(page: Row) -> tuple[list[Row], bool]:
    rows, more = page.get("data"), page.get("has_more")
    if not isinstance(rows, list) or not isinstance(more, bool):
        raise UnreadablePayload("not a list")
    return rows, more


def _rows_since(
    listed: Callable[[Any], Any], since: datetime, until: datetime | None
) -> tuple[list[Row], datetime]:
    """Newest first, and from when on these are all. A list cut at the bound reaches less far."""
    rows: list[Row] = []
    bounds = {"gte": int((since - CLOCK_MARGIN).timestamp())}
    if until is not None:
        bounds["lt"] = int((until + CLOCK_MARGIN).timestamp())
    for _ in range(MOST_PAGES):
        cursor = {"starting_after": rows[-1]["id"]} if rows else {}
        page, more = _page(
            lambda paging: listed(_params(paging, created=bounds)), {"limit": PAGE, **cursor}
        )
        rows.extend(page)
        if not (page and more):
            return rows, since
    oldest = datetime.fromtimestamp(int(rows[-1]["created"]), UTC)
    return rows, oldest + CLOCK_MARGIN


def _all_rows(call: Callable[[Row], Any]) -> list[Row]:
    """Every page. A list too long to read raises: half of it would pass for the whole."""
    rows: list[Row] = []
    for _ in range(MOST_PAGES):
        cursor = {"starting_after": rows[-1]["id"]} if rows else {}
        page, more = _page(call, {"limit": PAGE, **cursor})
        rows.extend(page)
        if not (page and more):
            return rows
    raise Unreachable("the card provider's list is too long to read", code="list_too_long")


def _event(row: Row) -> ProviderEvent:
    raw = json.dumps(row, ensure_ascii=False).encode()
    return _readable(row, lambda payload: event_from_payload(payload, raw))


def _how_far_off(intent: Intent) -> int:
    """0 for the intent that has taken the money, the rest by how near they are to it."""
    order = ("succeeded", "requires_capture", "processing", "requires_action")
    if intent.status in order:
        return order.index(intent.status)
    return len(order) + (intent.status == "canceled")
