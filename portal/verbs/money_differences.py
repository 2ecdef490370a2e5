"""Differences of money, and the verb that ends each. The provider is asked anew before it."""

from uuid import UUID

from portal import ledger
from portal.db import Actor, Tx
from portal.edges.errors import NO_SUCH, Rejected
from portal.edges.payments.port import Intent
from portal.edges.payments.port import Refund as ProviderRefund
from portal.models import Divergence, Payment, Refund
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import disputes, payment_answers, refund_answers
from portal.verbs.desk import Desk
from portal.verbs.healing import AGREEMENT, heal

NOT_AT_PROVIDER = "not_at_provider"


def only_a_person(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Money that no row of ours speaks for: what it is, nobody here can ask. It is looked at in
    the provider's dashboard, and closed."""
    return Refused(Code.NOT_PERMITTED)


def ask_payment(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    if row.payment_id is None:
        return Refused(Code.NOT_PERMITTED)
    return payment_answers.resolve(desk, actor, row.payment_id)


def ask_lost_payment(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """open → canceled where the provider has no such intent: nobody can pay it. Money that we
    booked is never unbooked by this: the provider's list may be the wrong account's."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, row.payment_id)
    if payment is None or payment.intent_id is None:
        return Refused(Code.NOT_FOUND)
    if _intent(desk, payment.intent_id) is not None:
        return payment_answers.resolve(desk, actor, payment.id)
    if payment.state == "canceled":
        with desk.transaction() as tx:
            heal(tx, row.id, AGREEMENT)
        return Noop(Code.PAYMENT_RESOLVED, subject=payment.id)
    if payment.state != "open":
        return Refused(Code.PAYMENT_NOT_THERE)
    with desk.transaction() as tx:
        now = ledger.hold(tx, Payment, payment.id)
        if now is None or (now.state, now.intent_id) != ("open", payment.intent_id):
            return Refused(Code.PAYMENT_NOT_THERE)
        payment_answers.move_payment(
            tx, actor, now, "provider_canceled", "resolve", {"next_read_at": None}
        )
    return Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment.id)


def hear_refunds(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Each refund of the charge, by its own id, as the reading job does."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, row.payment_id)
    if payment is None or payment.intent_id is None:
        return Refused(Code.NOT_FOUND)
    answers = desk.payments.refunds_of(payment.intent_id)
    with desk.transaction() as tx:
        said = [refund_answers.hear(tx, payment.id, answer) for answer in answers]
    refused = [one for one in said if isinstance(one, Refused)]
    if refused:
        return refused[0]
    moved = any(isinstance(one, Applied) for one in said)
    if moved:
        return Applied(Code.REFUND_RECORDED, to="recorded", subject=payment.id)
    return Noop(Code.REFUND_RECORDED, subject=payment.id)


def ask_disputes(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    if row.payment_id is None:
        return Refused(Code.NOT_PERMITTED)
    return disputes.ask(desk, actor, row.payment_id)


def ask_lost_refund(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """A refund that we call accepted and that the charge does not have: it takes the id of the one
    that bears its name, or it has failed, and the money is owed again."""
    with desk.transaction() as tx:
        payment, refund = tx.get(Payment, row.payment_id), _refund_of(tx, row)
    if payment is None or payment.intent_id is None or refund is None:
        return Refused(Code.NOT_FOUND)
    answers = desk.payments.refunds_of(payment.intent_id)
    with desk.transaction() as tx:
        ledger.hold(tx, Refund, refund.id)
        mine = [one for one in answers if _is(refund, one)]
        if mine:
            _rename(tx, refund.id, mine[0].id)
            refund_answers.hear(tx, payment.id, mine[0])
            return Applied(Code.REFUND_RECORDED, to="recorded", subject=payment.id)
        return refund_answers.lost(tx, actor, refund.id, NOT_AT_PROVIDER)


def _intent(desk: Desk, intent_id: str) -> Intent | None:
    """None only where the provider itself says that it has no such intent."""
    try:
        return desk.payments.retrieve_intent(intent_id)
    except Rejected as said:
        if said.code != NO_SUCH:
            raise
        return None


def _refund_of(tx: Tx, row: Divergence) -> Refund | None:
    return tx.get(Refund, UUID(row.subject))


def _is(refund: Refund, answer: ProviderRefund) -> bool:
    named = answer.metadata.get("refund_id") == str(refund.id)
    return named or answer.id == refund.provider_refund_id


def _rename(tx: Tx, refund_id: UUID, provider_id: str) -> None:
    tx.run(
        "update refunds set provider_refund_id = :code where id = :id",
        code=provider_id,
        id=refund_id,
    )
