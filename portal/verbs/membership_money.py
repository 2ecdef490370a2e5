"""The money of memberships that the card provider bills: its invoices, the periods that they grant,
and the payments behind them. The provider makes the intents; ours are rows that know them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID, uuid4, uuid5

from portal import ledger
from portal.db import Actor, Row, Tx
from portal.edges.billing.port import Invoice
from portal.edges.errors import Rejected, Unreachable
from portal.edges.payments.port import Intent
from portal.machines.payment import MACHINE as PAYMENT
from portal.move import create as create_row
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.membership_progress import BEHIND
from portal.verbs import membership_moves as moves
from portal.verbs import payment_answers, subscription_mirror
from portal.verbs.desk import Desk
from portal.verbs.payment_answers import PROVIDER

INVOICES = UUID("7d1c4c0e-0d3c-4b0e-9a57-5d8a5e1b6c11")
"""The namespace of the subjects of these payments: each is an invoice, named by the provider."""

FIRST_READ = timedelta(minutes=2)
WAITS = {"processing": Code.PAYMENT_PENDING, "unknown": Code.PAYMENT_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Bill:
    """One invoice and the intent that pays it."""

    invoice_id: str
    intent: Intent
    first: bool


def pay(desk: Desk, actor: Actor, membership_id: UUID) -> Outcome:
    """What is open of a membership's latest invoice can be paid now: → a payment that is open. The
    provider has made it; it is looked up where we do not know it yet."""
    with desk.transaction() as tx:
        asked = _payable(tx, membership_id)
    if not isinstance(asked, str):
        return asked
    try:
        first = desk.billing.first_payment(asked)
        invoice_id = first.subscription.latest_invoice_id
        if first.intent_id is None or invoice_id is None:
            return Noop(Code.NOTHING_DUE, subject=membership_id)
        intent = desk.payments.retrieve_intent(first.intent_id)
    except (Unreachable, Rejected):
        return Refused(Code.BILLING_UNAVAILABLE)
    with desk.transaction() as tx:
        membership = moves.held(tx, membership_id)
        if membership is None or membership.state == "ended":
            return Refused(Code.PAYMENT_STATE_CHANGED)
        payment_id = note(tx, actor, membership, Bill(invoice_id, intent, first=False))
        said = payment_answers.record_intent(tx, PROVIDER, payment_id, intent)
    if isinstance(said, Applied):  # it has moved on, so there is nothing to pay on a page
        return Refused(WAITS.get(said.to, Code.PAYMENT_PENDING))
    return Applied(Code.PAYMENT_OPENED, to="open", subject=payment_id)


def _payable(tx: Tx, membership_id: UUID) -> Outcome | str:
    """The subscription to ask about; or what is open, or why nothing is, without asking."""
    membership = moves.held(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    mirror = subscription_mirror.of(tx, membership_id)
    if mirror is None or mirror.status not in ("incomplete", *BEHIND):
        return Noop(Code.NOTHING_DUE, subject=membership_id)
    live = tx.row(
        """
        select id, state from payments
        where membership_id = :id and state in ('open', 'processing', 'unknown')
          and invoice_id = :invoice
        order by created_at desc limit 1
        """,
        id=membership_id,
        invoice=mirror.latest_invoice_id,
    )
    if live is None:
        return str(mirror.subscription_id)
    if live.state in WAITS:
        return Refused(WAITS[live.state])
    # Another card is about to be tried: what the last one was told is no longer the news.
    tx.run("update payments set decline_code = null where id = :id", id=live.id)
    return Noop(Code.PAYMENT_ATTEMPT_OPEN, subject=live.id)


def note(tx: Tx, actor: Actor, membership: Row, bill: Bill) -> UUID:
    """The payment row of an intent that the provider has made: the one there is, or a new one,
    open. The membership is held."""
    intent = bill.intent
    known: UUID | None = tx.scalar(
        "select id from payments where intent_id = :intent", intent=intent.id
    )
    if known is not None:
        return known
    purpose = "membership_initial" if bill.first else "membership_renewal"
    number = 1 + int(
        tx.scalar(
            "select count(*) from payments where invoice_id = :invoice", invoice=bill.invoice_id
        )
    )
    payment_id = uuid4()
    create_row(
        tx,
        PAYMENT,
        actor,
        "open_payment",
        {
            "id": payment_id,
            "facility_id": tx.facility_id,
            "purpose": purpose,
            "subject_id": uuid5(INVOICES, bill.invoice_id),
            "membership_id": membership.id,
            "invoice_id": bill.invoice_id,
            "attempt": number,
            "amount": intent.amount,
            "currency": intent.currency,
            "idempotency_key": f"{purpose}:{bill.invoice_id}:{number}",
        },
    )
    payment_answers.note_intent(tx, payment_id, intent)
    payment_answers.ask_after(tx, payment_id, FIRST_READ)
    return payment_id


def hear_invoice(tx: Tx, actor: Actor, membership_id: UUID, invoice: Invoice) -> Outcome:
    """A paid invoice grants its period, once, for ever. One that was paid after the end grants
    nothing, and its money is returned."""
    membership = moves.held(tx, membership_id)
    if membership is None or invoice.subscription_id is None:
        return Refused(Code.NOT_FOUND)
    if invoice.status != "paid":
        return Noop(Code.PAYMENT_ALREADY_RECORDED, subject=membership_id)
    if invoice.currency != membership.currency:
        return Refused(Code.AMOUNT_MISMATCH, {"membership": str(membership_id)})
    if invoice.amount_paid > 0 and not _payment_known(tx, invoice.id):
        subscription_mirror.read_soon(tx, membership_id)
    paid_at = invoice.paid_at or invoice.created
    if membership.ended_at is not None:
        in_time = paid_at <= _ended_at(tx, membership)
        payment_answers.decide_late(tx, actor, invoice.id, in_time=in_time)
        if not in_time:
            return Noop(Code.MEMBERSHIP_ALREADY_ENDED, subject=membership_id)
    granted = tx.scalar(
        """
        insert into membership_periods (facility_id, membership_id, subscription_id, invoice_id,
            starts_at, ends_at, amount, currency, paid_at, reason)
        values (:facility_id, :membership_id, :subscription_id, :invoice_id, :starts_at, :ends_at,
            :amount, :currency, :paid_at, :reason)
        on conflict do nothing
        returning id
        """,
        facility_id=tx.facility_id,
        membership_id=membership_id,
        subscription_id=invoice.subscription_id,
        invoice_id=invoice.id,
        starts_at=invoice.period_start,
        ends_at=invoice.period_end,
        amount=invoice.amount_paid,
        currency=invoice.currency,
        paid_at=paid_at,
        reason=invoice.reason,
    )
    if invoice.amount_paid > 0 and not ledger.is_charged(tx, membership_id, invoice.id):
        ledger.book(
            tx,
            actor,
            "charge",
            membership_id=membership_id,
            amount=invoice.amount_paid,
            currency=invoice.currency,
            memo=invoice.id,
        )
    if granted is None:
        return Noop(Code.PAYMENT_ALREADY_RECORDED, subject=membership_id)
    return Applied(Code.PAYMENT_RECORDED, to="granted", subject=membership_id)


def _ended_at(tx: Tx, membership: Row) -> datetime:
    """By the clock that dates the invoices, where it has told the end."""
    there: datetime | None = tx.scalar(
        "select ended_at from subscription_mirror where membership_id = :id", id=membership.id
    )
    return there or cast(datetime, membership.ended_at)


def _payment_known(tx: Tx, invoice_id: str) -> bool:
    found = tx.scalar(
        "select 1 from payments where invoice_id = :invoice limit 1", invoice=invoice_id
    )
    return found is not None


def known_invoices(tx: Tx, membership_id: UUID) -> tuple[set[str], set[str]]:
    """Those that have granted a period, and those whose payment we hold."""
    rows = tx.rows(
        """
        select invoice_id, true as granted from membership_periods where membership_id = :id
        union all
        select invoice_id, false from payments where membership_id = :id
        """,
        id=membership_id,
    )
    granted = {row.invoice_id for row in rows if row.granted}
    return granted, {row.invoice_id for row in rows if not row.granted}
