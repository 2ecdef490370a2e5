"""The provider's word on a subscription, unasked: an event, or the sweep that reads."""

from datetime import datetime
from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.edges.billing.port import Invoice, Subscription
from portal.edges.errors import EdgeError
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.forward_only import order
from portal.policies.membership_progress import OVER
from portal.verbs import billing_legs, payment_answers
from portal.verbs import membership_money as money
from portal.verbs import membership_moves as moves
from portal.verbs import subscription_mirror as mirror
from portal.verbs.desk import Desk
from portal.verbs.membership_money import Bill
from portal.verbs.payment_answers import PROVIDER


def hear(tx: Tx, actor: Actor, membership_id: UUID, told: Subscription, at: datetime) -> Outcome:
    """An event of the provider's second `at`. An older one never rewinds; where the order cannot be
    told, the provider is asked."""
    membership = moves.held(tx, membership_id)
    known = mirror.of(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if known is None:
        # Our own commit may be behind: whoever asked for it knows what pays it, and writes both.
        return Refused(Code.SUBSCRIPTION_NOT_YET)
    if known.subscription_id != told.id:
        return Refused(Code.SUBSCRIPTION_NOT_OURS, {"subscription": told.id})
    when = order(known.told_at, at)
    if when == "undecided":
        mirror.read_soon(tx, membership_id)
    if when != "later" or (known.status in OVER and not told.over):
        return Noop(Code.SUBSCRIPTION_ALREADY_KNOWN, subject=membership_id)
    if billing_legs.settle_by_word(tx, membership_id, told, at) is None:
        mirror.write(tx, membership_id, told, at)
        mirror.follow(tx, actor, membership_id, told)
    return Applied(Code.SUBSCRIPTION_RECORDED, to=told.status, subject=membership_id)


def read(desk: Desk, membership_id: UUID) -> Outcome:
    """Ask the provider what its subscription is, what it has charged and what paid it, and follow
    that. The one place where what no event told comes to be known."""
    with desk.transaction() as tx:
        known = mirror.of(tx, membership_id)
    if known is None:
        return Refused(Code.NOT_FOUND)
    try:
        told = _stopped(desk, membership_id, known.subscription_id)
        paid = [one for one in desk.billing.invoices_of(known.subscription_id) if _is_paid(one)]
        with desk.transaction() as tx:
            granted, booked = money.known_invoices(tx, membership_id)
        bills = [
            bill
            for invoice in paid
            if invoice.amount_paid and invoice.id not in booked
            for bill in _bills(desk, invoice)
        ]
    except EdgeError:
        return Refused(Code.BILLING_UNAVAILABLE)
    fresh = [invoice for invoice in paid if invoice.id not in granted]
    with desk.transaction() as tx:
        return _record(tx, membership_id, told, fresh, bills)


def _is_paid(invoice: Invoice) -> bool:
    return invoice.status == "paid"


def _stopped(desk: Desk, membership_id: UUID, subscription_id: str) -> Subscription:
    """As it is there. What goes on there although it has ended here is stopped: nobody is charged
    for what they are not given."""
    told = desk.billing.retrieve_subscription(subscription_id)
    with desk.transaction() as tx:
        state = tx.scalar("select state from memberships where id = :id", id=membership_id)
    if state == "ended" and not told.over:
        return desk.billing.end_now(subscription_id)
    return told


def look_up(desk: Desk, actor: Actor, membership_id: UUID) -> Outcome:
    """A person asks what the provider has: of an act that is open, else of the subscription."""
    with desk.transaction() as tx:
        leg: UUID | None = tx.scalar(
            "select id from billing_legs where membership_id = :id and settled_at is null",
            id=membership_id,
        )
    return read(desk, membership_id) if leg is None else billing_legs.resolve(desk, leg)


def _bills(desk: Desk, invoice: Invoice) -> list[Bill]:
    """What paid it."""
    first = invoice.reason == "subscription_create"
    return [
        Bill(invoice.id, desk.payments.retrieve_intent(paid.intent_id), first)
        for paid in desk.billing.payments_of(invoice.id)
    ]


def _record(
    tx: Tx, membership_id: UUID, told: Subscription, invoices: list[Invoice], bills: list[Bill]
) -> Outcome:
    membership = moves.held(tx, membership_id)
    known = mirror.of(tx, membership_id)
    if membership is None or known is None:
        return Refused(Code.NOT_FOUND)
    for bill in bills:
        payment_id = money.note(tx, PROVIDER, membership, bill)
        payment_answers.record_intent(tx, PROVIDER, payment_id, bill.intent)
    for invoice in invoices:  # seldom any: each is heard of once
        money.hear_invoice(tx, PROVIDER, membership_id, invoice)
    at = told.told_at or clock.now()
    if at < known.told_at:
        return Noop(Code.SUBSCRIPTION_ALREADY_KNOWN, subject=membership_id)
    if billing_legs.settle_by_word(tx, membership_id, told, at) is None:
        mirror.follow(tx, PROVIDER, membership_id, told)
    mirror.write(tx, membership_id, told, at, whole=True)
    return Applied(Code.SUBSCRIPTION_RECORDED, to=told.status, subject=membership_id)


def close_invoices(desk: Desk, membership_id: UUID) -> bool:
    """Of a membership that has ended: nobody can pay anything of it any more. True when no invoice
    is open there; what is, is voided. Repeated as often as one likes."""
    with desk.transaction() as tx:
        known = mirror.of(tx, membership_id)
    if known is None:
        return True
    try:
        for invoice in desk.billing.invoices_of(known.subscription_id):
            if invoice.status in ("open", "uncollectible"):
                desk.billing.void_invoice(invoice.id)
        left = desk.billing.invoices_of(known.subscription_id)
    except EdgeError:  # what is unclear is asked again
        return False
    return not any(invoice.status in ("open", "draft", "uncollectible") for invoice in left)
