"""Cancellation policies: made, changed as a new version, and chosen for each plan."""

from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.outcome import Outcome
from portal.queries import cancellations
from portal.verbs import cancellation_policies
from portal.web import access, answer, forms, people
from portal.web.staff import policy_forms

blueprint = Blueprint("cancellation_policies", __name__, url_prefix="/staff/settings/cancellation")


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    return _page()


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    return _new_page(policy_forms.NewPolicyForm(formdata=None))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = policy_forms.NewPolicyForm()
    if not form.validate():
        return answer.form_again(_new_page(form))
    return _answered(answer.act(cancellation_policies.create, form.wanted()))


@blueprint.get("/<uuid:cancellation_policy_id>/change")
@access.staff("manager")
def change(cancellation_policy_id: UUID) -> str:
    policy = _policy(cancellation_policy_id)
    return _change_page(policy, policy_forms.of_policy(policy))


@blueprint.post("/<uuid:cancellation_policy_id>/change", endpoint="changed")
@access.staff("manager")
def do_change(cancellation_policy_id: UUID) -> AnyResponse | str:
    form, seen = policy_forms.PolicyForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_change_page(_policy(cancellation_policy_id), form))
    said = answer.act(cancellation_policies.change, cancellation_policy_id, seen, form.terms())
    return answer.respond(
        said,
        to=url_for(".index"),
        render=_page,
        again=lambda: _change_page(_policy(cancellation_policy_id), form),
    )


@blueprint.post("/plans/<uuid:plan_id>", endpoint="choose")
@access.staff("manager")
def choose(plan_id: UUID) -> AnyResponse:
    seen, wanted = (_named(request.form.get(name)) for name in ("seen", "policy"))
    return _answered(answer.act(cancellation_policies.choose, plan_id, seen, wanted))


def _named(text: str | None) -> UUID | None:
    """A policy by its id; empty is none, and anything else was not sent by a page of ours."""
    if text == "":
        return None
    return people.uuid_of(text) or abort(400)


def _policy(policy_id: UUID) -> Row:
    with answer.reading() as tx:
        found = cancellations.head(tx, policy_id)
    return found if found is not None else abort(404)


def _page() -> str:
    with answer.reading() as tx:
        policies, plans = cancellations.listed(tx), cancellations.plans(tx)
    return render_template("staff/cancellation/index.html", policies=policies, plans=plans)


def _new_page(form: policy_forms.NewPolicyForm) -> str:
    return render_template("staff/cancellation/new.html", form=form)


def _change_page(policy: Row, form: policy_forms.PolicyForm) -> str:
    """`stale`: somebody changed it while this form was open."""
    stale = form.version.data != policy.version
    return render_template("staff/cancellation/change.html", policy=policy, form=form, stale=stale)


def _answered(outcome: Outcome) -> AnyResponse:
    return answer.respond(outcome, to=url_for(".index"), render=_page)
