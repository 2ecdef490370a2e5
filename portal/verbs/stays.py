"""The stay's verbs: created, admitted, departed, cancelled, no-show, reinstated."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock, ledger, outbox, seal
from portal.db import Actor, Row, Tx, violated
from portal.gates.checkin import Decision, evaluate_checkin_request
from portal.log import request_id
from portal.machines.stay import MACHINE
from portal.money import LARGEST, Money
from portal.move import Moved, move, standing
from portal.move import create as create_row
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies.stay_codes import new_code
from portal.verbs import benefits, facts, guests, keys, lodging_taxes, refunds_owed
from portal.verbs.guests import NewGuest
from portal.verbs.lodging_taxes import Lodging

LONGEST = timedelta(days=366)
SPACE_PERIOD = "ex_stays_space_period"


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


def create(tx: Tx, actor: Actor, wanted: NewStay) -> Outcome:
    """→ reserved. One stay for one form; the space is held from now on. A plan for members needs a
    membership that gives when the stay begins."""
    if again := _made_by(tx, wanted.form_key):
        return Noop(Code.STAY_ALREADY_CREATED, subject=again)
    if code := _impossible(wanted):
        return Refused(code)
    # Before the space, as an end takes its own locks.
    member = _member(tx, wanted)
    if isinstance(member, Refused):
        return member
    space = _space(tx, wanted)
    if isinstance(space, Refused):
        return space

    try:
        with tx.savepoint():
            guest_id = member.guest_id if member else _guest(tx, wanted)
            stay_id = _insert(tx, actor, wanted, space, guest_id)
    except IntegrityError as fault:
        return _not_inserted(tx, wanted, violated(fault), fault)
    if wanted.price:
        _charge(tx, actor, stay_id, wanted.price, space.currency)
    if space.lodging_taxed:
        lodging_taxes.settle(tx, actor, _lodging(wanted, stay_id, space))
    outbox.enqueue(tx, stay_id, "stay_created", str(stay_id), {})
    return Applied(Code.STAY_CREATED, to=MACHINE.initial, subject=stay_id)


def admit(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """reserved → admitted. Orders the door key; the lock worker sets it."""
    stay = _ready(tx, stay_id, "admitted", Code.STAY_ALREADY_ADMITTED, seen)
    if isinstance(stay, Outcome):
        return stay
    now = clock.now()
    request = facts.checkin_request(stay, now)
    decision = evaluate_checkin_request(request)
    if not decision.allowed:
        return _refuse_entry(tx, actor, stay_id, decision, request.digest(), now)

    if not _move(tx, actor, stay, "admitted", "admit", admitted_at=now):
        return _changed(tx, stay_id)
    keys.order(tx, actor, stay)
    return Applied(Code.STAY_ADMITTED, to="admitted", subject=stay_id)


def depart(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """admitted → departed. Orders the removal of every code; the space rests until it is gone."""
    stay = _ready(tx, stay_id, "departed", Code.STAY_ALREADY_DEPARTED, seen)
    if isinstance(stay, Outcome):
        return stay

    if not _move(tx, actor, stay, "departed", "depart", departed_at=clock.now()):
        return _changed(tx, stay_id)
    keys.revoke_all(tx, actor, stay_id, reason="departed")
    return Applied(Code.STAY_DEPARTED, to="departed", subject=stay_id)


def cancel(tx: Tx, actor: Actor, stay_id: UUID, seen: int, fee: int = 0) -> Outcome:
    """reserved, no_show → cancelled. Reverses the charges, keeps `fee`, owes back what is over."""
    stay = _ready(tx, stay_id, "cancelled", Code.STAY_ALREADY_CANCELLED, seen)
    if isinstance(stay, Outcome):
        return stay
    charged = int(stay.charged)
    if not 0 <= fee <= charged:
        return Refused(Code.FEE_EXCEEDS_PRICE, {"amount": Money(charged, stay.currency)})

    if not _move(tx, actor, stay, "cancelled", "cancel", cancelled_at=clock.now()):
        return _changed(tx, stay_id)
    _settle_cancelled(tx, actor, stay, charged, fee)
    outbox.enqueue(
        tx,
        stay_id,
        "stay_cancelled",
        str(stay_id),
        {"fee": fee, "currency": stay.currency},
    )
    return Applied(Code.STAY_CANCELLED, to="cancelled", subject=stay_id)


def mark_no_show(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """reserved → no_show. Frees the space; the money stays as it is until somebody cancels."""
    stay = _ready(tx, stay_id, "no_show", Code.STAY_ALREADY_NO_SHOW, seen)
    if isinstance(stay, Outcome):
        return stay
    if clock.now() < stay.starts_at:
        return Refused(Code.STAY_NOT_YET_LATE, {"starts_at": stay.starts_at})

    if not _move(tx, actor, stay, "no_show", "mark_no_show"):
        return _changed(tx, stay_id)
    return Applied(Code.STAY_NO_SHOW, to="no_show", subject=stay_id)


def reinstate(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """no_show → reserved, where the space is still free."""
    stay = _ready(tx, stay_id, "reinstated", Code.STAY_ALREADY_RESERVED, seen)
    if isinstance(stay, Outcome):
        return stay
    if clock.now() >= stay.ends_at:
        return Refused(Code.STAY_WINDOW_OVER, {"ended_at": stay.ends_at})

    try:
        with tx.savepoint():
            moved = _move(tx, actor, stay, "reinstated", "reinstate")
    except IntegrityError as fault:
        if violated(fault) != SPACE_PERIOD:
            raise
        return Refused(Code.SPACE_TAKEN)
    if not moved:
        return _changed(tx, stay_id)
    return Applied(Code.STAY_REINSTATED, to="reserved", subject=stay_id)


def _ready(tx: Tx, stay_id: UUID, event: str, already: Code, seen: int) -> Row | Outcome:
    """The locked facts, or the answer: not found, nothing to do, or not what the person saw."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.state in {to for _, name, to in MACHINE.pairs() if name == event}:
        return Noop(already, subject=stay_id)
    if not MACHINE.allows(stay.state, event):
        return _changed(tx, stay_id)
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, stay_id))
    return stay


def _move(tx: Tx, actor: Actor, stay: Row, event: str, verb: str, **also: datetime) -> Moved | None:
    return move(
        tx,
        MACHINE,
        stay.id,
        event=event,
        from_state=stay.state,
        actor=actor,
        verb=verb,
        seen=stay.version,
        also=also,
    )


def _changed(tx: Tx, stay_id: UUID) -> Conflict:
    return Conflict(Code.STAY_STATE_CHANGED, standing(tx, MACHINE, stay_id))


def _refuse_entry(
    tx: Tx, actor: Actor, stay_id: UUID, decision: Decision, digest: str, now: datetime
) -> Refused:
    """Every refusal of the gate leaves an audit row with its code and the rule that fired."""
    if decision.code is None:
        raise ValueError("a refusal without a code")
    tx.run(
        """
        insert into gate_audits (facility_id, stay_id, code, rule, digest, actor_kind, actor_id,
            actor_name, request_id, at)
        values (:facility_id, :stay_id, :code, :rule, :digest, :actor_kind, :actor_id,
            :actor_name, :request_id, :at)
        """,
        facility_id=tx.facility_id,
        stay_id=stay_id,
        code=decision.code,
        rule=decision.rule,
        digest=digest,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=request_id(),
        at=now,
    )
    return Refused(decision.code, decision.details)


def _made_by(tx: Tx, form_key: UUID) -> UUID | None:
    found: UUID | None = tx.scalar("select id from stays where form_key = :key", key=form_key)
    return found


def _impossible(wanted: NewStay) -> Code | None:
    if not timedelta(0) < wanted.ends_at - wanted.starts_at <= LONGEST:
        return Code.STAY_TIMES_IMPOSSIBLE
    if not 0 <= wanted.deposit_due <= wanted.price <= LARGEST:
        return Code.DEPOSIT_EXCEEDS_PRICE
    return None


def _member(tx: Tx, wanted: NewStay) -> Row | Refused | None:
    if wanted.membership_id is None:
        return None
    return benefits.to_book_with(tx, wanted.membership_id, wanted.starts_at)


def _space(tx: Tx, wanted: NewStay) -> Row | Refused:
    """Where it may be, and whether its plan is sold to whoever comes. Locked: two who book it at
    once wait for one another here, and not within the exclusion constraint, where PostgreSQL would
    call it a deadlock."""
    space = tx.row(
        """
        select s.no, s.active, f.currency, cast(:plan as uuid) is null or plan.active as plan_known,
               plan.members_only, f.time_zone, plan.kind = 'lodging' and exists (
                   select 1 from lodging_tax_tables) as lodging_taxed
        from spaces s join facilities f on f.id = s.facility_id
        left join plans plan on plan.id = :plan
        where s.id = :id
        for no key update of s
        """,
        id=wanted.space_id,
        plan=wanted.plan_id,
    )
    if space is None or not space.plan_known:
        return Refused(Code.NOT_FOUND)
    if space.members_only and wanted.membership_id is None:
        return Refused(Code.MEMBERS_ONLY_PLAN)
    return space if space.active else Refused(Code.SPACE_NOT_USABLE)


def _guest(tx: Tx, wanted: NewStay) -> UUID:
    if wanted.guest is None:
        raise ValueError("a stay of nobody: neither a guest nor a member")
    return guests.add(tx, wanted.guest)


def _insert(tx: Tx, actor: Actor, wanted: NewStay, space: Row, guest_id: UUID) -> UUID:
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
            "source": wanted.source,
            "starts_at": wanted.starts_at,
            "ends_at": wanted.ends_at,
            "currency": space.currency,
            "deposit_due": wanted.deposit_due,
            "note": wanted.note,
            "token_hash": seal.token_hash(token),
            "token_sealed": seal.close(token),
            "form_key": wanted.form_key,
        },
    )
    if stay_id is None:
        raise RuntimeError("an insert without a conflict clause returned nothing")
    return stay_id


def _not_inserted(tx: Tx, wanted: NewStay, constraint: str, fault: IntegrityError) -> Outcome:
    if constraint == SPACE_PERIOD:
        return Refused(Code.SPACE_TAKEN)
    if again := _made_by(tx, wanted.form_key):
        return Noop(Code.STAY_ALREADY_CREATED, subject=again)
    raise fault


def _charge(tx: Tx, actor: Actor, stay_id: UUID, price: int, currency: str) -> None:
    ledger.book(tx, actor, "charge", stay_id=stay_id, amount=price, currency=currency)


def _lodging(wanted: NewStay, stay_id: UUID, space: Row) -> Lodging:
    return Lodging(
        stay_id, wanted.starts_at, wanted.ends_at, wanted.price, space.currency, space.time_zone
    )


def _settle_cancelled(tx: Tx, actor: Actor, stay: Row, charged: int, fee: int) -> None:
    if charged:
        ledger.take_back(tx, actor, stay.id)
    if fee:
        ledger.book(tx, actor, "fee", stay_id=stay.id, amount=fee, currency=stay.currency)
    owed = -(int(stay.balance) - charged + fee)
    if owed > 0:
        refunds_owed.owe_back(tx, actor, stay.id, owed, reason="cancellation")
