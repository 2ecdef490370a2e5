"""An act at the card provider, by three beats: a row first, whose id is the key there; then the
call, with no transaction open; then one transaction that moves the membership and settles the row.

Whoever learns first what the provider has done settles it: the verb by its answer, an event, or the
sweep that reads. All of them come here, and it is done once.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal import clock
from portal.db import Actor, Row, Tx, violated
from portal.edges.billing.port import FirstPayment, Subscription
from portal.edges.errors import NO_SUCH, EdgeError, Rejected, Unknown, Unreachable
from portal.edges.payments.port import Intent
from portal.log import request_id
from portal.machines.membership import MACHINE, State
from portal.models import BillingLeg, Member, Membership, MembershipPlan
from portal.move import note
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import billing_legs as policy
from portal.policies import membership_end as ends
from portal.policies.billing_legs import Kind
from portal.policies.membership_end import Calm, Ends
from portal.policies.membership_progress import Word
from portal.verbs import membership_money as money
from portal.verbs import membership_moves as moves
from portal.verbs import payment_answers, quota
from portal.verbs import subscription_mirror as mirror
from portal.verbs.desk import Desk
from portal.verbs.membership_money import Bill
from portal.verbs.membership_moves import Ending
from portal.verbs.payment_answers import LANDED, PROVIDER

ONE_OPEN = "uq_billing_legs_one_open"

LEASE = timedelta(seconds=60)
"""For the process that asks. Should it die, the sweep reads what became of it."""

Wish = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Price:
    """What is charged for each month or year, in the smallest unit."""

    amount: int
    currency: str
    every: str

    @property
    def words(self) -> str:
        return f"{self.amount} {self.currency} a {self.every}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider holds now; of a subscription that waits for money, with what pays it."""

    told: Subscription
    at: datetime
    bill: Bill | None = None

    @classmethod
    def of(cls, told: Subscription, bill: Bill | None = None) -> "Answer":
        """To a call of ours."""
        return cls(told, told.told_at or clock.now(), bill)


def begin(tx: Tx, actor: Actor, membership: Row, kind: Kind, wish: Wish) -> UUID | Outcome:
    """Beat one, in a transaction that holds the membership. The same act that is open already is
    that act: pressed twice, it is asked for under one key."""
    try:
        with tx.savepoint():
            return _put(tx, actor, membership, kind, wish)
    except IntegrityError as fault:
        if violated(fault) != ONE_OPEN:
            raise
    known = _open(tx, membership.id)
    if known is None:
        raise LookupError("a leg that stood in the way is gone")
    if (known.kind, known.wish) == (kind, dict(wish)) and known.progress == "open":
        return cast(UUID, known.id)
    if known.kind == "subscribe":
        return Refused(Code.CHECKOUT_IN_PROGRESS)
    return Refused(Code.BILLING_UNKNOWN)


def in_flight(tx: Tx, membership_id: UUID) -> bool:
    """Whether something was asked of the provider whose end is not known yet."""
    return _open(tx, membership_id) is not None


def carry_out(desk: Desk, decided: Outcome | UUID) -> Outcome:
    """What beat one has decided: the act that it began, or an answer that needs none."""
    return run(desk, decided) if isinstance(decided, UUID) else decided


def run(desk: Desk, leg_id: UUID) -> Outcome:
    """Beats two and three."""
    with desk.transaction() as tx:
        leg = tx.get(BillingLeg, leg_id)
    if leg is None:
        return Refused(Code.NOT_FOUND)
    try:
        answer = _ask(desk, leg)
    except Unknown as fault:
        return _lost(desk, leg, fault)
    except (Unreachable, Rejected) as fault:
        if fault.code == NO_SUCH and _is_a_persons_end(leg):
            return _nothing_to_end(desk, leg)
        return _not_done(desk, leg, fault)
    with desk.transaction() as tx:
        return settle(tx, leg_id, answer)


def resolve(desk: Desk, leg_id: UUID) -> Outcome:
    """Ask the provider what became of an act, and follow its word. Never guesses: what was not done
    by the time a lost request has surely landed is refused, and can be asked for again."""
    with desk.transaction() as tx:
        leg = tx.get(BillingLeg, leg_id)
    if leg is None or leg.settled_at is not None:
        return Noop(Code.BILLING_ALREADY_SETTLED)
    try:
        answer = _read(desk, leg)
        if answer is None or not _is_done(leg, answer):
            return _never_done(desk, leg, answer)
    except Unknown as fault:
        return _lost(desk, leg, fault)
    except (Unreachable, Rejected) as fault:
        if fault.code == NO_SUCH and _is_a_persons_end(leg):
            return _nothing_to_end(desk, leg)
        return Refused(Code.BILLING_UNAVAILABLE)
    with desk.transaction() as tx:
        return settle(tx, leg_id, answer)


def settle(tx: Tx, leg_id: UUID, answer: Answer) -> Outcome:
    """Beat three: the mirror, the membership, the row. Once."""
    leg = tx.get(BillingLeg, leg_id)
    membership = moves.held(tx, leg.membership_id) if leg else None
    leg = tx.get(BillingLeg, leg_id, lock=True)
    if leg is None or membership is None:
        return Refused(Code.NOT_FOUND)
    if leg.progress == "done":
        return _as_asked(leg, membership)
    mirror.write(tx, membership.id, answer.told, answer.at)
    actor = Actor(cast("Any", leg.actor_kind), leg.actor_id, leg.actor_name)
    said = _effect(tx, actor, membership, leg, answer)
    _close(tx, leg_id, "done")  # the sweep may have given it up before a very late answer
    mirror.follow(tx, PROVIDER, membership.id, answer.told)
    return said


def settle_by_word(tx: Tx, membership_id: UUID, told: Subscription, at: datetime) -> Outcome | None:
    """An event has overtaken the answer. None where nothing is open, or the word says that it has
    not been done yet. A subscription's own making is left to the answer: it knows what pays it."""
    known = _open(tx, membership_id)
    if known is None or known.kind == "subscribe":
        return None
    leg = tx.get(BillingLeg, known.id)
    answer = Answer(told, at)
    if leg is None or not _is_done(leg, answer):
        return None
    return settle(tx, leg.id, answer)


def _put(tx: Tx, actor: Actor, membership: Row, kind: Kind, wish: Wish) -> UUID:
    made: UUID = tx.scalar(
        """
        insert into billing_legs (facility_id, membership_id, kind, wish, actor_kind, actor_id,
            actor_name, next_read_at, request_id)
        values (:facility_id, :membership_id, :kind, cast(:wish as jsonb), :actor_kind, :actor_id,
            :actor_name, now() + :lease, :request_id)
        returning id
        """,
        facility_id=tx.facility_id,
        membership_id=membership.id,
        kind=kind,
        wish=json.dumps(dict(wish)),
        **actor.columns,
        lease=LEASE,
        request_id=request_id(),
    )
    return made


def _open(tx: Tx, membership_id: UUID) -> Row | None:
    return tx.row(
        """
        select id, kind, progress, wish from billing_legs
        where membership_id = :id and progress in ('open', 'unknown')
        """,
        id=membership_id,
    )


# Asking -----------------------------------------------------------------------------------------


def _ask(desk: Desk, leg: BillingLeg) -> Answer:
    if leg.kind == "subscribe":
        return _subscribe(desk, leg)
    known, key = _known(desk, leg.membership_id), str(leg.id)
    match leg.kind:
        case "set_end" if leg.wish["when"] == "period_end":
            told = desk.billing.end_at_period_end(key=key, subscription_id=known.subscription_id)
        case "set_end":
            at = datetime.fromisoformat(leg.wish["at"])
            told = desk.billing.end_at(key=key, subscription_id=known.subscription_id, at=at)
        case "end_now":
            told = desk.billing.end_now(known.subscription_id)
        case "abandon_checkout":
            told = _abandon(desk, known)
        case "go_on":
            told = desk.billing.go_on(key=key, subscription_id=known.subscription_id)
        case "switch":
            told = desk.billing.switch(
                key=key,
                subscription_id=known.subscription_id,
                item_id=known.item_id,
                price_id=leg.wish["price"],
            )
        case _:
            raise ValueError(f"nobody asks for {leg.kind}")
    return Answer.of(told)


def _known(desk: Desk, membership_id: UUID) -> Row:
    with desk.transaction() as tx:
        found = mirror.of(tx, membership_id)
    if found is None:
        raise Rejected("the membership has no subscription", code="no_subscription")
    return found


def _abandon(desk: Desk, known: Row) -> Subscription:
    """The invoice first: from then on nobody can pay it. A payment under way refuses it."""
    if known.latest_invoice_id is not None:
        desk.billing.void_invoice(known.latest_invoice_id)
    try:
        return desk.billing.end_now(known.subscription_id)
    except (Unreachable, Rejected) as fault:
        raise Unknown("the invoice is void and the subscription is not over") from fault


def _subscribe(desk: Desk, leg: BillingLeg) -> Answer:
    with desk.transaction() as tx:
        membership = tx.get(Membership, leg.membership_id)
    if membership is None:
        raise Rejected("the membership is gone")
    key = str(leg.id)
    try:
        customer_id = _customer(desk, membership.member_id, key)
        agreed = Price(membership.price, membership.currency, membership.billed_every)
        price_id = price_of(desk, membership.plan_id, agreed, key)
    except Unknown as fault:
        # Neither bills anybody. Should one have been made, it is never used.
        raise Unreachable("the customer or the price could not be made") from fault
    first = desk.billing.subscribe(
        key=key,
        customer_id=customer_id,
        price_id=price_id,
        metadata={"membership_id": str(membership.id), "facility": str(membership.facility_id)},
    )
    return _with_bill(desk, first)


def _with_bill(desk: Desk, first: FirstPayment) -> Answer:
    """The subscription is made by now: what cannot be read of it leaves its making unknown."""
    if first.intent_id is None or first.subscription.latest_invoice_id is None:
        return Answer.of(first.subscription)
    try:
        intent: Intent = desk.payments.retrieve_intent(first.intent_id)
    except (Unreachable, Rejected) as fault:
        raise Unknown("what pays the new subscription could not be read") from fault
    invoice_id = first.subscription.latest_invoice_id
    return Answer.of(first.subscription, Bill(invoice_id, intent, first=True))


def _customer(desk: Desk, member_id: UUID, key: str) -> str:
    """Who the member is there; one for all their memberships. The key is that of the act: the
    provider would repeat a fault under one key for a day."""
    with desk.transaction() as tx:
        member = tx.row(
            """
            select r.id, r.customer_id, g.name, g.email
            from members r join guests g on g.id = r.guest_id where r.id = :id
            """,
            id=member_id,
        )
    if member is None:
        raise Rejected("the member is gone")
    if member.customer_id is not None:
        return str(member.customer_id)
    made = desk.billing.create_customer(
        key=f"customer:{key}",
        name=member.name,
        email=member.email or "",
        metadata={"member_id": str(member.id), "facility": str(desk.facility_id)},
    )
    with desk.transaction() as tx:
        tx.run(
            "update members set customer_id = coalesce(customer_id, :customer) where id = :id",
            customer=made,
            id=member_id,
        )
        kept = tx.get(Member, member_id)
    return (kept and kept.customer_id) or made


def price_of(desk: Desk, plan_id: UUID, agreed: Price, key: str) -> str:
    """The price there of what was agreed to, which need not be what the plan costs by now. The last
    one that was made of a plan is used again."""
    with desk.transaction() as tx:
        plan = tx.get(MembershipPlan, plan_id)
    if plan is None:
        raise Rejected("the plan is gone")
    if plan.price_id is not None and plan.price_id_for == agreed.words:
        return plan.price_id
    made = desk.billing.create_price(
        key=f"price:{key}",
        name=plan.name_ja,
        amount=agreed.amount,
        currency=agreed.currency,
        interval=cast("Any", agreed.every),
        metadata={"plan_id": str(plan.id), "facility": str(desk.facility_id)},
    )
    with desk.transaction() as tx:
        tx.run(
            "update membership_plans set price_id = :price, price_id_for = :wanted where id = :id",
            price=made,
            wanted=agreed.words,
            id=plan_id,
        )
    return made


# What became of it ------------------------------------------------------------------------------


def _lost(desk: Desk, leg: BillingLeg, fault: EdgeError) -> Outcome:
    """open → unknown: it may have been done. Only the provider can tell."""
    with desk.transaction() as tx:
        tx.run(
            """
            update billing_legs set progress = 'unknown', next_read_at = now(), last_error = :error
            where id = :id and settled_at is null
            """,
            id=leg.id,
            error=str(fault)[:500],
        )
        tx.ring("memberships")
    return Refused(Code.BILLING_UNKNOWN)


def _is_a_persons_end(leg: BillingLeg) -> bool:
    """What the provider does not have may be another account's, where it goes on being billed: so
    only whoever ends it now, and answers for it, ends what is not there. No sweep does."""
    return leg.kind == "end_now" and leg.wish["reason"] == "force_cancel"


def _nothing_to_end(desk: Desk, leg: BillingLeg) -> Outcome:
    """The provider has no such subscription, so the end is ours alone."""
    with desk.transaction() as tx:
        membership = moves.held(tx, leg.membership_id)
        if membership is None or membership.state == "ended":
            return Noop(Code.MEMBERSHIP_ALREADY_ENDED, subject=leg.membership_id)
        mirror.lose(tx, membership.id)
        actor = Actor(cast("Any", leg.actor_kind), leg.actor_id, leg.actor_name)
        said = moves.end(tx, actor, membership, Ending(leg.wish["reason"], note=leg.wish["note"]))
        _close(tx, leg.id, "done")
    return said


def _not_done(desk: Desk, leg: BillingLeg, fault: EdgeError) -> Outcome:
    """→ refused: certainly nothing was done, and nothing of ours moves."""
    with desk.transaction() as tx:
        tx.run(
            "update billing_legs set last_error = :error where id = :id",
            id=leg.id,
            error=str(fault)[:500],
        )
        _close(tx, leg.id, "refused")
        if isinstance(fault, Rejected):
            mirror.read_soon(tx, leg.membership_id)  # it is otherwise than we believed
    paying = leg.kind == "abandon_checkout" and isinstance(fault, Rejected)
    return Refused(Code.CHECKOUT_IN_PROGRESS if paying else Code.BILLING_UNAVAILABLE)


def _read(desk: Desk, leg: BillingLeg) -> Answer | None:
    """None where there is no subscription: then none was asked for, or none was made."""
    if leg.kind != "subscribe":
        known = _known(desk, leg.membership_id)
        return Answer.of(desk.billing.retrieve_subscription(known.subscription_id))
    with desk.transaction() as tx:
        customer_id = tx.scalar(
            "select r.customer_id from memberships m join members r on r.id = m.member_id"
            " where m.id = :id",
            id=leg.membership_id,
        )
    if customer_id is None:
        return None
    found = desk.billing.find_subscription(
        customer_id=customer_id, membership_id=str(leg.membership_id)
    )
    return None if found is None else _with_bill(desk, desk.billing.first_payment(found.id))


def _is_done(leg: BillingLeg, answer: Answer) -> bool:
    told = answer.told
    return policy.done(
        cast("Kind", leg.kind),
        Word(told.status, told.ends_at),
        price_id=told.items[0].price_id,
        wished_price=leg.wish.get("price"),
    )


def _never_done(desk: Desk, leg: BillingLeg, answer: Answer | None) -> Outcome:
    """Believed only once the lost request has surely landed. An invoice that is void already shows
    that giving up a checkout was begun: then it is finished."""
    with desk.transaction() as tx:
        landed = tx.scalar(
            "select created_at <= now() - :landed from billing_legs where id = :id",
            landed=LANDED,
            id=leg.id,
        )
    if not landed:
        return Refused(Code.BILLING_UNKNOWN)
    if leg.kind == "abandon_checkout" and answer is not None and _is_void(desk, answer.told):
        return run(desk, leg.id)
    with desk.transaction() as tx:
        _close(tx, leg.id, "refused")
    return Refused(Code.BILLING_UNAVAILABLE)


def _is_void(desk: Desk, told: Subscription) -> bool:
    if told.latest_invoice_id is None:
        return False
    return desk.billing.retrieve_invoice(told.latest_invoice_id).status == "void"


def _close(tx: Tx, leg_id: UUID, progress: str) -> None:
    tx.run(
        """
        update billing_legs set progress = :progress, settled_at = now(), next_read_at = null
        where id = :id and progress <> 'done'
        """,
        id=leg_id,
        progress=progress,
    )


# What follows from it ---------------------------------------------------------------------------


def _effect(tx: Tx, actor: Actor, membership: Row, leg: BillingLeg, answer: Answer) -> Outcome:
    match leg.kind:
        case "subscribe":
            return _subscribed(tx, actor, leg, membership, answer)
        case "go_on":
            if membership.state != "scheduled_to_end":
                return _as_asked(leg, membership)
            return moves.go_on(tx, actor, membership, "resume")
        case "switch":
            return _switched(tx, actor, membership, leg.wish)
        case _:
            return _ended(tx, actor, leg, membership, answer)


def _subscribed(tx: Tx, actor: Actor, leg: BillingLeg, membership: Row, answer: Answer) -> Outcome:
    if membership.state != "applying":
        return _as_asked(leg, membership)
    said = moves.await_payment(tx, actor, membership)
    if answer.bill is not None:
        payment_id = money.note(tx, actor, membership, answer.bill)
        payment_answers.record_intent(tx, PROVIDER, payment_id, answer.bill.intent)
    return said


def _ended(tx: Tx, actor: Actor, leg: BillingLeg, membership: Row, answer: Answer) -> Outcome:
    """By the table of reasons, from the state that it is in by now."""
    ending = Ending(leg.wish["reason"], when=leg.wish["when"], note=leg.wish["note"])
    cell = ends.resolve(ending.reason, cast("State", membership.state))
    match cell:
        case Ends("end_scheduled") if not answer.told.over:
            at = answer.told.ends_at or answer.told.period_end
            return moves.schedule(tx, actor, membership, ending, at, "end_membership")
        case Ends():
            return moves.end(tx, actor, membership, ending)
        case Calm(code):
            return Noop(code, subject=membership.id)
        case _:
            return _as_asked(leg, membership)


def _switched(tx: Tx, actor: Actor, membership: Row, wish: Wish) -> Outcome:
    plan = tx.get(MembershipPlan, UUID(wish["plan"]))
    if plan is None:
        raise LookupError("a membership was switched to a plan that is not there")
    tx.run(
        """
        update memberships set plan_id = :plan, price = :price, billed_every = :every,
            monthly_quota = :quota, terms_version = :terms, version = version + 1
        where id = :id
        """,
        plan=plan.id,
        price=wish["amount"],
        every=wish["every"],
        quota=plan.monthly_quota,
        terms=plan.terms_version,
        id=membership.id,
    )
    quota.regrant(tx, actor, membership, plan.monthly_quota)
    said = f"{wish['from']} → {plan.code}"
    note(tx, actor, MACHINE, membership.id, membership.state, "switch_plan", said)
    moves.tell(tx, membership.id, "membership_switched", f"{membership.id}:{membership.version}")
    return Applied(Code.MEMBERSHIP_SWITCHED, to=membership.state, subject=membership.id)


ASKED: Mapping[str, Code] = {
    "subscribe": Code.MEMBERSHIP_CHECKOUT,
    "set_end": Code.MEMBERSHIP_END_SCHEDULED,
    "end_now": Code.MEMBERSHIP_ENDED,
    "abandon_checkout": Code.MEMBERSHIP_ENDED,
    "go_on": Code.MEMBERSHIP_RESUMED,
    "switch": Code.MEMBERSHIP_SWITCHED,
}


def _as_asked(leg: BillingLeg, membership: Row) -> Outcome:
    """Somebody else has settled the same act: what was asked for is done."""
    return Applied(ASKED[leg.kind], to=membership.state, subject=membership.id)
