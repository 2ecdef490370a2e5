"""The membership's verbs: applied for, approved, gone on with. Its end has a module of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy.exc import IntegrityError

from portal import seal
from portal.db import Actor, Row, Tx, violated
from portal.edges.errors import EdgeError
from portal.machines.membership import MACHINE
from portal.models import Membership
from portal.move import create as create_row
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.verbs import billing_legs, guests
from portal.verbs import membership_moves as moves
from portal.verbs.billing_legs import Price
from portal.verbs.desk import Desk
from portal.verbs.guests import NewGuest

ONE_LIVE = "uq_memberships_one_live"
ONE_PERSON = "uq_members_facility_id_email_key"
TRIES = 2
APPROVED = ("checkout", "active", "past_due", "scheduled_to_end")


@dataclass(frozen=True, slots=True)
class Application:
    """`confirmation` is what the person saw on the last page, and `seen` the plan's version that it
    was written from; `form_key` makes a double submit one application."""

    form_key: UUID
    plan_id: UUID
    seen: int
    guest: NewGuest
    confirmation: Mapping[str, Any]


def apply(tx: Tx, actor: Actor, wanted: Application) -> Outcome:
    """→ applying. One for one form; one that is alive for a person and a plan. Nobody is held to
    what they have not seen."""
    if again := tx.made_by(Membership, wanted.form_key):
        return Noop(Code.MEMBERSHIP_ALREADY_APPLIED, subject=again)
    plan = tx.row(
        """
        select p.id, p.version, p.billing, p.price, p.billed_every, p.monthly_quota,
               p.terms_version, f.currency
        from membership_plans p join facilities f on f.id = p.facility_id
        where p.id = :plan and p.sold
        for no key update of p
        """,
        plan=wanted.plan_id,
    )
    if plan is None:
        return Refused(Code.PLAN_NOT_IN_CONFIG)
    if plan.version != wanted.seen:
        return Refused(Code.PLAN_CHANGED)

    made = _insert(tx, actor, wanted, plan)
    if not isinstance(made, UUID):
        return made
    moves.tell(tx, made, "membership_applied", str(made))
    return Applied(Code.MEMBERSHIP_APPLIED, to=MACHINE.initial, subject=made)


def approve(desk: Desk, actor: Actor, membership_id: UUID, seen: int) -> Outcome:
    """applying → active for one that is paid at the desk; → checkout for one that the provider
    bills, once it awaits the first payment."""
    with desk.transaction() as tx:
        decided = _approved(tx, actor, membership_id, seen)
    return billing_legs.carry_out(desk, decided)


def _approved(tx: Tx, actor: Actor, membership_id: UUID, seen: int) -> Outcome | UUID:
    membership = moves.held(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if membership.state in APPROVED:
        return Noop(Code.MEMBERSHIP_ALREADY_APPROVED, subject=membership_id)
    if refusal := moves.changed(tx, membership, "applying", seen):
        return refusal
    if membership.plan_retired:
        return Refused(Code.PLAN_RETIRED)
    if membership.billing == "card":
        return billing_legs.begin(tx, actor, membership, "subscribe", {})
    return moves.begin(tx, actor, membership, "approved_for_desk_billing", "approve")


def resume(desk: Desk, actor: Actor, membership_id: UUID, seen: int) -> Outcome:
    """scheduled_to_end → active, while the end lies ahead; at the provider first, if it bills."""
    with desk.transaction() as tx:
        decided = _resumed(tx, actor, membership_id, seen)
    return billing_legs.carry_out(desk, decided)


def _resumed(tx: Tx, actor: Actor, membership_id: UUID, seen: int) -> Outcome | UUID:
    membership = moves.held(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if membership.state == "active":
        return Noop(Code.MEMBERSHIP_NOT_SCHEDULED, subject=membership_id)
    if refusal := moves.changed(tx, membership, "scheduled_to_end", seen):
        return refusal
    if membership.reached:
        return Refused(Code.MEMBERSHIP_END_REACHED)
    if membership.plan_retired:  # one that is retired right now sets the end anew
        return Refused(Code.PLAN_RETIRED)
    if membership.billing == "card":
        return billing_legs.begin(tx, actor, membership, "go_on", {})
    return moves.go_on(tx, actor, membership, "resume")


def switch_plan(desk: Desk, actor: Actor, membership_id: UUID, plan_id: UUID, seen: int) -> Outcome:
    """The same membership on another plan: the same subscription at another price, from its next
    period on. Never a second one."""
    with desk.transaction() as tx:
        asked = _switchable(tx, membership_id, plan_id, seen)
    if not isinstance(asked, dict):
        return asked
    agreed = Price(asked["amount"], asked["currency"], asked["every"])
    try:
        price_id = billing_legs.price_of(desk, plan_id, agreed, str(uuid4()))
    except EdgeError:
        return Refused(Code.BILLING_UNAVAILABLE)
    with desk.transaction() as tx:
        again = _switchable(tx, membership_id, plan_id, seen)
        if not isinstance(again, dict):
            return again
        if again != asked:
            return Refused(Code.PLAN_CHANGED)
        membership = moves.held(tx, membership_id)
        if membership is None:
            return Refused(Code.NOT_FOUND)
        decided = billing_legs.begin(tx, actor, membership, "switch", {**again, "price": price_id})
    return billing_legs.carry_out(desk, decided)


def _switchable(tx: Tx, membership_id: UUID, plan_id: UUID, seen: int) -> Outcome | dict[str, Any]:
    membership = moves.held(tx, membership_id)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if membership.plan_id == plan_id:
        return Noop(Code.MEMBERSHIP_ALREADY_ON_PLAN, subject=membership_id)
    if refusal := moves.changed(tx, membership, "active", seen):
        return refusal
    plan = tx.row(
        """
        select p.price, p.billed_every, p.billing, now.code as was
        from membership_plans p join membership_plans now on now.id = :now
        where p.id = :plan and p.sold
        """,
        plan=plan_id,
        now=membership.plan_id,
    )
    if plan is None or plan.billing != "card" or membership.billing != "card":
        return Refused(Code.PLAN_NOT_IN_CONFIG)
    other = tx.scalar(
        """
        select 1 from memberships
        where member_id = :member and plan_id = :plan and state <> 'ended'
        """,
        member=membership.member_id,
        plan=plan_id,
    )
    if other is not None:
        return Refused(Code.MEMBERSHIP_ALREADY_EXISTS)
    return {
        "plan": str(plan_id),
        "amount": int(plan.price),
        "currency": membership.currency,
        "every": plan.billed_every,
        "from": plan.was,
    }


def _insert(tx: Tx, actor: Actor, wanted: Application, plan: Row) -> UUID | Outcome:
    """Two who apply at once under a new address are one person: the second finds the first's."""
    for _ in range(TRIES):
        try:
            with tx.savepoint():
                return _inserted(tx, actor, wanted, plan)
        except IntegrityError as fault:
            if violated(fault) == ONE_PERSON:
                continue
            if again := tx.made_by(Membership, wanted.form_key):
                return Noop(Code.MEMBERSHIP_ALREADY_APPLIED, subject=again)
            if violated(fault) == ONE_LIVE:
                return Refused(Code.MEMBERSHIP_ALREADY_EXISTS)
            raise
    raise LookupError("an address is taken and belongs to nobody")


def _inserted(tx: Tx, actor: Actor, wanted: Application, plan: Row) -> UUID:
    token = seal.new_token()
    made = create_row(
        tx,
        MACHINE,
        actor,
        "apply",
        {
            "facility_id": tx.facility_id,
            "member_id": _member(tx, wanted.guest),
            "plan_id": plan.id,
            "billing": plan.billing,
            "price": plan.price,
            "currency": plan.currency,
            "billed_every": plan.billed_every,
            "monthly_quota": plan.monthly_quota,
            "terms_version": plan.terms_version,
            "confirmation": json.dumps(dict(wanted.confirmation)),
            "form_key": wanted.form_key,
            "token_hash": seal.token_hash(token),
            "token_sealed": seal.close(token),
        },
    )
    if made is None:
        raise RuntimeError("an insert without a conflict clause returned nothing")
    return made


def _member(tx: Tx, guest: NewGuest) -> UUID:
    """Whoever has this address, or somebody new. What is known of a member is not changed by an
    application: anybody may type an address."""
    if not guest.email:
        raise ValueError("a member has an e-mail address")
    email_key = guest.email.casefold()
    known: UUID | None = tx.scalar("select id from members where email_key = :key", key=email_key)
    if known is not None:
        return known
    made: UUID = tx.scalar(
        """
        insert into members (facility_id, guest_id, email_key)
        values (:facility_id, :guest_id, :email_key) returning id
        """,
        facility_id=tx.facility_id,
        guest_id=guests.add(tx, guest),
        email_key=email_key,
    )
    return made
