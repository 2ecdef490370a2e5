"""What stays are sold as: made, changed, withdrawn from sale and sold again."""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, url_for
from flask_babel import gettext, pgettext
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.lazy import _l
from portal.money import Money
from portal.outcome import Applied, Noop, Outcome
from portal.queries import stay_plans as listed
from portal.verbs import stay_plans
from portal.web import access, answer, forms, words
from portal.web.locale import money
from portal.web.staff import records, stay_plan_forms

blueprint = Blueprint("stay_plans", __name__, url_prefix="/staff/settings/stay-plans")

RECORDS = {
    "created": _l("Made"),
    "changed": _l("Changed"),
    "withdrawn": _l("Withdrawn from sale"),
    "sold_again": _l("Sold again"),
}


@blueprint.app_template_global()
def stay_plan_record(record: Row) -> str:
    if record.verb == "choose_policy":
        return gettext("Another cancellation policy")
    return words.said(RECORDS, record.event)


@blueprint.app_template_global()
def stay_plan_changes(record: Row) -> list[str]:
    if record.verb == "choose_policy":
        return []
    return records.changes(record, stay_plan_forms.LABELS, _worth)


def _worth(name: str, value: Any) -> str:
    """A term as people write it."""
    if name in ("unit_price", "deposit"):
        return money(Money(int(value), access.facility().currency))
    if name == "members_only":
        return pgettext("stay plan", "Yes") if value else pgettext("stay plan", "No")
    return words.said(stay_plan_forms.CHOICES.get(name, {}), str(value))


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    with answer.reading() as tx:
        found = listed.listed(tx)
    return render_template("staff/stay_plans/index.html", plans=found, **_words())


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    return _new_page(stay_plan_forms.NewPlanForm(formdata=None))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = stay_plan_forms.NewPlanForm()
    if not form.validate():
        return answer.form_again(_new_page(form))
    said = answer.act(stay_plans.create, form.wanted())
    if isinstance(said, Applied | Noop) and said.subject:
        return _answered(said, said.subject)
    return answer.respond(said, to=url_for(".new"), again=lambda: _new_page(form))


@blueprint.get("/<uuid:plan_id>")
@access.staff("manager")
def show(plan_id: UUID) -> str:
    return _page(plan_id)


@blueprint.get("/<uuid:plan_id>/change")
@access.staff("manager")
def change(plan_id: UUID) -> str:
    plan = _plan(plan_id)
    return _change_page(plan, stay_plan_forms.of_plan(plan))


@blueprint.post("/<uuid:plan_id>/change", endpoint="changed")
@access.staff("manager")
def do_change(plan_id: UUID) -> AnyResponse | str:
    form, seen = stay_plan_forms.PlanForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_change_page(_plan(plan_id), form))
    said = answer.act(stay_plans.change, plan_id, seen, form.terms())
    return _answered(said, plan_id, form)


@blueprint.post("/<uuid:plan_id>/withdraw")
@access.staff("manager")
def withdraw(plan_id: UUID) -> AnyResponse:
    return _answered(answer.act(stay_plans.withdraw, plan_id, forms.seen()), plan_id)


@blueprint.post("/<uuid:plan_id>/sell")
@access.staff("manager")
def sell(plan_id: UUID) -> AnyResponse:
    return _answered(answer.act(stay_plans.sell_again, plan_id, forms.seen()), plan_id)


def _plan(plan_id: UUID) -> Row:
    with answer.reading() as tx:
        found = listed.head(tx, plan_id)
    return found if found is not None else abort(404)


def _new_page(form: stay_plan_forms.NewPlanForm) -> str:
    return render_template("staff/stay_plans/new.html", form=form, plan=None)


def _change_page(plan: Row, form: stay_plan_forms.PlanForm) -> str:
    """`stale`: somebody changed it while this form was open."""
    stale = form.version.data != plan.version
    return render_template(
        "staff/stay_plans/change.html", plan=plan, form=form, stale=stale, **_words()
    )


def _page(plan_id: UUID) -> str:
    with answer.reading() as tx:
        seen = listed.load(tx, plan_id)
    if seen is None:
        abort(404)
    return render_template("staff/stay_plans/show.html", seen=seen, plan=seen.plan, **_words())


def _words() -> dict[str, Any]:
    return {
        "kinds": stay_plan_forms.KINDS,
        "units": stay_plan_forms.UNITS,
        "each": words.UNITS,
        "classes": stay_plan_forms.CLASSES,
    }


def _answered(
    outcome: Outcome, plan_id: UUID, form: stay_plan_forms.PlanForm | None = None
) -> AnyResponse:
    """What was typed into `form` is shown again where nothing came of it."""
    return answer.respond(
        outcome,
        to=url_for(".show", plan_id=plan_id),
        render=lambda: _page(plan_id),
        again=(lambda: _change_page(_plan(plan_id), form)) if form else None,
    )
