"""The verbs of what a stay is sold as: made, changed, withdrawn from sale, sold again. Each is for
the bookings that follow: a stay keeps the price and the class of tax that it was booked at."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock
from portal.db import Actor, Row, Tx, violated
from portal.models import Plan
from portal.money import LARGEST, Money, below_card_minimum
from portal.move import record, row_standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, Standing

KIND = "plan"
ONE_CODE = "uq_plans_facility_id_code"
FIXED = ("kind", "unit")
"""Once a stay has been booked: what the gate asks for a refusal, the register and the lodging tax
hang on the one, and what its price is for on the other."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the next booking is held to. `unit_price` and `deposit` in the smallest unit, the price
    for one night, hour or visit."""

    name_ja: str
    name_en: str
    kind: str
    unit: str
    unit_price: int
    deposit: int
    tax_class: str
    members_only: bool

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class NewPlan:
    """`code` is the house's own name for it; `form_key` makes a double submit one plan."""

    form_key: UUID
    code: str
    terms: Terms


def create(tx: Tx, actor: Actor, wanted: NewPlan) -> Outcome:
    """→ sold, at the desk. One plan for one form; its code is fixed from now on."""
    if again := tx.made_by(Plan, wanted.form_key):
        return Noop(Code.PLAN_ALREADY_CREATED, subject=again)
    if refusal := _unfit(tx, wanted.terms):
        return refusal
    try:
        with tx.savepoint():
            plan_id = tx.add(
                Plan,
                facility_id=tx.facility_id,
                code=wanted.code,
                form_key=wanted.form_key,
                **wanted.terms.values(),
            )
    except IntegrityError as fault:
        return _not_inserted(tx, wanted, fault)
    record(tx, actor, KIND, plan_id, "created", (None, "sold"), "create", wanted.code)
    return Applied(Code.STAY_PLAN_CREATED, to="sold", subject=plan_id)


def change(tx: Tx, actor: Actor, plan_id: UUID, seen: int, wanted: Terms) -> Outcome:
    """For the bookings that follow, on sale or not. That it is for members alone holds at the gate
    at once."""
    plan = _held(tx, plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    changed = _changed(plan, wanted)
    if not changed:
        return Noop(Code.PLAN_UNCHANGED, subject=plan_id)
    if plan.version != seen:
        return Conflict(Code.STALE_PAGE, _standing(tx, plan))
    if changed.keys() & set(FIXED) and _booked(tx, plan_id):
        return Refused(Code.STAY_PLAN_KIND_FIXED)
    if refusal := _unfit(tx, wanted):
        return refusal

    named = ", ".join(f"{name} = :{name}" for name in changed)
    tx.run(f"update plans set {named}, version = version + 1 where id = :id", id=plan_id, **changed)
    state = _state(plan)
    record(tx, actor, KIND, plan_id, "changed", (state, state), "change", _told(plan, changed))
    return Applied(Code.STAY_PLAN_UPDATED, to=state, subject=plan_id)


def withdraw(tx: Tx, actor: Actor, plan_id: UUID, seen: int) -> Outcome:
    """sold → withdrawn. Nobody books it any more; whoever has is let in as before. Refused while
    tickets that were sold still pay for it."""
    plan = _held(tx, plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    if not plan.active:
        return Noop(Code.STAY_PLAN_ALREADY_WITHDRAWN, subject=plan_id)
    if plan.version != seen:
        return Conflict(Code.STALE_PAGE, _standing(tx, plan))
    if last_day := _tickets_until(tx, plan_id):
        return Refused(Code.STAY_PLAN_HAS_TICKETS, {"day": last_day})

    _put(tx, plan_id, active=False)
    record(tx, actor, KIND, plan_id, "withdrawn", ("sold", "withdrawn"), "withdraw")
    return Applied(Code.STAY_PLAN_WITHDRAWN, to="withdrawn", subject=plan_id)


def sell_again(tx: Tx, actor: Actor, plan_id: UUID, seen: int) -> Outcome:
    """withdrawn → sold, where it was sold before."""
    plan = _held(tx, plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    if plan.active:
        return Noop(Code.STAY_PLAN_ALREADY_SOLD, subject=plan_id)
    if plan.version != seen:
        return Conflict(Code.STALE_PAGE, _standing(tx, plan))

    _put(tx, plan_id, active=True)
    record(tx, actor, KIND, plan_id, "sold_again", ("withdrawn", "sold"), "sell_again")
    return Applied(Code.STAY_PLAN_SOLD_AGAIN, to="sold", subject=plan_id)


def _put(tx: Tx, plan_id: UUID, *, active: bool) -> None:
    tx.run(
        "update plans set active = :active, version = version + 1 where id = :id",
        id=plan_id,
        active=active,
    )


def _not_inserted(tx: Tx, wanted: NewPlan, fault: IntegrityError) -> Outcome:
    """The same form sent twice at once has the same code, too."""
    if again := tx.made_by(Plan, wanted.form_key):
        return Noop(Code.PLAN_ALREADY_CREATED, subject=again)
    if violated(fault) == ONE_CODE:
        return Refused(Code.PLAN_CODE_TAKEN)
    raise fault


def _held(tx: Tx, plan_id: UUID) -> Row | None:
    """Whoever books it meanwhile waits, or is waited for."""
    return tx.row(
        """
        select id, version, active, name_ja, name_en, kind, unit, unit_price, deposit, tax_class,
               members_only
        from plans where id = :id
        for no key update
        """,
        id=plan_id,
    )


def _booked(tx: Tx, plan_id: UUID) -> bool:
    """Or sold as tickets. Asked once the plan is held, so that a booking that was waited for
    counts."""
    found = tx.scalar(
        """
        select exists (select 1 from stays where plan_id = :plan)
            or exists (select 1 from ticket_offers where plan_id = :plan)
        """,
        plan=plan_id,
    )
    return bool(found)


def _tickets_until(tx: Tx, plan_id: UUID) -> date | None:
    """The last day on which a ticket that is left pays for it; None where none does."""
    found: date | None = tx.scalar(
        """
        select max(b.last_day) from ticket_books b join facilities f on f.id = b.facility_id
        where b.plan_id = :plan and b.used < b.granted
          and b.last_day >= (cast(:now as timestamptz) at time zone f.time_zone)::date
        """,
        plan=plan_id,
        now=clock.now(),
    )
    return found


def _changed(plan: Row, wanted: Terms) -> dict[str, Any]:
    return {name: value for name, value in wanted.values().items() if value != getattr(plan, name)}


def _unfit(tx: Tx, wanted: Terms) -> Refused | None:
    """Amounts that nobody could pay: a deposit is asked for by card as the price is."""
    currency = tx.scalar("select currency from facilities where id = :id", id=tx.facility_id)
    amounts = [Money(amount, currency) for amount in (wanted.unit_price, wanted.deposit)]
    if any(not 0 <= one.amount <= LARGEST for one in amounts):
        return Refused(Code.STAY_PLAN_AMOUNT_IMPOSSIBLE, {"amount": Money(LARGEST, currency)})
    for one in amounts:
        if below_card_minimum(one):
            return Refused(Code.STAY_PLAN_BELOW_MINIMUM, {"amount": one})
    if wanted.deposit > wanted.unit_price:
        return Refused(Code.DEPOSIT_EXCEEDS_PRICE)
    return None


def _told(plan: Row, changed: Mapping[str, Any]) -> str:
    """For the record, as JSON: what each was and is."""
    told = {name: [getattr(plan, name), value] for name, value in changed.items()}
    return json.dumps(told, ensure_ascii=False)


def _state(plan: Row) -> str:
    return "sold" if plan.active else "withdrawn"


def _standing(tx: Tx, plan: Row) -> Standing:
    return row_standing(tx, KIND, plan.id, _state(plan), plan.version)
