"""Refunds that are owed, or whose answer is lost or pending: claimed, sent or read, settled."""

from uuid import UUID, uuid4

from portal import log
from portal.db import SYSTEM, transaction
from portal.jobs.house import House
from portal.policies import backoff
from portal.verbs import refunds
from portal.verbs.desk import Desk

BATCH = 10


def send_due(house: House) -> int:
    """Claim one batch and carry it to the provider. Returns how many were claimed."""
    token = uuid4()
    with transaction(None) as tx:
        due = tx.rows(
            "select id, facility_id from claim_refunds(:token, :batch, :lease)",
            token=token,
            batch=BATCH,
            lease=refunds.LEASE,
        )
    for row in due:
        desk = house.desk(row.facility_id)
        try:
            refunds.send(desk, SYSTEM, row.id)
        except Exception:  # one refund that cannot be sent holds up no other
            logger.exception("refund_broken", refund=str(row.id))
        _give_back(desk, row.id, token)
    return len(due)


def _give_back(desk: Desk, refund_id: UUID, token: UUID) -> None:
    """What is still owed or unclear is looked at again later, ever more calmly."""
    with desk.transaction() as tx:
        row = tx.row("select attempts from refunds where id = :id", id=refund_id)
        if row is not None:
            tx.run(
                """
                update refunds
                set claimed_at = null, claim_token = null, next_attempt_at = now() + :pause
                where id = :id and claim_token = :token
                """,
                id=refund_id,
                token=token,
                pause=backoff.wait(backoff.MONEY, row.attempts),
            )


logger = log.get(__name__)
