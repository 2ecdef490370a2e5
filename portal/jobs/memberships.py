"""Ends whose time has come, what they must still prove, members of plans that are retired, and what
the provider is to be asked of memberships that it bills."""

from uuid import UUID

from portal import log
from portal.db import SYSTEM, Row, transaction
from portal.jobs.house import House
from portal.outcome import Refused
from portal.verbs import billing_legs, membership_plans, membership_proofs, subscription_answers
from portal.verbs.desk import Desk
from portal.verbs.membership_end import Ending, end_membership

BATCH = 20

REACHED = Ending("end_reached")
UNPAID = Ending("checkout_expired")
RETIRED = Ending("plan_retired", when="period_end")


def look(house: House) -> int:
    """One batch of each. Returns how much came to its end, so that nothing is asked in vain."""
    work = (resolve_due, read_due, end_due, prove_due, retire_due)
    return sum(one(house) for one in work)


def resolve_due(house: House) -> int:
    """Acts at the provider whose end nobody knows. Returns how many are settled now."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from legs_to_read(:batch)", batch=BATCH)
    settled = 0
    for row in due:
        try:
            said = billing_legs.resolve(house.desk(row.facility_id), row.id)
        except Exception:  # one that cannot be read holds up no other
            logger.exception("leg_unread", leg=str(row.id))
        else:
            settled += said.status == "applied"
            logger.info("leg_read", leg=str(row.id), code=said.code)
    return settled


def read_due(house: House) -> int:
    """Subscriptions that an event left open, or that should have been heard of by now."""
    with transaction(None) as tx:
        due = tx.rows(
            "select membership_id, facility_id from subscriptions_to_read(:batch)", batch=BATCH
        )
    read = 0
    for row in due:
        try:
            said = subscription_answers.read(house.desk(row.facility_id), row.membership_id)
        except Exception:  # one that cannot be read holds up no other
            logger.exception("subscription_unread", membership=str(row.membership_id))
        else:
            read += said.status == "applied"
            logger.info("subscription_read", membership=str(row.membership_id), code=said.code)
    return read


def end_due(house: House) -> int:
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from memberships_to_end(:batch)", batch=BATCH)
    ended = 0
    for row in due:
        try:
            desk = house.desk(row.facility_id)
            said = end_membership(desk, SYSTEM, row.id, _why(desk, row.id))
        except Exception:  # one that cannot be ended holds up no other
            logger.exception("membership_not_ended", membership=str(row.id))
        else:
            ended += said.status == "applied"
            logger.info("membership_end_reached", membership=str(row.id), code=said.code)
    return ended


def _why(desk: Desk, membership_id: UUID) -> Ending:
    with desk.transaction() as tx:
        state = tx.scalar("select state from memberships where id = :id", id=membership_id)
    return UNPAID if state == "checkout" else REACHED


def prove_due(house: House) -> int:
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from obligations_to_prove(:batch)", batch=BATCH)
    proven = 0
    for row in due:
        proven += membership_proofs.prove(house.desk(row.facility_id), row.id)
    return proven


def retire_due(house: House) -> int:
    """What was taken is due again later: one that cannot be ended yet holds up no other."""
    with transaction(None) as tx:
        due = tx.rows(
            "select id, facility_id, tries from memberships_of_retired_plans(:batch)", batch=BATCH
        )
    for row in due:
        try:
            said = end_membership(house.desk(row.facility_id), SYSTEM, row.id, RETIRED)
            if isinstance(said, Refused):
                _keep_answer(row, said)
        except Exception:
            logger.exception("membership_not_retired", membership=str(row.id))
        else:
            logger.info("membership_retired", membership=str(row.id), code=said.code)
    return len(due)


def _keep_answer(row: Row, said: Refused) -> None:
    with transaction(row.facility_id) as tx:
        membership_plans.keep_answer(tx, row.id, said.code)


logger = log.get(__name__)
