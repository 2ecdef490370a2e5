"""The payment's verbs: opened by a guest, moved only by the provider's word."""

from dataclasses import dataclass
from datetime import timedelta
from time import sleep
from typing import Any, Literal
from uuid import UUID, uuid4

from sqlalchemy import Row
from sqlalchemy.exc import IntegrityError

from portal import clock, ledger, outbox, seal
from portal.db import Actor, Tx, violated
from portal.edges.errors import Rejected, Unknown, Unreachable
from portal.edges.payments.port import Intent
from portal.machines.payment import MACHINE
from portal.models import Payment
from portal.money import Money, below_card_minimum
from portal.move import create as create_row
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import payment_progress, pricing
from portal.verbs import facts, refunds
from portal.verbs.desk import Desk

Part = Literal["deposit", "balance"]

LIVE = ("open", "processing", "unknown")

FIRST_READ = timedelta(minutes=2)
"""When the sweep first asks the provider about an attempt that no event has spoken of."""

LANDED = timedelta(minutes=2)
"""After this long a request whose answer was lost has been carried out or never will be."""

IN_USE = "idempotency_key_in_use"
IN_USE_PAUSES = (0.2, 0.5, 1.0)
"""Seconds before the same question is asked again while the first asker still waits."""

PROVIDER = Actor("provider", None, "card provider")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A committed payment row, and what the provider needs to hear of it."""

    id: UUID
    facility_id: UUID
    amount: int
    currency: str
    purpose: str
    subject_id: UUID
    key: str
    description: str

    @property
    def metadata(self) -> dict[str, str]:
        return {
            "payment_id": str(self.id),
            "purpose": self.purpose,
            "subject": str(self.subject_id),
            "facility": str(self.facility_id),
        }


def open_payment(desk: Desk, actor: Actor, stay_id: UUID, part: Part) -> Outcome:
    """→ open. One attempt a purpose and subject; what is open is used again, a changed amount
    cancels it at the provider first. The one place that creates intents."""
    if refusal := _clear_way(desk, actor, stay_id, part):
        return refusal
    with desk.transaction() as tx:
        attempt = _attempt(tx, actor, stay_id, part)
    if not isinstance(attempt, _Attempt):
        return attempt

    try:
        intent = _create_intent(desk, attempt)
    except (Unreachable, Rejected) as fault:
        return _not_opened(desk, actor, attempt, fault)
    except Unknown as fault:
        if fault.code == IN_USE:
            return Refused(Code.PAYMENT_PENDING)
        return _answer_lost(desk, actor, attempt, fault)
    with desk.transaction() as tx:
        ledger.hold(tx, "payment", attempt.id)
        _note_intent(tx, attempt.id, intent)
        record_intent(tx, PROVIDER, attempt.id, intent)
    return Applied(Code.PAYMENT_OPENED, to="open", subject=attempt.id)


def record_intent(
    tx: Tx, actor: Actor, payment_id: UUID, intent: Intent, *, event_id: str | None = None
) -> Outcome:
    """Move a payment by the provider's word. Money that does not agree confirms nothing; money
    that the house may not keep is owed back in the same transaction."""
    ledger.hold(tx, "payment", payment_id)
    payment = tx.get(Payment, payment_id, lock=True)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if not _agrees(payment, intent):
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment_id)})
    event = payment_progress.event_for(payment.state, intent.status)
    if event is None and (payment.state, intent.status) == ("canceled", "succeeded"):
        # Money for an attempt that we believed to be over: a person must look.
        return Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment_id)})
    if event is None:
        _note_decline(tx, payment, intent)
        return Noop(Code.PAYMENT_ALREADY_RECORDED, subject=payment_id)
    if event == "provider_declined" and event_id is not None:
        return _ask_anew(tx, payment_id)
    to = MACHINE.target(payment.state, event)  # what follows may read the row anew
    changed: dict[str, Any] = {"intent_id": intent.id, "livemode": intent.livemode}
    if event == "provider_succeeded":
        changed |= {"succeeded_at": clock.now(), "next_read_at": None}
    if event == "provider_canceled":
        changed |= {"next_read_at": None}
    changed["decline_code"] = intent.decline_code
    if not _move(tx, actor, payment, event, "record_intent", changed):
        return Conflict(Code.PAYMENT_STATE_CHANGED, standing(tx, MACHINE, payment_id))
    if event == "provider_succeeded":
        _money_landed(tx, actor, payment, event_id)
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
        ledger.hold(tx, "payment", payment_id)
        _note_intent(tx, payment_id, intent)
        said = record_intent(tx, PROVIDER, payment_id, intent)
    if isinstance(said, Applied) or payment.state != "unknown":
        return said
    return Refused(Code.PAYMENT_STILL_UNKNOWN)


def cancel_attempt(desk: Desk, actor: Actor, payment_id: UUID) -> Outcome:
    """open → canceled, at the provider first. Refused while money may be on its way."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, payment_id)
    if payment is None:
        return Refused(Code.NOT_FOUND)
    if payment.state != "open" or payment.intent_id is None:
        return Refused(Code.PAYMENT_PENDING)
    try:
        intent = desk.payments.cancel_intent(payment.intent_id)
    except Rejected:
        return resolve(desk, actor, payment_id)
    except (Unreachable, Unknown):
        return Refused(Code.BILLING_UNAVAILABLE)
    with desk.transaction() as tx:
        return record_intent(tx, actor, payment_id, intent)


def _create_intent(desk: Desk, attempt: _Attempt) -> Intent:
    """A second click meets the first one's call in flight. Under the same key the provider gives
    both the same answer, once there is one."""
    for pause in IN_USE_PAUSES:
        try:
            return _ask_for_intent(desk, attempt)
        except Unknown as fault:
            if fault.code != IN_USE:
                raise
        sleep(pause)
    return _ask_for_intent(desk, attempt)


def _ask_for_intent(desk: Desk, attempt: _Attempt) -> Intent:
    return desk.payments.create_intent(
        key=attempt.key,
        amount=attempt.amount,
        currency=attempt.currency,
        metadata=attempt.metadata,
        description=attempt.description,
    )


def _clear_way(desk: Desk, actor: Actor, stay_id: UUID, part: Part) -> Outcome | None:
    """Settle what stands in the way of a new attempt: unknown money is asked after, an open
    intent of another amount or purpose is cancelled."""
    with desk.transaction() as tx:
        standing_attempts = tx.rows(
            "select id, state, amount, purpose, intent_id from payments"
            " where stay_id = :stay and state = any(:live)",
            stay=stay_id,
            live=list(LIVE),
        )
        stay = facts.stay(tx, stay_id, lock=False)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    wanted = (_amount(stay, part), _purpose(stay, part))
    for row in standing_attempts:  # one a purpose at most
        if refusal := _settle(desk, actor, row, wanted):
            return refusal
    return None


def _settle(desk: Desk, actor: Actor, attempt: Row[Any], wanted: tuple[int, str]) -> Outcome | None:
    state = attempt.state
    if state == "unknown":
        said = resolve(desk, actor, attempt.id)
        if not isinstance(said, Applied):
            return Refused(Code.PAYMENT_UNKNOWN)
        state = said.to
    if state == "processing":
        return Refused(Code.PAYMENT_PENDING)
    if state == "open" and (attempt.amount, attempt.purpose) != wanted:
        said = cancel_attempt(desk, actor, attempt.id)
        return said if isinstance(said, Refused) else None
    return None


def _attempt(tx: Tx, actor: Actor, stay_id: UUID, part: Part) -> _Attempt | Outcome:
    """The committed row that the provider is told of: a new one, or the one whose call never
    happened. An open intent is used again."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    amount, purpose = _amount(stay, part), _purpose(stay, part)
    if amount <= 0:
        return Noop(Code.NOTHING_DUE, subject=stay_id)
    if below_card_minimum(Money(amount, stay.currency)):
        return Refused(Code.AMOUNT_BELOW_MINIMUM, {"amount": Money(amount, stay.currency)})
    live = tx.row(
        "select id, state, amount, intent_id, idempotency_key from payments"
        " where purpose = :purpose and subject_id = :stay and state = any(:live)",
        purpose=purpose,
        stay=stay_id,
        live=list(LIVE),
    )
    if live is not None and live.intent_id is not None and live.state == "open":
        # Another card is about to be tried: what the last one was told is no longer the news.
        tx.run("update payments set decline_code = null where id = :id", id=live.id)
        return Noop(Code.PAYMENT_ATTEMPT_OPEN, subject=live.id)
    if live is not None and live.state != "open":
        return Refused(Code.PAYMENT_UNKNOWN if live.state == "unknown" else Code.PAYMENT_PENDING)
    if live is not None:
        return _told(tx, stay, live.id, live.idempotency_key, live.amount, purpose)
    return _new_attempt(tx, actor, stay, amount, purpose)


def _new_attempt(
    tx: Tx, actor: Actor, stay: Row[Any], amount: int, purpose: str
) -> _Attempt | Outcome:
    number = 1 + int(
        tx.scalar(
            "select coalesce(max(attempt), 0) from payments"
            " where purpose = :purpose and subject_id = :stay",
            purpose=purpose,
            stay=stay.id,
        )
    )
    payment_id, key = uuid4(), f"{purpose}:{stay.id}:{number}"
    try:
        with tx.savepoint():
            create_row(
                tx,
                MACHINE,
                actor,
                "open_payment",
                {
                    "id": payment_id,
                    "facility_id": tx.facility_id,
                    "purpose": purpose,
                    "subject_id": stay.id,
                    "stay_id": stay.id,
                    "attempt": number,
                    "amount": amount,
                    "currency": stay.currency,
                    "idempotency_key": key,
                    "next_read_at": clock.now() + FIRST_READ,
                },
            )
    except IntegrityError as fault:
        if violated(fault) != "uq_payments_one_attempt_open":
            raise
        return Refused(Code.PAYMENT_PENDING)
    return _told(tx, stay, payment_id, key, amount, purpose)


def _told(
    tx: Tx, stay: Row[Any], payment_id: UUID, key: str, amount: int, purpose: str
) -> _Attempt | Outcome:
    if tx.facility_id is None:
        raise LookupError("a payment needs its facility")
    return _Attempt(
        id=payment_id,
        facility_id=tx.facility_id,
        amount=amount,
        currency=stay.currency,
        purpose=purpose,
        subject_id=stay.id,
        key=key,
        description=f"Monban {stay.code}",
    )


def _amount(stay: Row[Any], part: Part) -> int:
    """Only what the deposit, and everything else received, does not cover."""
    if part == "balance":
        return int(stay.balance)
    return pricing.deposit_open(stay.deposit_due, int(stay.charged), int(stay.balance))


def _purpose(stay: Row[Any], part: Part) -> str:
    if stay.source == "walk_in":
        return "walk_in"
    return "reservation_deposit" if part == "deposit" else "reservation_balance"


def _not_opened(
    desk: Desk, actor: Actor, attempt: _Attempt, fault: Unreachable | Rejected
) -> Outcome:
    """open → canceled: there is certainly no intent, so the attempt is over."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, attempt.id, lock=True)
        if payment is not None and payment.state == "open" and payment.intent_id is None:
            ended = {"last_error": str(fault)[:500], "next_read_at": None}
            _move(tx, actor, payment, "provider_canceled", "open_payment", ended)
    return Refused(Code.BILLING_UNAVAILABLE)


def _answer_lost(desk: Desk, actor: Actor, attempt: _Attempt, fault: Unknown) -> Outcome:
    """open → unknown: an intent may exist. Only the provider can tell."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, attempt.id, lock=True)
        if payment is not None and payment.state == "open" and payment.intent_id is None:
            lost = {"last_error": str(fault)[:500], "next_read_at": clock.now()}
            _move(tx, actor, payment, "answer_lost", "open_payment", lost)
            tx.ring("payments")
    return Refused(Code.PAYMENT_UNKNOWN)


def _read(desk: Desk, payment: Payment) -> Intent | None:
    if payment.intent_id is not None:
        return desk.payments.retrieve_intent(payment.intent_id)
    return desk.payments.find_intent(
        payment_id=str(payment.id), since=payment.created_at - timedelta(hours=1)
    )


def _nothing_there(desk: Desk, actor: Actor, payment: Payment) -> Outcome:
    """The provider has no such intent. Believed only once the lost request has surely landed."""
    if clock.now() < payment.created_at + LANDED:
        return Refused(Code.PAYMENT_STILL_UNKNOWN)
    with desk.transaction() as tx:
        now = tx.get(Payment, payment.id, lock=True)
        if now is None or now.state not in ("open", "unknown") or now.intent_id is not None:
            return Conflict(Code.PAYMENT_STATE_CHANGED, standing(tx, MACHINE, payment.id))
        _move(tx, actor, now, "provider_canceled", "resolve", {"next_read_at": None})
    return Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment.id)


def _agrees(payment: Payment, intent: Intent) -> bool:
    """Amount, currency, purpose, subject and facility: all of them, or nothing is confirmed."""
    if intent.status == "succeeded" and intent.amount_received != payment.amount:
        return False
    return (
        intent.amount == payment.amount
        and intent.currency == payment.currency
        and intent.metadata.get("payment_id") == str(payment.id)
        and intent.metadata.get("purpose") == payment.purpose
        and intent.metadata.get("subject") == str(payment.subject_id)
        and intent.metadata.get("facility") == str(payment.facility_id)
        and payment.intent_id in (None, intent.id)
    )


def _note_intent(tx: Tx, payment_id: UUID, intent: Intent) -> None:
    """Keep the provider's id and the client secret of an attempt that has none yet."""
    secret = intent.client_secret
    tx.run(
        """
        update payments
        set intent_id = :intent, livemode = :livemode,
            client_secret_sealed = coalesce(:secret, client_secret_sealed)
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


def _note_decline(tx: Tx, payment: Payment, intent: Intent) -> None:
    if payment.state == "open" and intent.decline_code != payment.decline_code:
        tx.run(
            "update payments set decline_code = :code where id = :id and state = 'open'",
            code=intent.decline_code,
            id=payment.id,
        )


def _move(
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
    """Book it; owe back what is over; tell the guest. The stay is held by the caller."""
    if payment.stay_id is None:
        raise LookupError("a payment of this kind has no folio yet")
    before = ledger.book(
        tx,
        actor,
        "deposit" if payment.purpose == "reservation_deposit" else "payment",
        stay_id=payment.stay_id,
        amount=payment.amount,
        currency=payment.currency,
        payment_id=payment.id,
    )
    if before is None:
        return  # the same payment is booked already
    over = payment_progress.surplus(payment.amount, before)
    if over:
        refunds.owe(tx, actor, payment.id, over, reason="surplus")
    if over < payment.amount:
        outbox.enqueue(
            tx,
            outbox.contact_of(tx, payment.stay_id),
            "payment_received",
            str(payment.id),
            {"payment_id": str(payment.id)},
            consumer_key=f"{event_id}:payment_received" if event_id else None,
        )
