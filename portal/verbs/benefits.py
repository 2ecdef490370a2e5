"""What a membership gives to a stay, as its row stands while it is held."""

from datetime import datetime
from uuid import UUID

from portal import clock
from portal.db import Row, Tx
from portal.outcome import Code, Refused
from portal.policies import membership_benefits
from portal.policies.membership_benefits import Membership


def to_book_with(tx: Tx, membership_id: UUID, starts_at: datetime) -> Row | Refused:
    """The membership with its person, where it gives a stay that begins then. Held until the stay
    stands: an end that comes meanwhile waits, and finds it."""
    membership = tx.row(
        """
        select r.guest_id, m.id as membership_id, m.state as membership_state,
               m.ends_at as membership_ends_at, m.paused as membership_paused,
               m.monthly_quota, f.benefits_while_past_due, f.time_zone, g.name as guest, g.kana,
               g.phone, g.email, g.document_mark
        from memberships m
        join members r on r.id = m.member_id
        join guests g on g.id = r.guest_id
        join facilities f on f.id = m.facility_id
        where m.id = :id
        for share of m
        """,
        id=membership_id,
    )
    if membership is None:
        return Refused(Code.NOT_FOUND)
    at = max(starts_at, clock.now())
    code = membership_benefits.withheld(_membership(membership), at)
    return Refused(code) if code else membership


def withheld(stay: Row, at: datetime) -> Code | None:
    """Why its membership does not give this stay at `at`; None where it does, or none is needed."""
    if not _needs_membership(stay):
        return None
    return membership_benefits.withheld(_membership(stay), at)


def begins_too_late(stay: Row, starts_at: datetime) -> bool:
    """An end cancels what begins at it or later: nothing is moved to there behind its back."""
    ends_at = stay.membership_ends_at
    return ends_at is not None and starts_at >= ends_at


def taken_back(stay: Row) -> bool:
    """Its membership ended at once, not at an end that was set, and took the keys of stays that it
    alone gave. Such an end is the moment at which it was done."""
    at_once = stay.membership_ended_at is not None and (
        stay.membership_ended_at == stay.membership_ends_at
    )
    return at_once and bool(stay.costs_nothing)


def _needs_membership(stay: Row) -> bool:
    """Of a plan for members, or booked as a member and costing nothing beside the membership."""
    return stay.members_only or (stay.membership_id is not None and stay.costs_nothing)


def _membership(row: Row) -> Membership | None:
    if row.membership_id is None:
        return None
    return Membership(
        state=row.membership_state,
        ends_at=row.membership_ends_at,
        paused=row.membership_paused,
        while_past_due=row.benefits_while_past_due,
    )
