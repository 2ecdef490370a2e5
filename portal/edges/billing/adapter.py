"""Stripe's subscriptions, through its official SDK, its API version pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from portal.edges.billing.port import (
    FirstPayment,
    Interval,
    Invoice,
    InvoicePayment,
    Subscription,
)
from portal.edges.billing.reading import (
    intent_of_invoice,
    invoice_from_payload,
    invoice_payment_from_payload,
    subscription_from_payload,
)
from portal.edges.errors import NO_SUCH, Rejected
from portal.edges.payments import calls, fields
from portal.edges.payments.calls import CONNECT_SECONDS, READ_SECONDS, STRIPE_API, Row
from portal.edges.payments.port import Listed, UnreadablePayload
from portal.fence import require_no_transaction

FIRST_PAYMENT = ["latest_invoice.payments", "latest_invoice.confirmation_secret"]


class StripeBilling:
    """Implements `Billing`. Safe to share between threads; opens no connection by itself."""

    def __init__(
        self,
        api_key: str,
        *,
        api_base: str | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._stripe = calls.client(
            api_key,
            (api_base or STRIPE_API).rstrip("/"),
            connect_seconds=connect_seconds,
            read_seconds=read_seconds,
        )

    def create_customer(
        self, *, key: str, name: str, email: str, metadata: Mapping[str, str]
    ) -> str:
        require_no_transaction("billing.create_customer")
        return calls.write(
            lambda: self._stripe.customers.create(
                {"name": name, "email": email, "metadata": dict(metadata)},
                {"idempotency_key": key},
            ),
            _id_of("customer"),
        )

    def create_price(
        self,
        *,
        key: str,
        name: str,
        amount: int,
        currency: str,
        interval: Interval,
        metadata: Mapping[str, str],
    ) -> str:
        require_no_transaction("billing.create_price")
        return calls.write(
            lambda: self._stripe.prices.create(
                {
                    "unit_amount": amount,
                    "currency": currency.lower(),
                    "recurring": {"interval": interval},
                    "product_data": {"name": name},
                    "metadata": dict(metadata),
                },
                {"idempotency_key": key},
            ),
            _id_of("price"),
        )

    def subscribe(
        self, *, key: str, customer_id: str, price_id: str, metadata: Mapping[str, str]
    ) -> FirstPayment:
        require_no_transaction("billing.subscribe")
        return calls.write(
            lambda: self._stripe.subscriptions.create(
                {
                    "customer": customer_id,
                    "items": [{"price": price_id}],
                    "metadata": dict(metadata),
                    # The guest confirms the first payment on our page; the card is kept for the
                    # next ones.
                    "payment_behavior": "default_incomplete",
                    "payment_settings": {"save_default_payment_method": "on_subscription"},
                    "expand": FIRST_PAYMENT,
                },
                {"idempotency_key": key},
            ),
            _first_payment,
        )

    def find_subscription(self, *, customer_id: str, membership_id: str) -> Subscription | None:
        require_no_transaction("billing.find_subscription")
        rows = calls.all_rows(
            lambda paging: self._stripe.subscriptions.list(
                calls.params(paging, customer=customer_id, status="all")
            )
        )
        named = [row for row in rows if _names(row) == membership_id]
        found = [calls.readable(row, subscription_from_payload) for row in named]
        return min(found, key=lambda one: one.over, default=None)

    def retrieve_subscription(self, subscription_id: str) -> Subscription:
        require_no_transaction("billing.retrieve_subscription")
        return calls.read(
            lambda: self._stripe.subscriptions.retrieve(subscription_id),
            subscription_from_payload,
        )

    def first_payment(self, subscription_id: str) -> FirstPayment:
        require_no_transaction("billing.first_payment")
        return calls.read(
            lambda: self._stripe.subscriptions.retrieve(subscription_id, {"expand": FIRST_PAYMENT}),
            _first_payment,
        )

    def end_at_period_end(self, *, key: str, subscription_id: str) -> Subscription:
        require_no_transaction("billing.end_at_period_end")
        return self._update(key, subscription_id, {"cancel_at_period_end": True})

    def end_at(self, *, key: str, subscription_id: str, at: datetime) -> Subscription:
        require_no_transaction("billing.end_at")
        changes = {"cancel_at": int(at.timestamp()), "proration_behavior": "none"}
        return self._update(key, subscription_id, changes)

    def go_on(self, *, key: str, subscription_id: str) -> Subscription:
        """Both ways of setting an end are taken back: neither clears the other."""
        require_no_transaction("billing.go_on")
        if self.retrieve_subscription(subscription_id).cancel_at_period_end:
            return self._update(key, subscription_id, {"cancel_at_period_end": False})
        return self._update(key, subscription_id, {"cancel_at": ""})

    def end_now(self, subscription_id: str) -> Subscription:
        """Stripe answers the second end of one subscription as if there were no such thing."""
        require_no_transaction("billing.end_now")
        try:
            return calls.write(
                lambda: self._stripe.subscriptions.cancel(subscription_id),
                subscription_from_payload,
            )
        except Rejected as refusal:
            if refusal.code != NO_SUCH:
                raise
            known = self.retrieve_subscription(subscription_id)
            if not known.over:
                raise
            return known

    def void_invoice(self, invoice_id: str) -> Invoice:
        require_no_transaction("billing.void_invoice")
        try:
            return calls.write(
                lambda: self._stripe.invoices.void_invoice(invoice_id), invoice_from_payload
            )
        except Rejected:
            known = self.retrieve_invoice(invoice_id)
            if known.status != "void":
                raise
            return known

    def switch(
        self, *, key: str, subscription_id: str, item_id: str, price_id: str
    ) -> Subscription:
        require_no_transaction("billing.switch")
        changes = {
            "items": [{"id": item_id, "price": price_id}],
            "proration_behavior": "none",
        }
        return self._update(key, subscription_id, changes)

    def retrieve_invoice(self, invoice_id: str) -> Invoice:
        require_no_transaction("billing.retrieve_invoice")
        return calls.read(lambda: self._stripe.invoices.retrieve(invoice_id), invoice_from_payload)

    def invoices_of(self, subscription_id: str) -> list[Invoice]:
        require_no_transaction("billing.invoices_of")
        rows = calls.all_rows(
            lambda paging: self._stripe.invoices.list(
                calls.params(paging, subscription=subscription_id)
            )
        )
        return [calls.readable(row, invoice_from_payload) for row in reversed(rows)]

    def payments_of(self, invoice_id: str) -> list[InvoicePayment]:
        require_no_transaction("billing.payments_of")
        rows = calls.all_rows(
            lambda paging: self._stripe.invoice_payments.list(
                calls.params(paging, invoice=invoice_id)
            )
        )
        found = [calls.readable(row, invoice_payment_from_payload) for row in reversed(rows)]
        return [one for one in found if one is not None]

    def subscriptions_since(
        self, since: datetime, until: datetime | None = None
    ) -> Listed[Subscription]:
        require_no_transaction("billing.subscriptions_since")
        rows, reached = calls.rows_since(self._list_all, since, until)
        named = [row for row in rows if _names(row)]
        return Listed([calls.readable(row, subscription_from_payload) for row in named], reached)

    def _list_all(self, bounds: Any) -> Any:
        return self._stripe.subscriptions.list(calls.params(bounds, status="all"))

    def _update(self, key: str, subscription_id: str, changes: Any) -> Subscription:
        return calls.write(
            lambda: self._stripe.subscriptions.update(
                subscription_id, changes, {"idempotency_key": key}
            ),
            subscription_from_payload,
        )


def _id_of(kind: str) -> Callable[[Row], str]:
    def read(obj: Row) -> str:
        fields.require_kind(obj, kind)
        return fields.identifier(obj, "id")

    return read


def _first_payment(obj: Row) -> FirstPayment:
    """The invoice is expanded; one of nothing has no intent."""
    invoice = fields.table(obj, "latest_invoice")
    secret = fields.table(invoice, "confirmation_secret")
    subscription = subscription_from_payload(obj)
    intent_id = intent_of_invoice(invoice)
    if subscription.status == "incomplete" and intent_id is None:
        raise UnreadablePayload("an unpaid subscription names no intent")
    return FirstPayment(subscription, intent_id, fields.text_or_none(secret, "client_secret"))


def _names(row: Row) -> str | None:
    """The membership that a subscription's metadata names."""
    return (row.get("metadata") or {}).get("membership_id")
