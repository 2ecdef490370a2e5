"""Changes within a stay: another space, other times, more or fewer persons. The state stays, the
version moves on."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock, ledger, outbox
from portal.db import Actor, Row, Tx, violated
from portal.machines.stay import MACHINE
from portal.models.stay import SPACE_PERIOD
from portal.money import LARGEST
from portal.move import note, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, RefusedError
from portal.policies import deposit_hold
from portal.verbs import (
    benefits,
    deposit_reminders,
    facts,
    gate,
    keys,
    lodging_taxes,
    quota,
    refunds_owed,
    registers,
    ticket_books,
)
from portal.verbs.bookings import LONGEST, too_many
from portal.verbs.lodging_taxes import Lodging

CHANGEABLE = ("reserved", "admitted")


def move_to(tx: Tx, actor: Actor, stay_id: UUID, seen: int, space_id: UUID) -> Outcome:
    """Another space, where the gate allows it. A guest in house gets a code for the new door; the
    old one is removed."""
    stay = _ready(tx, facts.stay_to_move(tx, stay_id, space_id), seen)
    if isinstance(stay, Outcome):
        return stay
    if stay.space_id == space_id:
        return Noop(Code.STAY_ALREADY_THERE, subject=stay_id)
    space = facts.space_to_move(tx, stay, space_id)
    if space is None:
        return Refused(Code.NOT_FOUND)
    if not space.active:
        return Refused(Code.SPACE_NOT_USABLE)
    said = gate.ask(tx, actor, facts.move_request(stay, space, clock.now()), stay_id)
    if isinstance(said, Refused):
        return said
    if stay.state == "admitted" and facts.quarantined(tx, space_id, except_stay=stay_id):
        return Refused(Code.SPACE_QUARANTINED)
    if stay.state == "admitted" and benefits.taken_back(stay):
        return Refused(Code.MEMBERS_ONLY_PLAN)
    if not _update(tx, stay, {"space_id": space_id, "space_no": space.no}):
        return Refused(Code.SPACE_TAKEN)
    note(tx, actor, MACHINE, stay_id, stay.state, "move_to", f"{stay.space_code} → {space.code}")
    if stay.state == "admitted":
        _new_key(tx, actor, stay_id)
    return Applied(Code.STAY_MOVED, to=stay.state, subject=stay_id)


def change_times(
    tx: Tx,
    actor: Actor,
    stay_id: UUID,
    seen: int,
    starts_at: datetime,
    ends_at: datetime,
    price_change: int,
) -> Outcome:
    """Longer, shorter or later. The same code goes on; `price_change` (smallest unit, signed) is
    booked with it. The start of a guest in house stays."""
    stay = _ready(tx, facts.stay(tx, stay_id), seen)
    if isinstance(stay, Outcome):
        return stay
    if (starts_at, ends_at, price_change) == (stay.starts_at, stay.ends_at, 0):
        return Noop(Code.STAY_TIMES_UNCHANGED, subject=stay_id)
    if code := _impossible(stay, starts_at, ends_at, price_change):
        return Refused(code)
    if too_late := _too_late(tx, stay, starts_at):
        return too_late
    try:
        with tx.savepoint():
            deposit_by = _deposit_by(stay, starts_at)
            times = {"starts_at": starts_at, "ends_at": ends_at, "deposit_by": deposit_by}
            free = _update(tx, stay, times)
            if free:
                quota.follow(tx, actor, stay, starts_at)
    except RefusedError as none_left:
        return none_left.refusal
    if not free:
        return Refused(Code.SPACE_TAKEN)
    was = f"{stay.starts_at.isoformat()}/{stay.ends_at.isoformat()}"
    now = f"{starts_at.isoformat()}/{ends_at.isoformat()}"
    note(tx, actor, MACHINE, stay_id, stay.state, "change_times", f"{was} → {now}")
    _reprice(tx, actor, stay, price_change, (starts_at, ends_at), stay.persons)
    if deposit_by != stay.deposit_by:
        deposit_reminders.put(tx, stay_id, stay.asked_at, deposit_by)
    told_with_the_key = stay.state == "admitted" and keys.retime(tx, actor, stay, ends_at)
    if not told_with_the_key:
        outbox.enqueue(tx, stay_id, "stay_changed", f"{stay_id}:{seen + 1}", {})
    return Applied(Code.STAY_TIMES_CHANGED, to=stay.state, subject=stay_id)


def change_persons(tx: Tx, actor: Actor, stay_id: UUID, seen: int, persons: int) -> Outcome:
    """More or fewer who come. The price stays; the lodging tax is settled anew. Of fewer, the
    register lets those go who are too many."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.persons == persons:
        return Noop(Code.STAY_PERSONS_UNCHANGED, subject=stay_id)
    if answer := _unready(tx, stay, seen):
        return answer
    if refusal := too_many(persons, given=_is_given(stay)) or _kept_out(tx, actor, stay, persons):
        return refusal

    _update(tx, stay, {"persons": persons})
    what = f"{stay.persons} → {persons}"
    note(tx, actor, MACHINE, stay_id, stay.state, "change_persons", what)
    registers.let_go(tx, actor, stay)
    _reprice(tx, actor, stay, 0, (stay.starts_at, stay.ends_at), persons)
    return Applied(Code.STAY_PERSONS_CHANGED, to=stay.state, subject=stay_id)


def _is_given(stay: Row) -> bool:
    """By a membership or a ticket, and not paid for."""
    of_member = stay.membership_id is not None and stay.costs_nothing
    return bool(of_member or stay.ticket_book_id)


def _ready(tx: Tx, stay: Row | None, seen: int) -> Row | Outcome:
    if stay is None:
        return Refused(Code.NOT_FOUND)
    return _unready(tx, stay, seen) or stay


def _unready(tx: Tx, stay: Row, seen: int) -> Outcome | None:
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, stay.id))
    return None if stay.state in CHANGEABLE else Refused(Code.STAY_OVER)


def _kept_out(tx: Tx, actor: Actor, stay: Row, persons: int) -> Refused | None:
    """Where the guest counts as inside, the gate decides on whoever joins; of any other stay it
    decides when they come in."""
    in_house = stay.state == "admitted"
    if persons <= stay.persons or not (in_house or stay.source == "walk_in"):
        return None
    asked = in_house and stay.register_required and stay.plan_kind == "lodging"
    request = replace(
        facts.checkin_request(stay, clock.now(), ()),
        joins=True,
        persons=persons,
        register_missing=asked and stay.registered < persons,
    )
    said = gate.ask(tx, actor, request, stay.id)
    return said if isinstance(said, Refused) else None


def _impossible(
    stay: Row, starts_at: datetime, ends_at: datetime, price_change: int
) -> Code | None:
    if not timedelta(0) < ends_at - starts_at <= LONGEST:
        return Code.STAY_TIMES_IMPOSSIBLE
    if stay.state == "admitted" and (starts_at != stay.starts_at or ends_at <= clock.now()):
        return Code.STAY_TIMES_IMPOSSIBLE
    if not 0 <= int(stay.price) + price_change <= LARGEST:
        return Code.PRICE_BELOW_ZERO
    return None


def _deposit_by(stay: Row, starts_at: datetime) -> datetime | None:
    """The deadline of a deposit is never after arrival."""
    if starts_at == stay.starts_at:
        return cast("datetime | None", stay.deposit_by)
    return deposit_hold.moved(stay.deposit_by, starts_at, stay.asked_at)


def _too_late(tx: Tx, stay: Row, starts_at: datetime) -> Refused | None:
    """For the membership or the ticket that gives it."""
    if benefits.begins_too_late(stay, starts_at) and starts_at != stay.starts_at:
        return Refused(Code.MEMBERS_ONLY_PLAN)
    return ticket_books.lasts(tx, stay, starts_at)


def _update(tx: Tx, stay: Row, values: dict[str, Any]) -> bool:
    """False when the space is taken then: the database's own constraint says so."""
    changes = ", ".join(f"{name} = :{name}" for name in values)
    try:
        with tx.savepoint():
            tx.run(
                f"update stays set {changes}, version = version + 1 where id = :id",
                id=stay.id,
                **values,
            )
    except IntegrityError as fault:
        if violated(fault) != SPACE_PERIOD:
            raise
        return False
    return True


def _reprice(
    tx: Tx, actor: Actor, stay: Row, change: int, times: tuple[datetime, datetime], persons: int
) -> None:
    """The price as it was agreed, the lodging tax as it follows from it; what is over goes back."""
    if change:
        ledger.book(
            tx,
            actor,
            "charge" if change > 0 else "charge_reversed",
            stay_id=stay.id,
            amount=abs(change),
            currency=stay.currency,
            memo="times changed",
        )
    if stay.lodging_taxed:
        price = int(stay.price) + change
        lodging = Lodging(stay.id, *times, price, stay.currency, stay.time_zone, persons)
        change += lodging_taxes.settle(tx, actor, lodging)
    owed = -(int(stay.balance) + change)
    if change and owed > 0:
        refunds_owed.owe_back(tx, actor, stay.id, owed, reason="cancellation")


def _new_key(tx: Tx, actor: Actor, stay_id: UUID) -> None:
    stay = facts.stay(tx, stay_id)
    if stay is None:
        raise LookupError("the stay left the scope in mid-verb")
    keys.revoke_all(tx, actor, stay_id, reason="moved")
    keys.order(tx, actor, stay)
