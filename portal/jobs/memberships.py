"""Ends whose time has come, and what they must still prove."""

from portal import log
from portal.db import SYSTEM, transaction
from portal.jobs.house import House
from portal.verbs import membership_proofs
from portal.verbs.membership_end import Ending, end_membership

BATCH = 20

REACHED = Ending("end_reached")


def look(house: House) -> int:
    """One batch of each. Returns how much came to its end, so that nothing is asked in vain."""
    return end_due(house) + prove_due(house)


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


logger = log.get(__name__)
