"""Memberships: what people ask for, and the sweep that ends and proves."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from portal.jobs import drain
from portal.policies.membership_end import Reason
from portal.policies.periods import When
from portal.verbs import (
    links,
    membership_money,
    membership_plans,
    memberships,
    subscription_answers,
)
from portal.verbs.membership_end import Ending, end_membership
from tests.matrix import billing, scenes
from tests.matrix.act import Act, Doing, Run, asking, event, job


def applying(do: Doing, form: Any) -> Any:
    """A second press of the same form is one application; a second form is refused."""
    return do.form(memberships.apply, replace(do["wanted"], form_key=form))


def button(name: str, scene: scenes.Scene, verb: Any, *args: str) -> Act:
    """With the version that the page showed; the twin is a colleague's press on a fresh page."""

    def press(do: Doing, seen: int) -> Any:
        return do.at_desk(verb, do["membership"], *(do[one] for one in args), seen)

    return Act(name, scene, lambda do: press(do, do["seen"]), lambda do: press(do, version(do)))


def version(do: Doing) -> int:
    with do.house.context(), do.desk.transaction() as tx:
        return int(tx.scalar("select version from memberships where id = :id", id=do["membership"]))


def ending(reason: Reason, when: When) -> Run:
    return lambda do: do.at_desk(end_membership, do["membership"], Ending(reason, when=when))


def end(name: str, scene: scenes.Scene, reason: Reason, when: When = "month_boundary") -> Act:
    press = ending(reason, when)
    return Act(f"membership_end.end_membership {name}", scene, press, press)


def offering(do: Doing, form: Any) -> Any:
    """A second press of the same form is one plan; a second form finds its code taken."""
    return do.form(membership_plans.create, replace(do["wanted"], form_key=form))


def of_plan(name: str, scene: scenes.Scene, verb: Any, *args: str) -> Act:
    """A manager's form, with the version that the page showed."""

    def press(do: Doing, seen: int) -> Any:
        return do.form(verb, do["plan"], seen, *(do[one] for one in args))

    return Act(name, scene, lambda do: press(do, do["seen"]), lambda do: press(do, newest(do)))


def newest(do: Doing) -> int:
    with do.house.context(), do.desk.transaction() as tx:
        return int(tx.scalar("select version from membership_plans where id = :id", id=do["plan"]))


ACTS = (
    Act(
        "memberships.apply",
        scenes.an_application_form,
        lambda do: applying(do, do["form"]),
        lambda do: applying(do, uuid4()),
    ),
    button("memberships.approve", scenes.an_application, memberships.approve),
    button("memberships.resume", scenes.a_membership_that_will_end, memberships.resume),
    # A colleague's press is another link, and another message.
    Act(
        "links.renew_of_membership",
        scenes.an_application,
        lambda do: do.form(links.renew_of_membership, do["membership"], do["seen"]),
    ),
    end("later", scenes.a_member_with_a_booking, "self_cancel"),
    end("now", scenes.a_member_in_house, "force_cancel"),
    end("rejected", scenes.an_application, "application_rejected"),
    job("drain memberships to end", scenes.a_membership_past_its_end, drain.drain, "memberships"),
    job("drain memberships to prove", scenes.an_end_to_prove, drain.drain, "memberships"),
    button("memberships.approve by card", billing.an_application, memberships.approve),
    button("memberships.resume by card", billing.one_that_will_end, memberships.resume),
    button("memberships.switch_plan", billing.one_to_switch, memberships.switch_plan, "plan"),
    end("by card, with the period", billing.one_that_runs, "self_cancel", "period_end"),
    end("by card, with the month", billing.one_that_runs, "self_cancel"),
    end("by card, now", billing.one_that_runs, "force_cancel"),
    end("given up", billing.a_checkout, "self_cancel"),
    end("lost there", billing.one_that_is_there_no_more, "force_cancel"),
    job(
        "drain memberships of a plan, refused",
        billing.a_checkout_of_a_retired_plan,
        drain.drain,
        "memberships",
    ),
    end("by card, rejected", billing.an_application, "application_rejected"),
    event("declined renewal heard", billing.declined_and_unheard),
    asking("membership_money.pay", billing.one_behind, membership_money.pay, "membership"),
    asking(
        "subscription_answers.look_up",
        billing.a_renewal_unheard,
        subscription_answers.look_up,
        "membership",
    ),
    event("first payment heard", billing.paid_and_unheard),
    event("first payment heard inline", billing.paid_and_unheard, mode="inline"),
    event("first invoice heard", billing.invoiced_and_unheard),
    event("late money heard", billing.paid_after_its_end),
    job("drain memberships to decide", billing.late_money_that_landed, drain.drain, "memberships"),
    job("drain memberships to read", billing.a_renewal_unheard, drain.drain, "memberships"),
    job("drain memberships to resolve", billing.an_answer_lost, drain.drain, "memberships"),
    job("drain memberships unpaid", billing.a_checkout_too_old, drain.drain, "memberships"),
    job(
        "drain memberships to close",
        billing.an_end_with_an_open_invoice,
        drain.drain,
        "memberships",
    ),
    job("drain memberships of a plan", scenes.a_plan_that_was_retired, drain.drain, "memberships"),
    Act(
        "membership_plans.create",
        scenes.a_plan_form,
        lambda do: offering(do, do["form"]),
        lambda do: offering(do, uuid4()),
    ),
    of_plan("membership_plans.change", scenes.a_plan, membership_plans.change, "wanted"),
    of_plan("membership_plans.retire", scenes.a_plan_with_a_member, membership_plans.retire),
)
