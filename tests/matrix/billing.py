"""What stands before an act on a membership that the card provider bills."""

from typing import Any
from uuid import UUID

from portal.outcome import Applied, Code, Refused
from portal.policies.membership_end import Reason
from portal.verbs import membership_money, memberships
from portal.verbs.membership_end import Ending, end_membership
from sandbox.stripe.testing import client
from tests.matrix.scenes import of_a_membership
from tests.matrix.stage import Given, Stage
from tests.outside import STRIPE_KEY, pay, receive, work

MONTH = 32 * 86_400


def _applied(stage: Stage) -> UUID:
    plan = stage.cast.offer("card", "カード会員", "Card", billing="card")
    joined = stage.cast.apply(plan)
    stage.work()
    return joined.id


def _checkout(stage: Stage) -> UUID:
    membership = _applied(stage)
    said = stage.at_desk(memberships.approve, membership, 1)
    assert isinstance(said, Applied), said
    stage.quiet()
    return membership


def _runs(stage: Stage) -> UUID:
    membership = _checkout(stage)
    _pay(stage)
    stage.hear()
    assert stage.owner.one("select state from memberships") == "active"
    return membership


def _pay(stage: Stage) -> None:
    newest = "select intent_id from payments order by created_at desc limit 1"
    pay(stage.stripe, stage.owner.one(newest))


def _end(stage: Stage, membership: UUID, reason: Reason) -> None:
    said = stage.at_desk(end_membership, membership, Ending(reason))
    assert isinstance(said, Applied), said


def an_application(stage: Stage) -> Given:
    return of_a_membership(stage, _applied(stage))


def a_checkout(stage: Stage) -> Given:
    return of_a_membership(stage, _checkout(stage))


def a_checkout_too_old(stage: Stage) -> Given:
    given = a_checkout(stage)
    stage.owner.run("update memberships set checkout_until = now() - interval '1 second'")
    return given


def one_that_runs(stage: Stage) -> Given:
    return of_a_membership(stage, _runs(stage))


def one_to_switch(stage: Stage) -> Given:
    membership = _runs(stage)
    gold = stage.cast.offer("gold", "ゴールド", "Gold", billing="card", price=14_800)
    return of_a_membership(stage, membership, plan=gold)


def one_that_will_end(stage: Stage) -> Given:
    membership = _runs(stage)
    _end(stage, membership, "self_cancel")
    stage.hear()
    return of_a_membership(stage, membership)


def one_behind(stage: Stage) -> Given:
    """Its renewal was declined."""
    membership = _declined(stage)
    stage.hear()
    assert stage.owner.one("select state from memberships") == "past_due"
    return of_a_membership(stage, membership)


def declined_and_unheard(stage: Stage) -> Given:
    membership = _declined(stage)
    raw = stage.event("customer.subscription.updated").raw
    return of_a_membership(stage, membership, raw=raw)


def _declined(stage: Stage) -> UUID:
    membership = _runs(stage)
    provider, there = client(stage.stripe.base, STRIPE_KEY), _there(stage)
    card = provider.payment_methods.attach(
        "pm_card_chargeCustomerFail", {"customer": there["customer"]}
    )
    provider.subscriptions.update(there["id"], {"default_payment_method": card.id})
    stage.stripe.post("clock", advance=MONTH)
    return membership


def a_renewal_unheard(stage: Stage) -> Given:
    membership = _runs(stage)
    stage.stripe.post("clock", advance=MONTH)
    stage.owner.run("update subscription_mirror set next_read_at = now()")
    return of_a_membership(stage, membership)


def paid_and_unheard(stage: Stage) -> Given:
    return _heard_later(stage, "customer.subscription.updated")


def invoiced_and_unheard(stage: Stage) -> Given:
    return _heard_later(stage, "invoice.paid")


def _heard_later(stage: Stage, kind: str) -> Given:
    """Paid a minute after the approval was answered: what comes of one second is read anew."""
    membership = _checkout(stage)
    stage.stripe.post("clock", advance=60)
    _pay(stage)
    return of_a_membership(stage, membership, raw=stage.event(kind).raw)


def an_answer_lost(stage: Stage) -> Given:
    membership = _runs(stage)
    stage.stripe.fault("do_then_drop", path="/v1/subscriptions/.*")
    said = stage.at_desk(end_membership, membership, Ending("self_cancel"))
    assert said == Refused(Code.BILLING_UNKNOWN), said
    stage.owner.run("update billing_legs set next_read_at = now() where settled_at is null")
    return of_a_membership(stage, membership)


def an_end_unheard(stage: Stage) -> Given:
    """Set in the provider's own pages, and no event told of it."""
    given = one_that_runs(stage)
    provider = client(stage.stripe.base, STRIPE_KEY)
    provider.subscriptions.update(_there(stage)["id"], {"cancel_at_period_end": True})
    return given


def one_that_is_lost_there(stage: Stage) -> Given:
    """The provider has no subscription of the id that we know."""
    given = one_that_runs(stage)
    stage.owner.run(
        "update subscription_mirror set subscription_id = 'sub_never_was',"
        " created_at = created_at - interval '10 minutes'"
    )
    return given


def one_under_another_id(stage: Stage) -> Given:
    """The same, and a comparison has written it down."""
    given = one_that_is_lost_there(stage)
    stage.owner.run(
        "insert into divergences (facility_id, kind, subject, membership_id)"
        " select facility_id, 'subscription_not_there', id::text, id from memberships"
    )
    return given | {"divergence": stage.owner.one("select id from divergences")}


def one_that_is_there_no_more(stage: Stage) -> Given:
    given = one_that_is_lost_there(stage)
    provider = client(stage.stripe.base, STRIPE_KEY)
    provider.subscriptions.cancel(_there(stage)["id"])
    return given


def a_checkout_of_a_retired_plan(stage: Stage) -> Given:
    """It is not ended while its first payment is open: that is kept, for the plan's page."""
    given = a_checkout(stage)
    stage.owner.run("update membership_plans set sold = false, retired_at = now()")
    return given


def an_end_with_an_open_invoice(stage: Stage) -> Given:
    given = one_behind(stage)
    _end(stage, given["membership"], "force_cancel")
    # What else it owes is looked after later: which of them comes first is nobody's promise.
    stage.owner.run(
        "update end_obligations set next_look_at = now() + interval '1 minute'"
        " where kind <> 'invoices_closed'"
    )
    return given


def paid_after_its_end(stage: Stage) -> Given:
    """On a page that was open all the time, and before the invoice was closed."""
    membership = _paid_after_its_end(stage)
    return of_a_membership(stage, membership, raw=stage.event("payment_intent.succeeded").raw)


def late_money_that_landed(stage: Stage) -> Given:
    """It is booked; whether it came in time, its invoice has to say."""
    membership = _paid_after_its_end(stage)
    receive(stage.event("payment_intent.succeeded"))
    work(stage.house, "inbox")
    return of_a_membership(stage, membership)


def _paid_after_its_end(stage: Stage) -> UUID:
    given = one_behind(stage)
    membership: UUID = given["membership"]
    said = stage.at_desk(membership_money.pay, membership)
    assert isinstance(said, Applied), said
    _end(stage, membership, "force_cancel")
    stage.stripe.post("clock", advance=300)
    _pay(stage)
    return membership


def _there(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = stage.stripe.get("objects")["subscription"][0]
    return found
