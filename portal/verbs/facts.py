"""What verbs look at before they decide: one statement a question, the stay's row locked."""

from dataclasses import replace
from datetime import datetime
from typing import cast
from uuid import UUID

from portal import ways_in
from portal.db import Row, Tx
from portal.gates.checkin import CheckinRequest, Entrance
from portal.models import quota, ticket
from portal.models.cancellation import STEPS
from portal.models.register import MISSING
from portal.policies import opening
from portal.policies.blocklist import Listed
from portal.verbs import benefits, blocklist

_STAY = f"""
    select s.id, s.state, s.version, s.code, s.source, s.starts_at, s.ends_at, s.currency,
           s.space_id, s.space_no, s.deposit_due, s.deposit_by, now() as asked_at,
           case when s.deposit_due > 0 then deposit_to_come(s) else 0 end as deposit_to_come,
           s.guest_id, s.plan_id, s.membership_id,
           g.name as guest, g.kana, g.phone, g.email, g.document_mark, plan.kind as plan_kind,
           {ways_in.of_stay()},
           f.time_zone, f.early_minutes, f.key_lead_minutes, f.key_lag_minutes,
           f.benefits_while_past_due, coalesce(plan.members_only, false) as members_only,
           s.persons, {MISSING} as register_missing, f.register_required,
           (select count(*) from guest_registers r where r.stay_id = s.id) as registered,
           plan.kind = 'lodging' and exists (select 1 from lodging_tax_tables) as lodging_taxed,
           coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id
                     and l.item = 'lodging_tax'), 0) as lodging_tax,
           m.state as membership_state, m.ends_at as membership_ends_at,
           m.ended_at as membership_ended_at, m.paused as membership_paused, m.monthly_quota,
           not exists (select 1 from ledger_lines l where l.stay_id = s.id and l.item = '')
               as costs_nothing,
           p.code as space_code, p.active as space_active, p.door_id, d.no as door_no,
           coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id), 0) as balance,
           coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id
                     and l.kind in ('charge', 'charge_reversed', 'fee')), 0) as charged,
           coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id and l.item = ''
                     and l.kind in ('charge', 'charge_reversed', 'fee')), 0) as price,
           exists (select 1 from payments x where x.stay_id = s.id and x.state = 'processing')
               as payment_processing,
           exists (select 1 from payments x where x.stay_id = s.id and x.state = 'unknown')
               as payment_unknown,
           {STEPS} as cancellation_steps, {quota.HELD} as quota_month,
           {ticket.HELD} as ticket_book_id,
           exists (select 1 from entry_keys k where k.space_id = s.space_id and k.stay_id <> s.id
                   and k.state not in ('revoked', 'failed')) as space_quarantined,
           exists (select 1 from stays o where o.space_id = s.space_id and o.id <> s.id
                   and o.state = 'admitted') as space_occupied
    from stays s
    join facilities f on f.id = s.facility_id
    join spaces p on p.id = s.space_id
    join doors d on d.id = p.door_id
    join guests g on g.id = s.guest_id
    left join entrances e on e.id = d.entrance_id
    left join plans plan on plan.id = s.plan_id
    left join memberships m on m.id = s.membership_id
    where s.id = :stay
"""


# A statement that waits for a lock still sees what it saw before it waited, sums and `exists`
# included. So the lock comes first, and the facts are read by a statement that begins after it.
# The space is locked as well: whether it is occupied is a fact of two stays. The membership is
# locked before the stay, as its end locks them; the count is settled first. It is shared, since
# nothing here changes it: against its end's own lock, which a key share would let through.
# Between them comes an entrance that counts who is inside: two must not take its last place.
# Whoever moves holds the other space and its entrance too, each in the order of their ids.
_LOCKS = """
    with held as materialized (
        select m.id from memberships m join stays s on s.membership_id = m.id
        where s.id = :stay
        for share of m
    ), counted as materialized (
        select e.id from stays s
        join spaces p on {spaces}
        join doors d on d.id = p.door_id
        join entrances e on e.id = d.entrance_id and e.capacity is not null
        where s.id = :stay and (select count(*) from held) >= 0
        order by e.id
        for no key update of e
    )
    select 1 from stays s join spaces p on {spaces}
    where s.id = :stay and (select count(*) from held) + (select count(*) from counted) >= 0
    order by p.id
    for no key update of s, p
"""
_LOCK = _LOCKS.format(spaces="p.id = s.space_id")
_LOCK_BOTH = _LOCKS.format(spaces="p.id in (s.space_id, :space)")


def stay(tx: Tx, stay_id: UUID, *, lock: bool = True) -> Row | None:
    """The stay with its house, space, door, membership and money. Locked, so that no two verbs
    decide on the same facts at once; `lock=False` for pages that only show what the gate would
    say."""
    if lock:
        tx.run(_LOCK, stay=stay_id)
    return tx.row(_STAY, stay=stay_id)


def stay_to_move(tx: Tx, stay_id: UUID, space_id: UUID) -> Row | None:
    """The same, locked together with the space that it would have."""
    tx.run(_LOCK_BOTH, stay=stay_id, space=space_id)
    return stay(tx, stay_id, lock=False)


def space_to_move(tx: Tx, stay: Row, space_id: UUID) -> Row | None:
    """Where the stay would be, and what the gate decides on there. `stay_to_move` has locked it."""
    return tx.row(
        f"""
        select s.id, s.no, s.code, s.active, f.time_zone, {ways_in.facts("cast(:plan as uuid)")},
               case when e.capacity is null then 0 else {ways_in.inside("e.id", ":stay")} end
                   as entrance_inside
        from spaces s join facilities f on f.id = s.facility_id
        join doors d on d.id = s.door_id
        left join entrances e on e.id = d.entrance_id
        where s.id = :space
        """,
        space=space_id,
        stay=stay.id,
        plan=stay.plan_id,
    )


def move_request(stay: Row, space: Row, now: datetime) -> CheckinRequest:
    """Whoever it is was asked about where they booked and came in, and is not asked again."""
    return replace(
        checkin_request(stay, now, ()),
        asks="move",
        in_house=stay.state == "admitted",
        same_entrance=stay.entrance_id is not None and stay.entrance_id == space.entrance_id,
        entrance=entrance(space, space.entrance_inside),
    )


def checkin_request(facts: Row, now: datetime, listed: tuple[Listed, ...]) -> CheckinRequest:
    """`listed`: what `blocklist.naming` found of its guest."""
    return CheckinRequest(
        now=now,
        starts_at=facts.starts_at,
        ends_at=facts.ends_at,
        early_minutes=facts.early_minutes,
        balance_due=int(facts.balance),
        currency=facts.currency,
        payment_processing=facts.payment_processing,
        payment_unknown=facts.payment_unknown,
        space_active=facts.space_active,
        space_quarantined=facts.space_quarantined,
        space_occupied=facts.space_occupied,
        withheld=benefits.withheld(facts, now),
        walk_in=facts.source == "walk_in",
        entrance=entrance(facts, facts.entrance_inside),
        lodging=facts.plan_kind != "day_use",
        person=blocklist.person(facts),
        listed=listed,
        register_missing=facts.register_missing,
        persons=facts.persons,
    )


def entrance(facts: Row, inside: int) -> Entrance | None:
    if facts.entrance_id is None:
        return None
    return Entrance(
        id=facts.entrance_id,
        mode=facts.entrance_mode,
        week=opening.week(facts.entrance_opens, facts.entrance_closes),
        zone=facts.time_zone,
        capacity=facts.entrance_capacity,
        inside=inside,
        plan_sold=facts.plan_sold,
    )


def quarantined(tx: Tx, space_id: UUID, *, except_stay: UUID | None = None) -> bool:
    """A key of an earlier stay may still open the space's door."""
    found = tx.scalar(
        """
        select exists (
            select 1 from entry_keys
            where space_id = :space and state not in ('revoked', 'failed')
              and stay_id is distinct from :stay
        )
        """,
        space=space_id,
        stay=except_stay,
    )
    return cast(bool, found)
