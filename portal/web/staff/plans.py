"""Plans that can be joined: offered, changed, retired, and how far the end of one has come."""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from portal import wording
from portal.db import Row
from portal.lazy import _l
from portal.machines.membership import MACHINE
from portal.money import Money
from portal.outcome import Applied, Code, Noop, Outcome
from portal.queries import members, plans
from portal.verbs import membership_plans
from portal.web import access, answer, forms, lists, words
from portal.web.locale import money
from portal.web.staff import plan_forms, records

blueprint = Blueprint("plans", __name__, url_prefix="/staff/settings/plans")

RECORDS = {
    "created": _l("Made"),
    "changed": _l("Changed"),
    "retired": _l("Retired"),
}


@blueprint.app_template_global()
def plan_record(event: str) -> str:
    return words.said(RECORDS, event)


@blueprint.app_template_global()
def plan_changes(record: Row) -> list[str]:
    return records.changes(record, plan_forms.LABELS, _worth)


def _worth(name: str, value: str | int | None) -> str:
    """A term as people write it."""
    if name == "price":
        return money(Money(int(value or 0), access.facility().currency))
    if value is None:
        return gettext("As often as you like")
    return words.said(plan_forms.CHOICES.get(name, {}), str(value))


@blueprint.app_template_global()
def why_not_ended(code: str) -> str:
    """The words of what stood in the way of an end; the code itself where it is not known now."""
    return answer.sentence(Code(code), {}) if code in wording.MESSAGES else code


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    with answer.reading() as tx:
        found = plans.listed(tx)
    return render_template("staff/plans/index.html", plans=found, **_words())


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    return _new_page(plan_forms.NewPlanForm(formdata=None))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = plan_forms.NewPlanForm()
    if not form.validate():
        return answer.form_again(_new_page(form))
    said = answer.act(membership_plans.create, form.wanted())
    if isinstance(said, Applied | Noop) and said.subject:
        return _answered(said, said.subject)
    return answer.respond(said, to=url_for("plans.new"), again=lambda: _new_page(form))


@blueprint.get("/<uuid:membership_plan_id>")
@access.staff("manager")
def show(membership_plan_id: UUID) -> str:
    return _page(membership_plan_id)


@blueprint.get("/<uuid:membership_plan_id>/change")
@access.staff("manager")
def change(membership_plan_id: UUID) -> str:
    plan = _plan(membership_plan_id)
    return _change_page(plan, plan_forms.of_plan(plan))


@blueprint.post("/<uuid:membership_plan_id>/change", endpoint="changed")
@access.staff("manager")
def do_change(membership_plan_id: UUID) -> AnyResponse | str:
    form, seen = plan_forms.PlanForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_change_page(_plan(membership_plan_id), form))
    said = answer.act(membership_plans.change, membership_plan_id, seen, form.terms())
    return _answered(said, membership_plan_id, form)


@blueprint.get("/<uuid:membership_plan_id>/retire")
@access.staff("manager")
def retire(membership_plan_id: UUID) -> str:
    with answer.reading() as tx:
        plan = plans.head(tx, membership_plan_id)
        counts = plans.counts(tx, membership_plan_id)
    return render_template("staff/plans/retire.html", plan=plan or abort(404), counts=counts)


@blueprint.post("/<uuid:membership_plan_id>/retire", endpoint="retired")
@access.staff("manager")
def do_retire(membership_plan_id: UUID) -> AnyResponse:
    said = answer.act(membership_plans.retire, membership_plan_id, forms.seen())
    return _answered(said, membership_plan_id)


def _plan(plan_id: UUID) -> Row:
    with answer.reading() as tx:
        found = plans.head(tx, plan_id)
    return found if found is not None else abort(404)


def _new_page(form: plan_forms.NewPlanForm) -> str:
    return render_template("staff/plans/new.html", form=form)


def _change_page(plan: Row, form: plan_forms.PlanForm) -> str:
    """`stale`: somebody changed it while this form was open."""
    stale = form.version.data != plan.version
    return render_template("staff/plans/change.html", plan=plan, form=form, stale=stale)


def _page(plan_id: UUID) -> str:
    asked = {"state": state if (state := request.args.get("state", "")) in MACHINE.table else ""}
    with answer.reading() as tx:
        seen = plans.load(tx, plan_id)
        page = members.page(tx, asked["state"], lists.cursor(), plan=plan_id)
    if seen is None:
        abort(404)
    place = {"membership_plan_id": str(plan_id)}
    return render_template(
        "staff/plans/show.html",
        seen=seen,
        plan=seen.plan,
        page=page,
        asked=asked,
        states=list(MACHINE.table),
        to_end=plans.TO_END,
        **_words(),
        **lists.neighbours("plans.show", {**asked, **place}, page),
    )


def _words() -> dict[str, Any]:
    return {"price": words.price, "currency": access.facility().currency}


def _answered(
    outcome: Outcome, plan_id: UUID, form: plan_forms.PlanForm | None = None
) -> AnyResponse:
    """What was typed into `form` is shown again where nothing came of it."""
    return answer.respond(
        outcome,
        to=url_for("plans.show", membership_plan_id=plan_id),
        render=lambda: _page(plan_id),
        again=(lambda: _change_page(_plan(plan_id), form)) if form else None,
    )
