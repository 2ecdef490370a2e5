"""A stay is made: what can be booked, where, for whom, and what it takes and costs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock, ledger, outbox, seal, ways_in
from portal.db import Actor, Row, Tx, violated
from portal.gates.checkin import CheckinRequest
from portal.machines.stay import MACHINE
from portal.models import Stay
from portal.models.stay import MOST_PERSONS, SPACE_PERIOD
from portal.money import LARGEST
from portal.move import create as create_row
from portal.outcome import Applied, Code, Noop, Outcome, Refused, RefusedError
from portal.policies import deposit_hold
from portal.policies.stay_codes import new_code
from portal.verbs import (
    benefits,
    blocklist,
    deposit_reminders,
    facts,
    gate,
    guests,
    lodging_taxes,
    quota,
    ticket_books,
)
from portal.verbs.guests import NewGuest
from portal.verbs.lodging_taxes import Lodging
from portal.verbs.ticket_books import Visit

LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class NewStay:
    """Amounts in the smallest unit; instants aware; `form_key` makes a double submit one stay.
    `guest` is who comes, or None where a membership's own person does."""

    form_key: UUID
    guest: NewGuest | None
    space_id: UUID
    plan_id: UUID | None
    starts_at: datetime
    ends_at: datetime
    price: int
    deposit_due: int = 0
    source: str = "desk"
    note: str = ""
    membership_id: UUID | None = None
    persons: int = 1
    ticket: str | None = None
    """The code of a ticket book, which then pays it: the price is 0."""


def create(tx: Tx, actor: Actor, wanted: NewStay) -> Outcome:
    """→ reserved. One stay for one form; the space is held from now on. The gate is asked as it is
    when the guest comes in: for whom the entrance is, what is sold there, and to whom; of a walk-in
    also whether it is open and has room. What only a membership gives takes one visit of that
    month, and what a ticket pays takes the ticket."""
    if again := tx.made_by(Stay, wanted.form_key):
        return Noop(Code.STAY_ALREADY_CREATED, subject=again)
    if refusal := _impossible(wanted):
        return refusal
    # Before the space, as an end takes its own locks.
    member = _member(tx, wanted)
    if isinstance(member, Refused):
        return member
    space = _space(tx, wanted)
    if isinstance(space, Refused):
        return space
    said = gate.ask(tx, actor, _request(tx, wanted, space, member))
    if isinstance(said, Refused):
        return said

    deposit_by = _deposit_by(wanted, space)
    try:
        with tx.savepoint():
            guest_id = member.guest_id if member else guests.add(tx, _named(wanted))
            stay_id = _insert(tx, actor, wanted, space, guest_id, deposit_by)
            _take_visit(tx, actor, stay_id, wanted, space, member)
    except RefusedError as none_left:
        return none_left.refusal
    except IntegrityError as fault:
        return _not_inserted(tx, wanted, violated(fault), fault)
    _charge(tx, actor, stay_id, wanted, space)
    outbox.enqueue(tx, stay_id, "stay_created", str(stay_id), {})
    deposit_reminders.put(tx, stay_id, space.asked_at, deposit_by)
    return Applied(Code.STAY_CREATED, to=MACHINE.initial, subject=stay_id)


def _impossible(wanted: NewStay) -> Refused | None:
    if not timedelta(0) < wanted.ends_at - wanted.starts_at <= LONGEST:
        return Refused(Code.STAY_TIMES_IMPOSSIBLE)
    if not 0 <= wanted.deposit_due <= wanted.price <= LARGEST:
        return Refused(Code.DEPOSIT_EXCEEDS_PRICE)
    if wanted.ticket and wanted.membership_id:
        return Refused(Code.TICKET_NOT_FOR_MEMBERS)
    given = wanted.ticket or (wanted.membership_id and not wanted.price)
    return too_many(wanted.persons, given=bool(given))


def too_many(persons: int, *, given: bool) -> Refused | None:
    """Whether a stay can be of so many. `given`: by a membership or a ticket, whose visit is one
    person's."""
    if not 1 <= persons <= MOST_PERSONS:
        return Refused(Code.STAY_PERSONS_IMPOSSIBLE, {"count": MOST_PERSONS})
    return Refused(Code.VISIT_IS_ONE_PERSONS) if given and persons > 1 else None


def _member(tx: Tx, wanted: NewStay) -> Row | Refused | None:
    if wanted.membership_id is None:
        return None
    return benefits.to_book_with(tx, wanted.membership_id, wanted.starts_at)


def _space(tx: Tx, wanted: NewStay) -> Row | Refused:
    """Where it may be, and what the gate decides on there. Locked: two who book it at once wait for
    one another here, and not within the exclusion constraint, where PostgreSQL would call it a
    deadlock. An entrance that counts who is inside is locked before it; a plan that is changed
    meanwhile is waited for."""
    space = tx.row(
        f"""
        with counted as materialized (
            select e.id from spaces s
            join doors d on d.id = s.door_id
            join entrances e on e.id = d.entrance_id and e.capacity is not null
            where s.id = :id
            for no key update of e
        ), plan as materialized (
            select * from plans where id = :plan for share
        )
        select s.no, s.active, f.currency, f.time_zone, f.early_minutes, f.deposit_hours,
               now() as asked_at,
               cast(:plan as uuid) is null or plan.id is not null as plan_known,
               plan.id is null or plan.active as plan_on_sale, plan.members_only, plan.unit_price,
               coalesce(plan.tax_class, 'standard') as tax_class, plan.kind as plan_kind,
               {ways_in.facts("cast(:plan as uuid)")}, (
                   select t.id from cancellation_terms t
                   where t.policy_id = plan.cancellation_policy_id order by t.version desc limit 1
               ) as terms_id,
               plan.kind = 'lodging' and exists (select 1 from lodging_tax_tables) as lodging_taxed
        from spaces s join facilities f on f.id = s.facility_id
        join doors d on d.id = s.door_id
        left join entrances e on e.id = d.entrance_id
        left join plan on true
        where s.id = :id and (select count(*) from counted) >= 0
        for no key update of s
        """,
        id=wanted.space_id,
        plan=wanted.plan_id,
    )
    if space is None or not space.plan_known:
        return Refused(Code.NOT_FOUND)
    if not space.plan_on_sale:
        return Refused(Code.STAY_PLAN_NOT_ON_SALE)
    return space if space.active else Refused(Code.SPACE_NOT_USABLE)


def _request(tx: Tx, wanted: NewStay, space: Row, member: Row | None) -> CheckinRequest:
    """What the gate is asked where a stay is made: as for an entry, but nothing is owed yet."""
    person = blocklist.person(member) if member else guests.marks(_named(wanted))
    unkept = space.members_only and member is None
    return CheckinRequest(
        now=clock.now(),
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        early_minutes=space.early_minutes,
        balance_due=0,
        currency=space.currency,
        payment_processing=False,
        payment_unknown=False,
        space_active=space.active,
        space_quarantined=False,
        space_occupied=False,
        withheld=Code.MEMBERS_ONLY_PLAN if unkept else None,
        asks="booking",
        walk_in=wanted.source == "walk_in",
        entrance=facts.entrance(space, _inside(tx, wanted, space)),
        lodging=space.plan_kind != "day_use",
        person=person,
        listed=blocklist.naming(tx, person),
        persons=wanted.persons,
    )


def _inside(tx: Tx, wanted: NewStay, space: Row) -> int:
    """How many are behind the entrance, where it counts: read after its lock was granted."""
    if wanted.source != "walk_in" or space.entrance_capacity is None:
        return 0
    counted = ways_in.inside(":entrance", "null")
    return int(tx.scalar(f"select {counted}", entrance=space.entrance_id))


def _named(wanted: NewStay) -> NewGuest:
    if wanted.guest is None:
        raise ValueError("a stay of nobody: neither a guest nor a member")
    return wanted.guest


def _take_visit(
    tx: Tx, actor: Actor, stay_id: UUID, wanted: NewStay, space: Row, member: Row | None
) -> None:
    """Of the ticket book that pays it, or of the membership that gives it. Raises RefusedError."""
    if wanted.ticket:
        visit = Visit(stay_id, wanted.plan_id, wanted.starts_at, space.time_zone)
        ticket_books.take(tx, actor, wanted.ticket, visit)
    elif member and not wanted.price:
        quota.take(tx, actor, member, stay_id, wanted.starts_at)


def _insert(
    tx: Tx,
    actor: Actor,
    wanted: NewStay,
    space: Row,
    guest_id: UUID,
    deposit_by: datetime | None,
) -> UUID:
    token = seal.new_token()
    stay_id = create_row(
        tx,
        MACHINE,
        actor,
        "create",
        {
            "facility_id": tx.facility_id,
            "code": new_code(),
            "guest_id": guest_id,
            "space_id": wanted.space_id,
            "space_no": space.no,
            "plan_id": wanted.plan_id,
            "membership_id": wanted.membership_id,
            "cancellation_terms_id": space.terms_id,
            "source": wanted.source,
            "starts_at": wanted.starts_at,
            "ends_at": wanted.ends_at,
            "currency": space.currency,
            "deposit_due": wanted.deposit_due,
            "deposit_by": deposit_by,
            "tax_class": space.tax_class,
            "unit_price": space.unit_price,
            "persons": wanted.persons,
            "note": wanted.note,
            "token_hash": seal.token_hash(token),
            "token_sealed": seal.close(token),
            "form_key": wanted.form_key,
        },
    )
    if stay_id is None:
        raise RuntimeError("an insert without a conflict clause returned nothing")
    return stay_id


def _deposit_by(wanted: NewStay, space: Row) -> datetime | None:
    if not wanted.deposit_due:
        return None
    return deposit_hold.deadline(space.deposit_hours, space.asked_at, wanted.starts_at)


def _not_inserted(tx: Tx, wanted: NewStay, constraint: str, fault: IntegrityError) -> Outcome:
    if constraint == SPACE_PERIOD:
        return Refused(Code.SPACE_TAKEN)
    if again := tx.made_by(Stay, wanted.form_key):
        return Noop(Code.STAY_ALREADY_CREATED, subject=again)
    raise fault


def _charge(tx: Tx, actor: Actor, stay_id: UUID, wanted: NewStay, space: Row) -> None:
    """The price as it was agreed, and the lodging tax that follows from it."""
    price, currency = wanted.price, space.currency
    if price:
        ledger.book(tx, actor, "charge", stay_id=stay_id, amount=price, currency=currency)
    if space.lodging_taxed:
        times, house = (wanted.starts_at, wanted.ends_at), (currency, space.time_zone)
        lodging_taxes.settle(tx, actor, Lodging(stay_id, *times, price, *house, wanted.persons))
