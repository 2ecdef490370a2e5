"""Stays that were booked at a tablet and left there unpaid."""

from portal import log
from portal.db import transaction
from portal.verbs import kiosk

BATCH = 50


def let_go() -> int:
    """Returns how many spaces are free again. One that cannot be let go holds up no other."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from walk_ins_to_let_go(:batch)", batch=BATCH)
    freed = 0
    for row in due:
        with transaction(row.facility_id) as tx:
            said = kiosk.let_go(tx, row.id)
        freed += said.status == "applied"
        logger.info("walk_in_let_go", stay=str(row.id), code=said.code)
    return freed


logger = log.get(__name__)
