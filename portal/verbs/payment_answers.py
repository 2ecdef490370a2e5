"""The provider's word on a payment: the one place that hears it, and the question that asks."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from portal import clock, ledger, outbox, seal
from portal.db import Actor, Row, Tx
from portal.edges.errors import Rejected, Unreachable
from portal.edges.payments.port import Intent
from portal.machines.payment import MACHINE
from portal.models import Payment
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import payment_progress
from portal.verbs import refunds_owed, subscription_mirror
from portal.verbs.desk import Desk

PROVIDER = Actor("provider", None, "card provider")


LANDED = timedelta(minutes=2)
"""After this long a request whose answer was lost has been carried out or never will be."""


def record_intent(
    tx: Tx, actor: Actor, payment_id: UUID, intent: Intent, *, event_id: str | None = None
) -> Outcome:
    """Move a payment by the provider's word. Money that does not agree confirms nothing; money
    that the house may not keep is owed back in the same transaction."""
    payment = ledger.hold(tx, Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if refusal := _disagreement(payment, intent):
        return refusal
    event = payment_progress.event_for(payment.state, intent.status)
    if event is None:
        _note_word(tx, payment, intent, event_id)
        return Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment_id)
    if event == "provider_declined" and event_id is not None:
        return _ask_anew(tx, payment_id)
    to = MACHINE.target(payment.state, event)  # what follows may read the row anew
    changed: dict[str, Any] = {
        "intent_id": intent.id,
        "livemode": intent.livemode,
        "decline_code": intent.decline_code,
        "authorised_at": clock.now() if intent.status == payment_progress.SET_ASIDE else None,
    }
    if event in ("provider_succeeded", "provider_canceled"):
        changed["next_read_at"] = None
    if event == "provider_succeeded":
        changed["succeeded_at"] = clock.now()
    if not move_payment(tx, actor, payment, event, "record_intent", changed):
        return Conflict(Code.PAYMENT_STATE_CHANGED, standing(tx, MACHINE, payment_id))
    if event == "provider_succeeded":
        _money_landed(tx, actor, payment, event_id)
        refunds_owed.close_if_returned(tx, actor, payment)
    return Applied(Code.PAYMENT_RECORDED, to=to)


def resolve(desk: Desk, actor: Actor, payment_id: UUID) -> Outcome:
    """Ask the provider what became of a payment, and record its word. Never guesses."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    try:
        intent = _read(desk, payment)
    except (Unreachable, Rejected):
        return Refused(Code.BILLING_UNAVAILABLE)
    if intent is None:
        return _nothing_there(desk, actor, payment)
    with desk.transaction() as tx:
        ledger.hold(tx, Payment, payment_id)
        note_intent(tx, payment_id, intent)
        said = record_intent(tx, PROVIDER, payment_id, intent)
    if isinstance(said, Applied) or payment.state != "unknown":
        return said
    return Refused(Code.PAYMENT_STILL_UNKNOWN)


def _read(desk: Desk, payment: Payment) -> Intent | None:
    if payment.intent_id is not None:
        return desk.payments.retrieve_intent(payment.intent_id)
    return desk.payments.find_intent(
        payment_id=str(payment.id), since=payment.created_at - timedelta(hours=1)
    )


def _nothing_there(desk: Desk, actor: Actor, payment: Payment) -> Outcome:
    """The provider has no such intent. Believed only once the lost request has surely landed, by
    the clock that dated the attempt: one of ours that is ahead would give up money under way."""
    with desk.transaction() as tx:
        landed = "select created_at <= now() - :landed from payments where id = :id"
        if not tx.scalar(landed, landed=LANDED, id=payment.id):
            return Refused(Code.PAYMENT_STILL_UNKNOWN)
        now = tx.get(Payment, payment.id, lock=True)
        if now is None or now.state not in ("open", "unknown") or now.intent_id is not None:
            return Conflict(Code.PAYMENT_STATE_CHANGED, standing(tx, MACHINE, payment.id))
        move_payment(tx, actor, now, "provider_canceled", "resolve", {"next_read_at": None})
    return Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment.id)


def _disagreement(payment: Payment, intent: Intent) -> Refused | None:
    """Why this intent confirms nothing of this payment."""
    if payment.intent_id not in (None, intent.id):
        return Refused(Code.NOT_FOUND)  # it bears our payment's name, and is another intent
    revived = (payment.state, intent.status) == ("canceled", "succeeded")
    if revived or not _agrees(payment, intent):
        # Money for an attempt that we believed to be over, or other money: a person must look.
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment.id)})
    return None


def _agrees(payment: Payment, intent: Intent) -> bool:
    """Amount, currency, purpose, subject and facility: all of them, or nothing is confirmed. Of a
    membership's: that it is the very intent of its invoice."""
    if intent.status == "succeeded" and intent.amount_received != payment.amount:
        return False
    if (intent.amount, intent.currency) != (payment.amount, payment.currency):
        return False
    if payment.membership_id is not None:
        # The provider has made it for its own invoice, and it bears no names of ours.
        return intent.id == payment.intent_id
    return (
        intent.metadata.get("payment_id") == str(payment.id)
        and intent.metadata.get("purpose") == payment.purpose
        and intent.metadata.get("subject") == str(payment.subject_id)
        and intent.metadata.get("facility") == str(payment.facility_id)
    )


def note_intent(tx: Tx, payment_id: UUID, intent: Intent) -> None:
    """Keep the provider's id and the client secret of an attempt that has none yet."""
    secret = intent.client_secret
    tx.run(
        """
        update payments
        set intent_id = :intent, livemode = :livemode,
            client_secret_sealed = coalesce(client_secret_sealed, :secret)
        where id = :id and (intent_id is null or intent_id = :intent)
        """,
        id=payment_id,
        intent=intent.id,
        livemode=intent.livemode,
        secret=seal.close(secret) if secret else None,
    )


def _ask_anew(tx: Tx, payment_id: UUID) -> Outcome:
    """An event that says "declined" may be of an earlier card and overtaken by the next one, whose
    money is on its way: the provider is asked what is true now."""
    tx.run("update payments set next_read_at = now() where id = :id", id=payment_id)
    tx.ring("payments")
    return Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment_id)


def _note_word(tx: Tx, payment: Payment, intent: Intent, event_id: str | None) -> None:
    """What the provider says of an attempt that stays open: why a card was declined, and that the
    bank keeps the amount ready. That it no longer does, an event may say that was overtaken: then
    the one who asks is believed."""
    aside = intent.status == payment_progress.SET_ASIDE
    aside = aside or (event_id is not None and payment.authorised_at is not None)
    known = (payment.decline_code, payment.authorised_at is not None)
    if payment.state == "open" and known != (intent.decline_code, aside):
        tx.run(
            """
            update payments set decline_code = :code,
                authorised_at = case when :aside then coalesce(authorised_at, :now) end
            where id = :id and state = 'open'
            """,
            code=intent.decline_code,
            aside=aside,
            now=clock.now(),
            id=payment.id,
        )


def move_payment(
    tx: Tx, actor: Actor, payment: Payment, event: str, verb: str, also: dict[str, Any]
) -> bool:
    moved = move(
        tx,
        MACHINE,
        payment.id,
        event=event,
        from_state=payment.state,
        actor=actor,
        verb=verb,
        also=also,
    )
    return moved is not None


def _money_landed(tx: Tx, actor: Actor, payment: Payment, event_id: str | None) -> None:
    """Book it; owe back what is over; tell the guest. The caller holds whose account it is."""
    before = ledger.book(
        tx,
        actor,
        "deposit" if payment.purpose == "reservation_deposit" else "payment",
        stay_id=payment.stay_id,
        membership_id=payment.membership_id,
        amount=payment.amount,
        currency=payment.currency,
        payment_id=payment.id,
    )
    if before is None:
        return  # the same payment is booked already
    if payment.membership_id is not None:
        _membership_paid(tx, payment, payment.membership_id, event_id)
        return
    over = payment_progress.surplus(payment.amount, before)
    if over:
        refunds_owed.owe(tx, actor, payment.id, over, reason="surplus")
    if over < payment.amount:
        _tell(tx, payment, event_id)


def _membership_paid(tx: Tx, payment: Payment, membership_id: UUID, event_id: str | None) -> None:
    """Whether money for one that is over was paid before its end is its invoice's to say: one that
    has not been heard of is read."""
    over = tx.scalar(
        "select 1 from memberships where id = :id and state = 'ended'", id=membership_id
    )
    if over and not ledger.is_charged(tx, membership_id, payment.invoice_id):
        subscription_mirror.read_soon(tx, membership_id)
    else:
        _tell(tx, payment, event_id)


def _tell(tx: Tx, payment: Payment | Row, event_id: str | None) -> None:
    news = "membership_paid" if payment.membership_id else "payment_received"
    outbox.enqueue(
        tx,
        payment.stay_id,
        news,
        str(payment.id),
        {"payment_id": str(payment.id)},
        membership_id=payment.membership_id,
        consumer_key=f"{event_id}:{news}" if event_id else None,
    )


def decide_late(tx: Tx, actor: Actor, invoice_id: str, *, in_time: bool) -> None:
    """What an invoice of a membership that is over says of the money that has landed for it: it is
    kept and the member told, or returned in full. Heard again, it says the same."""
    landed = tx.rows(
        """
        select id, amount, stay_id, membership_id from payments
        where invoice_id = :invoice and state = 'succeeded' order by id
        """,
        invoice=invoice_id,
    )
    for payment in landed:  # one, or another that was paid beside it
        if in_time:
            _tell(tx, payment, None)
        else:
            refunds_owed.owe(tx, actor, payment.id, payment.amount, reason="late_payment")


def ask_after(tx: Tx, payment_id: UUID, pause: timedelta) -> None:
    """In the database's time, by which the reading job finds what is due."""
    tx.run(
        "update payments set next_read_at = now() + :pause where id = :id",
        pause=pause,
        id=payment_id,
    )
