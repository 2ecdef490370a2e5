"""What the gate would say, beside the button that asks it."""

from datetime import datetime

from portal.db import Row
from portal.gates.checkin import evaluate_checkin_request
from portal.verbs import facts
from portal.web import answer


def reason(row: Row, now: datetime) -> str | None:
    """Why the gate would not let this guest in now; None when it would. `row` has the facts of
    `queries.stays.GATE`."""
    decision = evaluate_checkin_request(facts.checkin_request(row, now))
    return None if decision.code is None else answer.sentence(decision.code, decision.details)
