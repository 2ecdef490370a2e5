"""Members: who applies, who has joined, who leaves."""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from portal import clock
from portal.db import Row
from portal.lazy import _l
from portal.machines.membership import MACHINE
from portal.outcome import Code, Outcome
from portal.policies.membership_end import Reason
from portal.policies.membership_quota import month_of_use
from portal.policies.periods import When
from portal.queries import members, plans, quota
from portal.verbs import links, memberships, subscription_answers
from portal.verbs.membership_end import Ending, end_membership
from portal.web import access, answer, forms, lists, people, words
from portal.web.links import member_link, qr
from portal.web.locale import language

blueprint = Blueprint("members", __name__, url_prefix="/staff/members")

ENDS: dict[str, tuple[Reason, When]] = {
    "month_boundary": ("self_cancel", "month_boundary"),
    "period_end": ("self_cancel", "period_end"),
    "now": ("force_cancel", "month_boundary"),
}
WHEN = {
    "month_boundary": _l("At the end of the month, as the member wishes"),
    "period_end": _l("At the end of what is paid for, as the member wishes"),
    "now": _l("Now, by the house's decision"),
}
DASHBOARD = "https://dashboard.stripe.com"
ENDABLE = ("active", "past_due", "scheduled_to_end")
APPLYING = ("applying", "checkout")

PROOFS = {
    "keys_gone": _l("No key that only the membership gave is left on a lock"),
    "member_told": _l("The member has been told"),
    "invoices_closed": _l("Nothing is left to pay at the payment provider"),
}


class RejectForm(forms.ActForm):
    note = forms.Note(_l("Reason, for colleagues"))


class EndForm(forms.ActForm):
    when = forms.Choice(_l("When"))
    note = forms.Note(_l("Reason, for colleagues"))

    def validate_note(self, field: Any) -> None:
        if self.when.data == "now" and not (field.data or "").strip():
            raise ValidationError(gettext("Please say why the house ends it."))


class SwitchForm(forms.ActForm):
    plan = forms.Choice(_l("Plan"))


@blueprint.app_template_global()
def proof_name(kind: str) -> str:
    return words.said(PROOFS, kind)


@blueprint.get("")
@access.staff()
def index() -> str:
    state = request.args.get("state", "")
    plan = people.uuid_of(request.args.get("plan"))
    asked = {"state": state if state in MACHINE.table else "", "plan": str(plan or "")}
    with answer.reading() as tx:
        offered = plans.names(tx)
        page = members.page(tx, asked["state"], lists.cursor(), plan=plan)
    return render_template(
        "staff/members/index.html",
        asked=asked,
        page=page,
        states=list(MACHINE.table),
        plans=offered,
        price=words.price,
        **lists.neighbours("members.index", asked, page),
    )


@blueprint.get("/<uuid:membership_id>")
@access.staff()
def show(membership_id: UUID) -> str:
    return _page(membership_id)


@blueprint.post("/<uuid:membership_id>/approve")
@access.staff()
def approve(membership_id: UUID) -> AnyResponse:
    return _answered(
        answer.act_at_desk(memberships.approve, membership_id, forms.seen()), membership_id
    )


@blueprint.post("/<uuid:membership_id>/link")
@access.staff()
def link(membership_id: UUID) -> AnyResponse:
    said = answer.act(links.renew_of_membership, membership_id, forms.seen())
    return _answered(said, membership_id)


@blueprint.post("/<uuid:membership_id>/resume")
@access.staff()
def resume(membership_id: UUID) -> AnyResponse:
    return _answered(
        answer.act_at_desk(memberships.resume, membership_id, forms.seen()), membership_id
    )


@blueprint.post("/<uuid:membership_id>/ask")
@access.staff()
def ask(membership_id: UUID) -> AnyResponse:
    said = answer.act_at_desk(subscription_answers.look_up, membership_id)
    return _answered(said, membership_id)


@blueprint.get("/<uuid:membership_id>/switch")
@access.staff()
def switch(membership_id: UUID) -> str:
    return _act_page("switch", membership_id, _switch_form(None))


@blueprint.post("/<uuid:membership_id>/switch", endpoint="switched")
@access.staff()
def do_switch(membership_id: UUID) -> AnyResponse | str:
    form, seen = _switch_form(request.form), forms.seen()
    if not form.validate():
        return answer.form_again(_act_page("switch", membership_id, form))
    said = answer.act_at_desk(memberships.switch_plan, membership_id, UUID(form.plan.data), seen)
    return _answered(said, membership_id)


@blueprint.get("/<uuid:membership_id>/reject")
@access.staff()
def reject(membership_id: UUID) -> str:
    return _act_page("reject", membership_id, RejectForm(formdata=None))


@blueprint.post("/<uuid:membership_id>/reject", endpoint="rejected")
@access.staff()
def do_reject(membership_id: UUID) -> AnyResponse | str:
    form, seen = RejectForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_act_page("reject", membership_id, form))
    ending = Ending("application_rejected", note=form.note.data or "", seen=seen)
    return _answered(answer.act_at_desk(end_membership, membership_id, ending), membership_id)


@blueprint.get("/<uuid:membership_id>/end")
@access.staff()
def end(membership_id: UUID) -> str:
    return _act_page("end", membership_id, _end_form(None))


@blueprint.post("/<uuid:membership_id>/end", endpoint="ended")
@access.staff()
def do_end(membership_id: UUID) -> AnyResponse | str:
    form, seen = _end_form(request.form), forms.seen()
    if not form.validate():
        return answer.form_again(_act_page("end", membership_id, form))
    reason, when = ENDS[form.when.data]
    ending = Ending(reason, when=when, note=form.note.data or "", seen=seen)
    return _answered(answer.act_at_desk(end_membership, membership_id, ending), membership_id)


def _switch_form(posted: Any) -> SwitchForm:
    form = SwitchForm(formdata=posted)
    with answer.reading() as tx:
        offered = members.plans_by_card(tx)
    form.plan.choices = [
        (str(plan.id), f"{plan.name_ja if language() == 'ja' else plan.name_en} · {_price(plan)}")
        for plan in offered
    ]
    return form


def _price(plan: Row) -> str:
    return words.price(plan.price, plan.currency, plan.billed_every)


def _end_form(posted: Any) -> EndForm:
    form = EndForm(formdata=posted)
    form.when.choices = [(key, str(said)) for key, said in WHEN.items()]
    return form


def _act_page(act: str, membership_id: UUID, form: forms.ActForm) -> str:
    with answer.reading() as tx:
        membership = members.head(tx, membership_id)
        if membership is None:
            abort(404)
        ahead = members.bookings(tx, membership_id)
    return render_template(
        f"staff/members/{act}.html",
        membership=membership,
        form=form,
        bookings=ahead,
        version=form.version.data or membership.version,
        endable=membership.state in ENDABLE,
        withdrawing=membership.state in APPLYING,
    )


def _page(membership_id: UUID) -> str:
    this_month = month_of_use(clock.now(), access.facility().time_zone)
    with answer.reading() as tx:
        seen = members.load(tx, membership_id)
        if seen is None:
            abort(404)
        months = quota.months(tx, membership_id, seen.membership.monthly_quota, this_month)
    return render_template(
        "staff/members/show.html",
        seen=seen,
        membership=seen.membership,
        months=months if seen.membership.started_at else [],
        price=words.price,
        endable=seen.membership.state in ENDABLE,
        withdrawable=seen.membership.state in APPLYING,
        no_way_back=answer.sentence(Code.PLAN_RETIRED, {}),
        link=member_link(seen.membership),
        there=_there(seen.membership),
        qr=qr,
    )


def _there(membership: Row) -> str | None:
    """The subscription in the provider's own pages."""
    if membership.subscription_id is None:
        return None
    part = "" if membership.livemode else "test/"
    return f"{DASHBOARD}/{part}subscriptions/{membership.subscription_id}"


def _answered(outcome: Outcome, membership_id: UUID) -> AnyResponse:
    return answer.respond(
        outcome,
        to=url_for("members.show", membership_id=membership_id),
        render=lambda: _page(membership_id),
    )
