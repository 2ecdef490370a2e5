"""The provider's subscriptions and invoices, as parsed JSON, into ours.

Two shapes are read: that of the pinned version (periods on the items, the subscription under an
invoice's `parent`) and the one from before 2025, which an endpoint that was set up long ago may
still be sent. Nothing is guessed: a shape that is neither raises UnreadablePayload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from portal.edges.billing.port import (
    Invoice,
    InvoicePayment,
    InvoiceStatus,
    Item,
    Subscription,
    SubscriptionStatus,
)
from portal.edges.payments import calls, fields
from portal.edges.payments.port import UnreadablePayload

Obj = Mapping[str, Any]


def subscription_from_payload(obj: Obj) -> Subscription:
    """Several items: the earliest end of a period counts."""
    fields.require_kind(obj, "subscription")
    items = _items(obj)
    return Subscription(
        id=fields.identifier(obj, "id"),
        status=fields.one_of(obj, "status", SubscriptionStatus),
        customer_id=_required(obj, "customer"),
        currency=fields.currency(obj),
        metadata=fields.metadata(obj),
        livemode=fields.flag(obj, "livemode"),
        created=fields.moment(obj, "created"),
        items=items,
        period_start=min(item.starts_at for item in items),
        period_end=min(item.ends_at for item in items),
        cancel_at=fields.moment_or_none(obj, "cancel_at"),
        cancel_at_period_end=fields.flag(obj, "cancel_at_period_end"),
        canceled_at=fields.moment_or_none(obj, "canceled_at"),
        ended_at=fields.moment_or_none(obj, "ended_at"),
        trial_end=fields.moment_or_none(obj, "trial_end"),
        paused=_pause(obj) is not None,
        resumes_at=fields.moment_or_none(_pause(obj) or {}, "resumes_at"),
        latest_invoice_id=fields.reference(obj, "latest_invoice"),
        told_at=fields.moment_or_none(obj, calls.ANSWERED),
    )


def invoice_from_payload(obj: Obj) -> Invoice:
    fields.require_kind(obj, "invoice")
    parent = _subscription_parent(obj)
    starts_at, ends_at = _invoiced_period(obj)
    return Invoice(
        id=fields.identifier(obj, "id"),
        status=fields.one_of(obj, "status", InvoiceStatus),
        subscription_id=fields.reference(parent, "subscription"),
        customer_id=fields.reference(obj, "customer"),
        amount_due=fields.amount(obj, "amount_due"),
        amount_paid=fields.amount(obj, "amount_paid"),
        currency=fields.currency(obj),
        metadata=fields.metadata(parent),
        livemode=fields.flag(obj, "livemode"),
        created=fields.moment(obj, "created"),
        paid_at=fields.moment_or_none(fields.table(obj, "status_transitions"), "paid_at"),
        reason=fields.text_or_none(obj, "billing_reason") or "",
        period_start=starts_at,
        period_end=ends_at,
    )


def invoice_payment_from_payload(obj: Obj) -> InvoicePayment | None:
    """None where no intent of ours could be meant: paid outside the provider, or by a charge."""
    fields.require_kind(obj, "invoice_payment")
    intent_id = fields.reference(fields.table(obj, "payment"), "payment_intent")
    if intent_id is None:
        return None
    return InvoicePayment(
        invoice_id=_required(obj, "invoice"),
        intent_id=intent_id,
        amount=fields.amount(obj, "amount_requested"),
        status=fields.text_or_none(obj, "status") or "",
    )


def intent_of_invoice(obj: Obj) -> str | None:
    """The intent that an invoice itself names, by whichever shape; None where it names none."""
    if obj.get("payment_intent") is not None:
        return fields.reference(obj, "payment_intent")
    rows = fields.table(obj, "payments").get("data") or []
    named = [invoice_payment_from_payload(row) for row in _rows(rows, "payments")]
    return next((one.intent_id for one in named if one is not None), None)


def _required(obj: Obj, name: str) -> str:
    found = fields.reference(obj, name)
    if found is None:
        raise UnreadablePayload(f"{name} is missing")
    return found


def _items(obj: Obj) -> tuple[Item, ...]:
    rows = _rows(fields.table(obj, "items").get("data"), "items")
    if not rows:
        raise UnreadablePayload("a subscription without items has no period")
    return tuple(_item(row, obj) for row in rows)


def _item(row: Obj, subscription: Obj) -> Item:
    """Where the item names no period, the subscription does: the shape from before 2025."""
    dated = row if row.get("current_period_end") is not None else subscription
    price = fields.table(row, "price")
    return Item(
        id=fields.identifier(row, "id"),
        price_id=fields.identifier(price, "id"),
        amount=fields.amount(price, "unit_amount"),
        quantity=fields.amount(row, "quantity"),
        starts_at=fields.moment(dated, "current_period_start"),
        ends_at=fields.moment(dated, "current_period_end"),
    )


def _pause(obj: Obj) -> Obj | None:
    return None if obj.get("pause_collection") is None else fields.table(obj, "pause_collection")


def _subscription_parent(obj: Obj) -> Obj:
    """What names the subscription: `parent.subscription_details`, or the invoice itself."""
    parent = fields.table(obj, "parent")
    if parent:
        return fields.table(parent, "subscription_details")
    details = fields.table(obj, "subscription_details")
    return {"subscription": obj.get("subscription"), "metadata": details.get("metadata")}


def _invoiced_period(obj: Obj) -> tuple[datetime, datetime]:
    """Of the lines: the invoice's own dates name the span before it. Lines of a change in the
    middle of a period are left aside where others are there."""
    rows = _rows(fields.table(obj, "lines").get("data"), "lines")
    plain = [row for row in rows if not _is_proration(row)] or rows
    if not plain:
        raise UnreadablePayload("an invoice without lines has no period")
    spans = [fields.table(row, "period") for row in plain]
    ends = [fields.moment(span, "end") for span in spans]
    starts = [fields.moment(span, "start") for span in spans]
    return min(starts), min(ends)


def _is_proration(row: Obj) -> bool:
    details = fields.table(fields.table(row, "parent"), "subscription_item_details")
    return row.get("proration") is True or details.get("proration") is True


def _rows(value: Any, name: str) -> Sequence[Obj]:
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise UnreadablePayload(f"{name} is not a list of objects")
    return value
