"""Bookings whose deposit did not come in time."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

from portal import log
from portal.db import SYSTEM, Row, transaction
from portal.jobs.house import House
from portal.verbs import deposits

BATCH = 50
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0)


def end_missed(house: House) -> int:
    """Returns how many spaces are free again. One that cannot be ended holds up no other."""
    freed = 0
    for row in _missed():
        try:
            said = deposits.end_hold(house.desk(row.facility_id), SYSTEM, row.id)
        except Exception:
            logger.exception("deposit_hold_not_ended", stay=str(row.id))
            continue
        freed += said.status == "applied"
        logger.info("deposit_hold_ended", stay=str(row.id), code=said.code)
    return freed


def _missed() -> Iterator[Row]:
    """By keyset: those that money is waited for are passed by, however many they are."""
    after = BEGINNING
    while True:
        with transaction(None) as tx:
            rows = tx.rows(
                "select id, facility_id, deposit_by from deposits_missed(:by, :id, :batch)",
                by=after[0],
                id=after[1],
                batch=BATCH,
            )
        yield from rows
        if len(rows) < BATCH:
            return
        after = rows[-1].deposit_by, rows[-1].id


logger = log.get(__name__)
