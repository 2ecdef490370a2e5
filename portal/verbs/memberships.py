"""The membership's verbs: applied for, approved, gone on with. Its end has a module of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock, outbox, seal
from portal.db import Actor, Row, Tx, violated
from portal.machines.membership import MACHINE
from portal.models import Membership
from portal.move import create as create_row
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.verbs import guests
from portal.verbs.guests import NewGuest

ONE_LIVE = "uq_memberships_one_live"
ONE_PERSON = "uq_members_facility_id_email_key"
TRIES = 2
APPROVED = ("active", "past_due", "scheduled_to_end")


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
    if again := _made_by(tx, wanted.form_key):
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
    tell(tx, made, "membership_applied", str(made))
    return Applied(Code.MEMBERSHIP_APPLIED, to=MACHINE.initial, subject=made)


def approve(tx: Tx, actor: Actor, membership_id: UUID, seen: int) -> Outcome:
    """applying → active, for one that is paid at the desk."""
    membership = tx.get(Membership, membership_id, lock=True)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if membership.state in APPROVED:
        return Noop(Code.MEMBERSHIP_ALREADY_APPROVED, subject=membership_id)
    if refusal := _changed(tx, membership, "applying", seen):
        return refusal
    if membership.billing != "desk":
        return Refused(Code.BILLING_UNAVAILABLE)

    began = {"started_at": clock.now()}
    move_held(tx, actor, membership, "approved_for_desk_billing", "approve", also=began)
    tell(tx, membership_id, "membership_approved", str(membership_id))
    return Applied(Code.MEMBERSHIP_APPROVED, to="active", subject=membership_id)


def resume(tx: Tx, actor: Actor, membership_id: UUID, seen: int) -> Outcome:
    """scheduled_to_end → active, while the end lies ahead."""
    membership = tx.get(Membership, membership_id, lock=True)
    if membership is None:
        return Refused(Code.NOT_FOUND)
    if membership.state == "active":
        return Noop(Code.MEMBERSHIP_NOT_SCHEDULED, subject=membership_id)
    if refusal := _changed(tx, membership, "scheduled_to_end", seen):
        return refusal
    if code := _holds_to_its_end(tx, membership_id):
        return Refused(code)
    if membership.billing != "desk":
        return Refused(Code.BILLING_UNAVAILABLE)

    no_end = {"ends_at": None, "end_reason": None}
    move_held(tx, actor, membership, "resumed", "resume", also=no_end)
    # Each time anew: it may be taken back more than once.
    tell(tx, membership_id, "membership_resumed", f"{membership_id}:{membership.version}")
    return Applied(Code.MEMBERSHIP_RESUMED, to="active", subject=membership_id)


def _holds_to_its_end(tx: Tx, membership_id: UUID) -> Code | None:
    """Why an end that is set is not taken back. A plan that is retired right now sets it anew."""
    end = tx.row(
        """
        select m.ends_at <= now() as reached, p.retired_at is not null as plan_retired
        from memberships m join membership_plans p on p.id = m.plan_id where m.id = :id
        """,
        id=membership_id,
    )
    if end is not None and end.reached:
        return Code.MEMBERSHIP_END_REACHED
    return Code.PLAN_RETIRED if end is not None and end.plan_retired else None


def _changed(tx: Tx, membership: Membership, wanted: str, seen: int) -> Conflict | None:
    """Why nothing may be decided on what a person saw."""
    if membership.state != wanted:
        return Conflict(Code.MEMBERSHIP_STATE_CHANGED, standing(tx, MACHINE, membership.id))
    if membership.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, membership.id))
    return None


def move_held(
    tx: Tx,
    actor: Actor,
    membership: Membership | Row,
    event: str,
    verb: str,
    *,
    reason: str | None = None,
    also: Mapping[str, Any],
) -> None:
    """The caller holds the row, so it is in the state in which it was read."""
    moved = move(
        tx,
        MACHINE,
        membership.id,
        event=event,
        from_state=membership.state,
        actor=actor,
        verb=verb,
        seen=membership.version,
        reason=reason,
        also=also,
    )
    if moved is None:
        raise LookupError("a membership that is held has moved")


def tell(tx: Tx, membership_id: UUID, news: str, fact: str) -> None:
    """One letter to the member about one fact."""
    outbox.enqueue(tx, None, news, fact, {}, membership_id=membership_id)


def _made_by(tx: Tx, form_key: UUID) -> UUID | None:
    found: UUID | None = tx.scalar("select id from memberships where form_key = :key", key=form_key)
    return found


def _insert(tx: Tx, actor: Actor, wanted: Application, plan: Row) -> UUID | Outcome:
    """Two who apply at once under a new address are one person: the second finds the first's."""
    for _ in range(TRIES):
        try:
            with tx.savepoint():
                return _inserted(tx, actor, wanted, plan)
        except IntegrityError as fault:
            if violated(fault) == ONE_PERSON:
                continue
            if again := _made_by(tx, wanted.form_key):
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
