"""What the gate would say, beside the button that asks it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from portal.db import Row, Tx
from portal.gates.checkin import evaluate_checkin_request
from portal.verbs import blocklist, facts
from portal.web import answer


@dataclass(frozen=True, slots=True)
class Standing:
    """`refusal`: why the gate would not let the guest in now; None when it would. `ground`: what
    the blocklist says of them, also where that lets nobody be refused."""

    refusal: str | None
    ground: str | None


def look(tx: Tx, rows: Sequence[Row], now: datetime) -> dict[UUID, Standing]:
    """By stay. Each row has the facts of `queries.stays.GATE`. One statement for all."""
    known = {row.id: blocklist.person(row) for row in rows}
    listed = blocklist.naming(tx, {mark for marks in known.values() for mark in marks})
    found = {}
    for row in rows:
        said = evaluate_checkin_request(facts.checkin_request(row, now, listed))
        entry = said.blocked or said.in_vain
        found[row.id] = Standing(
            None if said.code is None else answer.sentence(said.code, said.details),
            None if entry is None else " · ".join(filter(None, (entry.ground, entry.statute))),
        )
    return found
