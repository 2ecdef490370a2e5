"""The payment's verbs: an attempt is opened by a guest, and only the provider's word moves it."""

from dataclasses import dataclass
from datetime import timedelta
from time import sleep
from typing import Literal
from uuid import UUID, uuid4

from sqlalchemy.exc import IntegrityError

from portal import ledger
from portal.db import Actor, Row, Tx, violated
from portal.edges.errors import Rejected, Unknown, Unreachable
from portal.edges.payments.port import Intent
from portal.machines.payment import MACHINE
from portal.models import Payment
from portal.money import Money, below_card_minimum
from portal.move import create as create_row
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import pricing
from portal.verbs import facts, payment_answers
from portal.verbs.desk import Desk
from portal.verbs.payment_answers import PROVIDER

Part = Literal["deposit", "balance"]


LIVE = ("open", "processing", "unknown")


FIRST_READ = timedelta(minutes=2)
"""When the sweep first asks the provider about an attempt that no event has spoken of."""


IN_USE = "idempotency_key_in_use"


IN_USE_PAUSES = (0.2, 0.5, 1.0)
"""Seconds before the same question is asked again while the first asker still waits."""


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
        ledger.hold(tx, Payment, attempt.id)
        payment_answers.note_intent(tx, attempt.id, intent)
        payment_answers.record_intent(tx, PROVIDER, attempt.id, intent)
    return Applied(Code.PAYMENT_OPENED, to="open", subject=attempt.id)


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
        return payment_answers.resolve(desk, actor, payment_id)
    except Unreachable:
        return Refused(Code.BILLING_UNAVAILABLE)
    except Unknown:
        return _cancel_lost(desk, payment_id)
    with desk.transaction() as tx:
        return payment_answers.record_intent(tx, actor, payment_id, intent)


def _cancel_lost(desk: Desk, payment_id: UUID) -> Outcome:
    """It may be cancelled and may not: still open to us until the provider has been asked."""
    with desk.transaction() as tx:
        tx.run(
            "update payments set next_read_at = now() where id = :id and state = 'open'",
            id=payment_id,
        )
        tx.ring("payments")
    return Refused(Code.PAYMENT_UNKNOWN)


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
    intent of another amount or purpose is cancelled, and so is one whose amount the bank has only
    set aside: nobody can pay it once more."""
    with desk.transaction() as tx:
        standing_attempts = tx.rows(
            "select id, state, amount, purpose, intent_id, authorised_at from payments"
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


def _settle(desk: Desk, actor: Actor, attempt: Row, wanted: tuple[int, str]) -> Outcome | None:
    state = attempt.state
    if state == "unknown":
        said = payment_answers.resolve(desk, actor, attempt.id)
        if not isinstance(said, Applied):
            return Refused(Code.PAYMENT_UNKNOWN)
        state = said.to
    if state == "processing":
        return Refused(Code.PAYMENT_PENDING)
    another = (attempt.amount, attempt.purpose) != wanted
    if state == "open" and (another or attempt.authorised_at is not None):
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


def _new_attempt(tx: Tx, actor: Actor, stay: Row, amount: int, purpose: str) -> _Attempt | Outcome:
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
                },
            )
            payment_answers.ask_after(tx, payment_id, FIRST_READ)
    except IntegrityError as fault:
        if violated(fault) != "uq_payments_one_attempt_open":
            raise
        return Refused(Code.PAYMENT_PENDING)
    return _told(tx, stay, payment_id, key, amount, purpose)


def _told(
    tx: Tx, stay: Row, payment_id: UUID, key: str, amount: int, purpose: str
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


def _amount(stay: Row, part: Part) -> int:
    """Only what the deposit, and everything else received, does not cover."""
    if part == "balance":
        return int(stay.balance)
    return pricing.deposit_open(stay.deposit_due, int(stay.charged), int(stay.balance))


def _purpose(stay: Row, part: Part) -> str:
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
            payment_answers.move_payment(
                tx, actor, payment, "provider_canceled", "open_payment", ended
            )
    return Refused(Code.BILLING_UNAVAILABLE)


def _answer_lost(desk: Desk, actor: Actor, attempt: _Attempt, fault: Unknown) -> Outcome:
    """open → unknown: an intent may exist. Only the provider can tell."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, attempt.id, lock=True)
        if payment is not None and payment.state == "open" and payment.intent_id is None:
            lost = {"last_error": str(fault)[:500]}
            payment_answers.move_payment(tx, actor, payment, "answer_lost", "open_payment", lost)
            payment_answers.ask_after(tx, payment.id, timedelta(0))
            tx.ring("payments")
    return Refused(Code.PAYMENT_UNKNOWN)
