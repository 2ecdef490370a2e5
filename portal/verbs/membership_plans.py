"""The verbs of what can be joined: offered, changed, retired."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal.db import Actor, Row, Tx, violated
from portal.models import MembershipPlan
from portal.money import Money, below_card_minimum
from portal.move import record, row_standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, Standing

KIND = "membership_plan"
ONE_CODE = "uq_membership_plans_facility_id_code"
TEXTS = ("terms_ja", "terms_en")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the next application is held to. `price` in the smallest unit, for a month or a year;
    `monthly_quota` None for as many visits as one likes."""

    name_ja: str
    name_en: str
    price: int
    billed_every: str
    billing: str
    monthly_quota: int | None
    terms_ja: str
    terms_en: str
    terms_version: str

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class NewPlan:
    """`code` is in the address at which one joins; `form_key` makes a double submit one plan."""

    form_key: UUID
    code: str
    terms: Terms


def create(tx: Tx, actor: Actor, wanted: NewPlan) -> Outcome:
    """→ sold. One plan for one form; its code is fixed from now on."""
    if again := tx.made_by(MembershipPlan, wanted.form_key):
        return Noop(Code.PLAN_ALREADY_CREATED, subject=again)
    if refusal := _too_small(tx, wanted.terms):
        return refusal
    try:
        with tx.savepoint():
            plan_id = _insert(tx, wanted)
    except IntegrityError as fault:
        return _not_inserted(tx, wanted, fault)
    record(tx, actor, KIND, plan_id, "created", (None, "sold"), "create", wanted.code)
    return Applied(Code.PLAN_CREATED, to="sold", subject=plan_id)


def change(tx: Tx, actor: Actor, plan_id: UUID, seen: int, wanted: Terms) -> Outcome:
    """sold → sold. For the next application; whoever has joined keeps what they agreed to."""
    plan = _held(tx, plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    changed = _changed(plan, wanted)
    if not changed:
        return Noop(Code.PLAN_UNCHANGED, subject=plan_id)
    if plan.version != seen:
        return Conflict(Code.STALE_PAGE, _standing(tx, plan))
    if refusal := _unfit(tx, plan, changed, wanted):
        return refusal

    named = ", ".join(f"{name} = :{name}" for name in changed)
    tx.run(
        f"update membership_plans set {named}, version = version + 1 where id = :id",
        id=plan_id,
        **changed,
    )
    record(tx, actor, KIND, plan_id, "changed", ("sold", "sold"), "change", _told(plan, changed))
    return Applied(Code.PLAN_UPDATED, to="sold", subject=plan_id)


def retire(tx: Tx, actor: Actor, plan_id: UUID, seen: int) -> Outcome:
    """sold → retired. Nobody joins it any more, and the worker ends each membership of it."""
    plan = _held(tx, plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    if plan.retired_at is not None:
        return Noop(Code.PLAN_ALREADY_RETIRED, subject=plan_id)
    if plan.version != seen:
        return Conflict(Code.STALE_PAGE, _standing(tx, plan))

    # By the database's clock, by which the worker looks for what is due.
    tx.run(
        """
        update membership_plans set sold = false, retired_at = now(), version = version + 1
        where id = :id
        """,
        id=plan_id,
    )
    record(tx, actor, KIND, plan_id, "retired", ("sold", "retired"), "retire")
    tx.ring("memberships")
    return Applied(Code.PLAN_NOW_RETIRED, to="retired", subject=plan_id)


def keep_answer(tx: Tx, membership_id: UUID, refused: Code) -> None:
    """What stood in the way of an end, for whoever looks why it is still to do. The end itself
    forgets it."""
    tx.run(
        "update memberships set end_refusal = :code where id = :id",
        code=str(refused),
        id=membership_id,
    )


def _insert(tx: Tx, wanted: NewPlan) -> UUID:
    return tx.add(
        MembershipPlan,
        facility_id=tx.facility_id,
        code=wanted.code,
        form_key=wanted.form_key,
        **wanted.terms.values(),
    )


def _not_inserted(tx: Tx, wanted: NewPlan, fault: IntegrityError) -> Outcome:
    """The same form sent twice at once has the same code, too."""
    if again := tx.made_by(MembershipPlan, wanted.form_key):
        return Noop(Code.PLAN_ALREADY_CREATED, subject=again)
    if violated(fault) == ONE_CODE:
        return Refused(Code.PLAN_CODE_TAKEN)
    raise fault


def _held(tx: Tx, plan_id: UUID) -> Row | None:
    """Whoever applies meanwhile waits, or is waited for."""
    return tx.row(
        """
        select id, version, retired_at, name_ja, name_en, price, billed_every, billing,
               monthly_quota, terms_ja, terms_en, terms_version
        from membership_plans where id = :id
        for no key update
        """,
        id=plan_id,
    )


def _changed(plan: Row, wanted: Terms) -> dict[str, Any]:
    return {name: value for name, value in wanted.values().items() if value != getattr(plan, name)}


def _unfit(tx: Tx, plan: Row, changed: Mapping[str, Any], wanted: Terms) -> Refused | None:
    if plan.retired_at is not None:
        return Refused(Code.PLAN_NOT_SOLD)
    if changed.keys() & set(TEXTS) and "terms_version" not in changed:
        # Each membership names the version that was agreed to: it must lead to one text.
        return Refused(Code.TERMS_VERSION_KEPT)
    return _too_small(tx, wanted)


def _too_small(tx: Tx, wanted: Terms) -> Refused | None:
    if wanted.billing != "card":
        return None
    currency = tx.scalar("select currency from facilities where id = :id", id=tx.facility_id)
    price = Money(wanted.price, currency)
    if wanted.price and not below_card_minimum(price):
        return None
    return Refused(Code.PLAN_PRICE_BELOW_MINIMUM, {"amount": price})


def _told(plan: Row, changed: Mapping[str, Any]) -> str:
    """For the record, as JSON: what each was and is; of a text, only that it is another."""
    told = {
        name: [] if name in TEXTS else [getattr(plan, name), value]
        for name, value in changed.items()
    }
    return json.dumps(told, ensure_ascii=False)


def _standing(tx: Tx, plan: Row) -> Standing:
    state = "sold" if plan.retired_at is None else "retired"
    return row_standing(tx, KIND, plan.id, state, plan.version)
