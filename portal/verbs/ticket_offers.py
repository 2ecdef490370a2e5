"""What ticket books the desk sells: offered and withdrawn. What was sold stays as it was sold."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock
from portal.db import Actor, Tx
from portal.models import TicketOffer
from portal.move import record, row_standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused

KIND = "ticket_offer"


@dataclass(frozen=True, slots=True)
class NewOffer:
    """`price` of the whole book, in the smallest unit; `months` from the day of its sale."""

    form_key: UUID
    name_ja: str
    name_en: str
    plan_id: UUID
    tickets: int
    price: int
    months: int

    def columns(self) -> dict[str, Any]:
        named = ("form_key", "name_ja", "name_en", "plan_id", "tickets", "price", "months")
        return {name: getattr(self, name) for name in named}


def create(tx: Tx, actor: Actor, wanted: NewOffer) -> Outcome:
    """→ sold at the desk. One offer for one form."""
    if again := tx.made_by(TicketOffer, wanted.form_key):
        return Noop(Code.TICKET_OFFER_ALREADY_CREATED, subject=again)
    if refusal := _not_a_visit(tx, wanted.plan_id):
        return refusal
    try:
        with tx.savepoint():
            offer_id = tx.add(TicketOffer, facility_id=tx.facility_id, **wanted.columns())
    except IntegrityError:
        again = tx.made_by(TicketOffer, wanted.form_key)
        if again is None:
            raise
        return Noop(Code.TICKET_OFFER_ALREADY_CREATED, subject=again)
    record(tx, actor, KIND, offer_id, "created", (None, "sold"), "create")
    return Applied(Code.TICKET_OFFER_CREATED, to="sold", subject=offer_id)


def withdraw(tx: Tx, actor: Actor, offer_id: UUID, seen: int) -> Outcome:
    """sold → withdrawn, for good: another offer says other terms."""
    offer = tx.get(TicketOffer, offer_id, lock=True)
    if offer is None:
        return Refused(Code.NOT_FOUND)
    if offer.withdrawn_at is not None:
        return Noop(Code.TICKET_OFFER_ALREADY_WITHDRAWN, subject=offer_id)
    if offer.version != seen:
        return Conflict(Code.STALE_PAGE, row_standing(tx, KIND, offer_id, "sold", offer.version))
    tx.run(
        "update ticket_offers set withdrawn_at = :now, version = version + 1 where id = :id",
        id=offer_id,
        now=clock.now(),
    )
    record(tx, actor, KIND, offer_id, "withdrawn", ("sold", "withdrawn"), "withdraw")
    return Applied(Code.TICKET_OFFER_WITHDRAWN, to="withdrawn", subject=offer_id)


def _not_a_visit(tx: Tx, plan_id: UUID) -> Refused | None:
    """A ticket pays one visit, whoever comes with it: no night, no hour, and no member's plan."""
    plan = tx.row("select kind, unit, members_only, active from plans where id = :id", id=plan_id)
    if plan is None:
        return Refused(Code.NOT_FOUND)
    if (plan.kind, plan.unit, plan.members_only, plan.active) == ("day_use", "visit", False, True):
        return None
    return Refused(Code.TICKET_OFFER_NOT_A_VISIT)
