"""Ends whose time has come, what they must still prove, and members of plans that are retired."""

from portal import log
from portal.db import SYSTEM, Row, transaction
from portal.jobs.house import House
from portal.outcome import Outcome, Refused
from portal.verbs import membership_plans, membership_proofs
from portal.verbs.membership_end import Ending, end_membership

BATCH = 20

REACHED = Ending("end_reached")
RETIRED = Ending("plan_retired", when="period_end")


def look(house: House) -> int:
    """One batch of each. Returns how much came to its end, so that nothing is asked in vain."""
    return end_due(house) + prove_due(house) + retire_due(house)


def end_due(house: House) -> int:
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from memberships_to_end(:batch)", batch=BATCH)
    ended = 0
    for row in due:
        try:
            said = end_membership(house.desk(row.facility_id), SYSTEM, row.id, REACHED)
        except Exception:  # one that cannot be ended holds up no other
            logger.exception("membership_not_ended", membership=str(row.id))
        else:
            ended += said.status == "applied"
            logger.info("membership_end_reached", membership=str(row.id), code=said.code)
    return ended


def prove_due(house: House) -> int:
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from obligations_to_prove(:batch)", batch=BATCH)
    proven = 0
    for row in due:
        with transaction(row.facility_id) as tx:
            proven += membership_proofs.prove(tx, row.id)
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
            _keep_answer(row, said)
        except Exception:
            logger.exception("membership_not_retired", membership=str(row.id))
        else:
            logger.info("membership_retired", membership=str(row.id), code=said.code)
    return len(due)


def _keep_answer(row: Row, said: Outcome) -> None:
    """An end that went well at once leaves nothing to keep."""
    refused = said.code if isinstance(said, Refused) else None
    if refused or row.tries > 1:
        with transaction(row.facility_id) as tx:
            membership_plans.keep_answer(tx, row.id, refused)


logger = log.get(__name__)
