"""The one verb that ends a membership, for every reason and every caller."""

from datetime import datetime
from typing import Any, cast
from uuid import UUID

from portal import clock
from portal.db import Actor, Row, Tx
from portal.machines.membership import MACHINE, State
from portal.move import standing
from portal.outcome import Code, Conflict, Noop, Outcome, Refused
from portal.policies import membership_end as policy
from portal.policies import periods
from portal.policies.membership_end import Calm, Denied, Ends, Leg
from portal.verbs import billing_legs
from portal.verbs import membership_moves as moves
from portal.verbs.desk import Desk
from portal.verbs.membership_moves import Ending

__all__ = ["Ending", "end_membership"]


def end_membership(desk: Desk, actor: Actor, membership_id: UUID, ending: Ending) -> Outcome:
    """→ scheduled_to_end or ended, as the table of reasons by states says. Where the provider
    bills, it has stopped before anything of ours moves."""
    with desk.transaction() as tx:
        decided = _decide(tx, actor, membership_id, ending)
    return billing_legs.carry_out(desk, decided)


def _decide(tx: Tx, actor: Actor, membership_id: UUID, ending: Ending) -> Outcome | UUID:
    """What becomes of it; or the leg that has to be gone first."""
    membership = moves.held(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    cell = policy.resolve(ending.reason, cast("State", membership.state))
    match cell:
        case Calm(code):
            return Noop(code, subject=membership_id)
        case _ if ending.seen not in (None, membership.version):
            return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, membership_id))
        case Denied(code):
            return Refused(code)
        case Ends(leg=str() as leg) if membership.billing == "card":
            return _leg(tx, actor, membership, ending, leg)
        case Ends() if membership.billing == "card" and billing_legs.in_flight(tx, membership_id):
            return Refused(Code.CHECKOUT_IN_PROGRESS)
        case Ends("end_scheduled"):
            ends_at = _wished(membership, ending)
            return moves.schedule(tx, actor, membership, ending, ends_at, "end_membership")
        case Ends():
            return moves.end(tx, actor, membership, ending)


def _leg(tx: Tx, actor: Actor, membership: Row, ending: Ending, leg: Leg) -> Outcome | UUID:
    wish: dict[str, Any] = {"reason": ending.reason, "when": ending.when, "note": ending.note}
    if leg == "set_end" and ending.when == "month_boundary":
        wish["at"] = _wished(membership, ending).isoformat()
    return billing_legs.begin(tx, actor, membership, leg, wish)


def _wished(membership: Row, ending: Ending) -> datetime:
    return periods.leaving(
        ending.when,
        membership.started_at,
        membership.billed_every,
        clock.now(),
        membership.time_zone,
    )
