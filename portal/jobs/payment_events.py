"""What each event of the card provider means to us. Types that are not here are ignored."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from portal.db import Tx
from portal.edges.billing.reading import invoice_from_payload, subscription_from_payload
from portal.edges.payments.port import UnreadablePayload
from portal.edges.payments.reading import (
    dispute_from_payload,
    intent_from_payload,
    refund_from_payload,
)
from portal.jobs.applying import Applying, Handled, NotYetError, PermanentFaultError
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import (
    disputes,
    membership_money,
    payment_answers,
    refund_answers,
    subscription_answers,
)
from portal.verbs.payment_answers import PROVIDER

Handler = Callable[[Tx, Applying, Mapping[str, Any]], Handled]


def handle(tx: Tx, work: Applying, *, live: bool) -> Handled:
    """Apply one event inside the caller's transaction."""
    event = work.event
    if event.livemode is not None and event.livemode != live:
        return Handled("ignored", "livemode is not ours")
    if event.account is not None:
        return Handled("ignored", "another account's object")
    handler = HANDLERS.get(event.type)
    if handler is None:
        return Handled("ignored", "this type means nothing here")
    try:
        return handler(tx, work, _object(work))
    except UnreadablePayload as fault:
        raise PermanentFaultError(f"unreadable: {fault}") from None


def on_intent(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    intent = intent_from_payload(obj)
    named = _uuid(intent.metadata.get("payment_id"))
    payment_id = tx.enter("payment_by_intent(:intent, :named)", intent=intent.id, named=named)
    if payment_id is None:
        if named is None:
            return Handled("ignored", "not a payment of ours")
        raise NotYetError(f"no payment {named} for {intent.id}")
    said = payment_answers.record_intent(
        tx, PROVIDER, payment_id, intent, event_id=work.event.event_id
    )
    return _handled(said)


def on_refund(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    answer = refund_from_payload(obj)
    if answer.intent_id is None:
        return Handled("ignored", "a refund without an intent is not ours")
    payment_id = tx.enter("payment_by_intent(:intent, :named)", intent=answer.intent_id, named=None)
    if payment_id is None:
        if _uuid(answer.metadata.get("payment_id")) is None:
            return Handled("ignored", "not a refund of ours")
        raise NotYetError(f"no payment for {answer.intent_id}")
    return _handled(refund_answers.hear(tx, payment_id, answer))


def on_dispute(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    told = dispute_from_payload(obj)
    if told.intent_id is None:
        return Handled("ignored", "a dispute without an intent is not ours")
    payment_id = tx.enter("payment_by_intent(:intent, :named)", intent=told.intent_id, named=None)
    if payment_id is None:
        return Handled("ignored", "not a charge of ours")
    return _handled(disputes.hear(tx, payment_id, told))


def on_charge_refunded(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    """`amount_refunded` is cumulative and names no refund: it only says that there is something
    to read. The reading job hears of each refund by its own id."""
    intent_id = obj.get("payment_intent")
    if not isinstance(intent_id, str):
        return Handled("ignored", "a charge without an intent is not ours")
    payment_id = tx.enter("payment_by_intent(:intent, :named)", intent=intent_id, named=None)
    if payment_id is None:
        return Handled("ignored", "not a charge of ours")
    tx.run("update payments set next_read_at = now() where id = :id", id=payment_id)
    return Handled("applied", "the refunds will be read", rings=("payments",))


def on_subscription(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    told = subscription_from_payload(obj)
    found = _membership(tx, told.id, told.metadata)
    if found is None:
        return Handled("ignored", "not a subscription of ours")
    at = work.event.created
    return _handled(subscription_answers.hear(tx, PROVIDER, found, told, at))


def on_invoice_paid(tx: Tx, work: Applying, obj: Mapping[str, Any]) -> Handled:
    """Of the state it says nothing: that is the subscription's own event."""
    invoice = invoice_from_payload(obj)
    if invoice.subscription_id is None:
        return Handled("ignored", "not an invoice of a subscription")
    found = _membership(tx, invoice.subscription_id, invoice.metadata)
    if found is None:
        return Handled("ignored", "not an invoice of ours")
    return _handled(membership_money.hear_invoice(tx, PROVIDER, found, invoice))


def _membership(tx: Tx, subscription_id: str, metadata: Mapping[str, str]) -> UUID | None:
    """Ours by the subscription, or by the name that we gave it; never by the customer."""
    named = _uuid(metadata.get("membership_id"))
    found = tx.enter(
        "membership_by_subscription(:subscription, :named)",
        subscription=subscription_id,
        named=named,
    )
    if found is None and named is not None:
        raise NotYetError(f"no membership {named} for {subscription_id}")
    return found


HANDLERS: dict[str, Handler] = {
    "customer.subscription.created": on_subscription,
    "customer.subscription.updated": on_subscription,
    "customer.subscription.deleted": on_subscription,
    "customer.subscription.paused": on_subscription,
    "customer.subscription.resumed": on_subscription,
    "invoice.paid": on_invoice_paid,
    "payment_intent.processing": on_intent,
    "payment_intent.succeeded": on_intent,
    "payment_intent.payment_failed": on_intent,
    "payment_intent.canceled": on_intent,
    "payment_intent.requires_action": on_intent,
    "payment_intent.amount_capturable_updated": on_intent,
    "refund.created": on_refund,
    "refund.updated": on_refund,
    "refund.failed": on_refund,
    "charge.refund.updated": on_refund,
    "charge.refunded": on_charge_refunded,
    "charge.dispute.created": on_dispute,
    "charge.dispute.updated": on_dispute,
    "charge.dispute.funds_withdrawn": on_dispute,
    "charge.dispute.funds_reinstated": on_dispute,
    "charge.dispute.closed": on_dispute,
}


def _handled(said: Outcome) -> Handled:
    match said:
        case Applied():
            return Handled("applied", f"{said.code} {said.to}", rings=("outbox", "refunds"))
        case Noop():
            return Handled("superseded", said.code)
        case Refused(code=Code.AMOUNT_MISMATCH):
            return Handled("dead_letter", "amount, currency or subject does not agree")
        case Refused(code=Code.SUBSCRIPTION_NOT_OURS):
            return Handled("dead_letter", "a second subscription bears this membership's name")
        case Refused(code=Code.NOT_FOUND):
            return Handled("ignored", "another intent bears this payment's name")
        case Refused():
            raise NotYetError(said.code)
        case Conflict():
            raise NotYetError(f"{said.code}: {said.current.state}")


def _object(work: Applying) -> Mapping[str, Any]:
    data = work.payload.get("data")
    obj = data.get("object") if isinstance(data, dict) else None
    if not isinstance(obj, dict):
        raise PermanentFaultError("the event carries no object")
    return obj


def _uuid(value: str | None) -> UUID | None:
    try:
        return UUID(value) if value else None
    except ValueError:
        return None
