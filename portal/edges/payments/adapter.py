"""Stripe, through its official SDK, its API version pinned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from portal.edges.errors import Rejected
from portal.edges.payments import calls
from portal.edges.payments.calls import (
    CLOCK_MARGIN,
    CONNECT_SECONDS,
    MOST_PAGES,
    PAGE,
    READ_SECONDS,
    STRIPE_API,
    Row,
)
from portal.edges.payments.port import Dispute, Intent, Listed, ProviderEvent, Refund
from portal.edges.payments.reading import (
    dispute_from_payload,
    event_from_payload,
    intent_from_payload,
    refund_from_payload,
)
from portal.fence import require_no_transaction


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
        self._stripe = calls.client(
            api_key,
            self._base,
            connect_seconds=connect_seconds,
            read_seconds=read_seconds,
        )

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
        return calls.write(
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
        return calls.read(
            lambda: self._stripe.payment_intents.retrieve(intent_id), intent_from_payload
        )

    def find_intent(self, *, payment_id: str, since: datetime) -> Intent | None:
        """Reads every page, newest first; the one furthest along wins should there be several."""
        require_no_transaction("payments.find_intent")
        earliest = int((since - CLOCK_MARGIN).timestamp())
        rows = calls.all_rows(
            lambda paging: self._stripe.payment_intents.list(
                calls.params(paging, created={"gte": earliest})
            )
        )
        named = [row for row in rows if (row.get("metadata") or {}).get("payment_id") == payment_id]
        found = [calls.readable(row, intent_from_payload) for row in named]
        return min(found, key=_how_far_off, default=None)

    def intents_since(self, since: datetime, until: datetime | None = None) -> Listed[Intent]:
        require_no_transaction("payments.intents_since")
        rows, reached = calls.rows_since(self._stripe.payment_intents.list, since, until)
        ours = [row for row in rows if _may_be_ours(row.get("metadata") or {})]
        return Listed([calls.readable(row, intent_from_payload) for row in ours], reached)

    def refunds_since(self, since: datetime, until: datetime | None = None) -> Listed[Refund]:
        require_no_transaction("payments.refunds_since")
        rows, reached = calls.rows_since(self._stripe.refunds.list, since, until)
        return Listed([calls.readable(row, refund_from_payload) for row in rows], reached)

    def disputes_since(self, since: datetime, until: datetime | None = None) -> Listed[Dispute]:
        require_no_transaction("payments.disputes_since")
        rows, reached = calls.rows_since(self._stripe.disputes.list, since, until)
        return Listed([calls.readable(row, dispute_from_payload) for row in rows], reached)

    def disputes_of(self, intent_id: str) -> list[Dispute]:
        require_no_transaction("payments.disputes_of")
        rows = calls.all_rows(
            lambda paging: self._stripe.disputes.list(
                calls.params(paging, payment_intent=intent_id)
            )
        )
        return [calls.readable(row, dispute_from_payload) for row in reversed(rows)]

    def cancel_intent(self, intent_id: str) -> Intent:
        require_no_transaction("payments.cancel_intent")
        try:
            return calls.write(
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
        return calls.write(
            lambda: self._stripe.refunds.create(
                {"payment_intent": intent_id, "amount": amount, "metadata": dict(metadata)},
                {"idempotency_key": key},
            ),
            refund_from_payload,
        )

    def refunds_of(self, intent_id: str) -> list[Refund]:
        require_no_transaction("payments.refunds_of")
        rows = calls.all_rows(
            lambda paging: self._stripe.refunds.list(calls.params(paging, payment_intent=intent_id))
        )
        return [calls.readable(row, refund_from_payload) for row in reversed(rows)]

    def retrieve_refund(self, refund_id: str) -> Refund:
        require_no_transaction("payments.retrieve_refund")
        return calls.read(lambda: self._stripe.refunds.retrieve(refund_id), refund_from_payload)

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
            rows = calls.all_rows(self._event_page(created={"gte": since}))
            yield from map(_event, reversed(rows))
            return
        for _ in range(MOST_PAGES):
            require_no_transaction("payments.events_since")
            rows, more = calls.page(self._event_page(), {"limit": PAGE, "ending_before": cursor})
            yield from (_event(row) for row in reversed(rows))
            if not (rows and more):
                return
            cursor = rows[0]["id"]

    def _knows_event(self, event_id: str | None) -> bool:
        """Stripe forgets events after 30 days, and our checkpoint may be older."""
        if event_id is None:
            return False
        try:
            calls.read(lambda: self._stripe.events.retrieve(event_id), dict)
        except Rejected as refusal:
            if refusal.code != "resource_missing":
                raise
            return False
        return True

    def _event_before(self, since: int) -> str | None:
        rows, _ = calls.page(self._event_page(created={"lt": since}), {"limit": 1})
        return rows[0]["id"] if rows else None

    def _event_page(self, **bounds: Any) -> Callable[[Row], Any]:
        return lambda paging: self._stripe.events.list(calls.params(paging, **bounds))


def _event(row: Row) -> ProviderEvent:
    raw = json.dumps(row, ensure_ascii=False).encode()
    return calls.readable(row, lambda payload: event_from_payload(payload, raw))


def _how_far_off(intent: Intent) -> int:
    """0 for the intent that has taken the money, the rest by how near they are to it."""
    order = ("succeeded", "requires_capture", "processing", "requires_action")
    if intent.status in order:
        return order.index(intent.status)
    return len(order) + (intent.status == "canceled")


def _may_be_ours(metadata: Row) -> bool:
    return not metadata or bool(metadata.get("payment_id"))
