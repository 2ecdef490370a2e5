"""The one verb that ends a membership, for every reason and every caller."""

from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from portal import clock
from portal.db import Actor, Row, Tx
from portal.machines.membership import MACHINE, State
from portal.move import standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import membership_end as policy
from portal.policies import periods
from portal.policies.membership_end import Calm, Denied, Ends, Reason
from portal.policies.periods import When
from portal.verbs import keys, stays
from portal.verbs.desk import Desk
from portal.verbs.memberships import move_held, tell

OBLIGATIONS = ("keys_gone", "member_told")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why, and for whom a later end is wished, when. `seen` is the version that a person saw; a
    sweep has seen none."""

    reason: Reason
    when: When = "month_boundary"
    note: str = ""
    seen: int | None = None

    @property
    def words(self) -> str:
        return f"{self.reason}: {self.note}" if self.note else self.reason


def end_membership(desk: Desk, actor: Actor, membership_id: UUID, ending: Ending) -> Outcome:
    """→ scheduled_to_end or ended, as the table of reasons by states says."""
    with desk.transaction() as tx:
        membership = _held(tx, membership_id)
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
            case Ends(leg=str()) if membership.billing != "desk":
                return Refused(Code.BILLING_UNAVAILABLE)
            case Ends("end_scheduled"):
                return _schedule(tx, actor, membership, ending)
            case Ends():
                return _end(tx, actor, membership, ending)


def _schedule(tx: Tx, actor: Actor, membership: Row, ending: Ending) -> Outcome:
    ends_at = periods.leaving(
        ending.when,
        membership.started_at,
        membership.billed_every,
        clock.now(),
        membership.time_zone,
    )
    move_held(
        tx,
        actor,
        membership,
        "end_scheduled",
        "end_membership",
        reason=ending.words,
        also={"ends_at": ends_at, "end_reason": ending.reason},
    )
    _cancel_stays(tx, actor, membership.id, ends_at)
    tell(tx, membership.id, "membership_end_scheduled", f"{membership.id}:{membership.version}")
    return Applied(Code.MEMBERSHIP_END_SCHEDULED, to="scheduled_to_end", subject=membership.id)


def _end(tx: Tx, actor: Actor, membership: Row, ending: Ending) -> Outcome:
    """An end that was set keeps its time; any other is now. What a stay costs beside the membership
    keeps its key: that is the stay's."""
    now, reached = clock.now(), bool(membership.reached)
    ends_at = membership.ends_at if reached else now
    move_held(
        tx,
        actor,
        membership,
        "ended",
        "end_membership",
        reason=ending.words,
        also={"ends_at": ends_at, "ended_at": now, "end_reason": ending.reason},
    )
    if membership.started_at is not None:
        _cancel_stays(tx, actor, membership.id, now)
        if not reached:
            _revoke_keys(tx, actor, membership.id)
        _owe_proofs(tx, membership.id, now)
    tell(tx, membership.id, _news(membership, ending), str(membership.id))
    tx.ring("memberships")
    return Applied(Code.MEMBERSHIP_ENDED, to="ended", subject=membership.id)


def _news(membership: Row, ending: Ending) -> str:
    """What the member is told: one that never began has not ended."""
    if membership.started_at is not None:
        return "membership_ended"
    rejected = ending.reason == "application_rejected"
    return "membership_rejected" if rejected else "membership_not_begun"


def _held(tx: Tx, membership_id: UUID) -> Row | None:
    """Locked, with its house's time zone. `reached`: an end that was set has come, by the clock by
    which the sweep finds it."""
    return tx.row(
        """
        select m.id, m.state, m.version, m.billing, m.billed_every, m.started_at, m.ends_at,
               m.ends_at <= now() as reached, f.time_zone
        from memberships m join facilities f on f.id = m.facility_id
        where m.id = :id
        for no key update of m
        """,
        id=membership_id,
    )


def _cancel_stays(tx: Tx, actor: Actor, membership_id: UUID, ends_at: datetime) -> None:
    """What it gives from its end on is given to nobody. A stay that began before runs out. They are
    held: one that changed in between would be left, and nobody would hear of it."""
    ahead = tx.rows(
        """
        select id, version from stays
        where membership_id = :membership and state = 'reserved' and starts_at >= :ends_at
        order by id
        for no key update
        """,
        membership=membership_id,
        ends_at=ends_at,
    )
    for stay in ahead:  # those that one person has booked ahead
        said = stays.cancel(tx, actor, stay.id, stay.version)
        if not isinstance(said, Applied):
            raise LookupError(f"a stay that is held was not cancelled: {said.code}")


def _revoke_keys(tx: Tx, actor: Actor, membership_id: UUID) -> None:
    """Of stays in house that cost nothing beside the membership."""
    given = tx.rows(
        """
        select s.id from stays s
        where s.membership_id = :membership and s.state = 'admitted'
          and not exists (select 1 from ledger_lines l where l.stay_id = s.id)
        order by s.id
        """,
        membership=membership_id,
    )
    for stay in given:  # where one person is at this moment
        keys.revoke_all(tx, actor, stay.id, reason="membership ended")


def _owe_proofs(tx: Tx, membership_id: UUID, now: datetime) -> None:
    tx.run(
        """
        insert into end_obligations (facility_id, membership_id, kind, since)
        select :facility_id, :membership, kind, :now from unnest(cast(:kinds as text[])) kind
        on conflict do nothing
        """,
        facility_id=tx.facility_id,
        membership=membership_id,
        kinds=list(OBLIGATIONS),
        now=now,
    )
