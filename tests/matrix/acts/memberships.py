"""Memberships: what people ask for, and the sweep that ends and proves."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from portal.jobs import drain
from portal.verbs import membership_plans, memberships
from portal.verbs.membership_end import Ending, Reason, end_membership
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, Run, job


def applying(do: Doing, form: Any) -> Any:
    """A second press of the same form is one application; a second form is refused."""
    return do.form(memberships.apply, replace(do["wanted"], form_key=form))


def button(name: str, scene: scenes.Scene, verb: Any) -> Act:
    """With the version that the page showed; the twin is a colleague's press on a fresh page."""

    def press(do: Doing, seen: int) -> Any:
        return do.form(verb, do["membership"], seen)

    return Act(name, scene, lambda do: press(do, do["seen"]), lambda do: press(do, version(do)))


def version(do: Doing) -> int:
    with do.house.context(), do.desk.transaction() as tx:
        return int(tx.scalar("select version from memberships where id = :id", id=do["membership"]))


def ending(reason: Reason) -> Run:
    return lambda do: do.at_desk(end_membership, do["membership"], Ending(reason))


def end(name: str, scene: scenes.Scene, reason: Reason) -> Act:
    return Act(f"membership_end.end_membership {name}", scene, ending(reason), ending(reason))


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
    end("later", scenes.a_member_with_a_booking, "self_cancel"),
    end("now", scenes.a_member_in_house, "force_cancel"),
    end("rejected", scenes.an_application, "application_rejected"),
    job("drain memberships to end", scenes.a_membership_past_its_end, drain.drain, "memberships"),
    job("drain memberships to prove", scenes.an_end_to_prove, drain.drain, "memberships"),
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
