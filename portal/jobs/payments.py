"""Payments that no event has settled: the provider is asked, and its word recorded."""

from uuid import UUID

from portal import log
from portal.db import SYSTEM, transaction
from portal.edges.errors import EdgeError
from portal.jobs.house import House
from portal.models import Payment
from portal.verbs import payment_answers, payments, refund_answers
from portal.verbs.desk import Desk

BATCH = 20


def read_due(house: House) -> int:
    """Ask about one batch of payments that are due. Returns how many were due."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from payments_to_read(:batch)", batch=BATCH)
    for row in due:
        try:
            read(house.desk(row.facility_id), row.id)
        except Exception:  # one payment that cannot be read holds up no other
            logger.exception("payment_unread", payment=str(row.id))
    return len(due)


def read(desk: Desk, payment_id: UUID) -> None:
    """An open attempt that nobody can want any more is cancelled; any other is asked after."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, payment_id)
        unwanted = _unwanted(tx.scalar(_STAY_STATE, payment=payment_id))
    if payment is None:
        return
    if payment.state in ("open", "processing", "unknown"):
        cancellable = unwanted and payment.state == "open" and payment.intent_id is not None
        ask = payments.cancel_attempt if cancellable else payment_answers.resolve
        said = ask(desk, SYSTEM, payment_id)
        logger.info("payment_read", payment=str(payment_id), code=said.code)
    else:
        _read_refunds(desk, payment)


def _read_refunds(desk: Desk, payment: Payment) -> None:
    """Each refund of the charge, ours and the dashboard's, by its own id."""
    if payment.intent_id is None:
        return
    try:
        answers = desk.payments.refunds_of(payment.intent_id)
    except EdgeError as fault:
        logger.warning("refunds_unread", payment=str(payment.id), fault=type(fault).__name__)
        return
    with desk.transaction() as tx:
        for answer in answers:  # a handful at most: the refunds of one charge
            refund_answers.hear(tx, payment.id, answer)
        tx.run("update payments set next_read_at = null where id = :id", id=payment.id)


def _unwanted(stay_state: str | None) -> bool:
    return stay_state == "cancelled"


_STAY_STATE = """
    select s.state from payments p join stays s on s.id = p.stay_id where p.id = :payment
"""

logger = log.get(__name__)
