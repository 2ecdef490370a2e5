"""What a house decides about itself. A page of its own for each matter is linked from here."""

import unicodedata
from typing import Any

from flask import Blueprint, render_template, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse
from wtforms import BooleanField, ValidationError

from portal.lazy import _l
from portal.outcome import Outcome
from portal.policies import tax
from portal.queries import house
from portal.verbs import facilities
from portal.web import access, answer, forms

blueprint = Blueprint("settings", __name__, url_prefix="/staff/settings")


class BenefitsForm(forms.Form):
    while_past_due = BooleanField(_l("Members whose payment is overdue keep what they are given"))


class RegisterForm(forms.Form):
    register_required = BooleanField(_l("Let guests of lodging in only once it is filled in"))


class DepositForm(forms.Form):
    deposit_hours = forms.Count(
        _l("Hours that a booking waits for its deposit"), least=1, most=facilities.LONGEST_HOLD
    )


class IssuerForm(forms.Form):
    issuer_name = forms.Text(_l("Issuer of receipts"))
    tax_number = forms.Text(_l("Registration number of the issuer of qualified invoices"), most=14)

    def validate_tax_number(self, field: Any) -> None:
        field.data = unicodedata.normalize("NFKC", field.data or "").strip().upper() or None
        if field.data and not tax.is_registration(field.data):
            raise ValidationError(gettext("T and 13 figures, the first of which fits the others."))


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    return _page()


@blueprint.post("/benefits")
@access.staff("manager")
def benefits() -> AnyResponse | str:
    form = BenefitsForm()
    if not form.validate():
        return answer.form_again(_page(form))
    return _answered(answer.act(facilities.choose_benefits, bool(form.while_past_due.data)))


@blueprint.post("/issuer")
@access.staff("manager")
def issuer() -> AnyResponse | str:
    form = IssuerForm()
    if not form.validate():
        return answer.form_again(_page(issuer=form))
    name = form.issuer_name.data or ""
    return _answered(answer.act(facilities.name_issuer, name, form.tax_number.data))


@blueprint.post("/register")
@access.staff("manager")
def register() -> AnyResponse | str:
    form = RegisterForm()
    if not form.validate():
        return answer.form_again(_page(register=form))
    return _answered(answer.act(facilities.require_register, bool(form.register_required.data)))


@blueprint.post("/deposit")
@access.staff("manager")
def deposit() -> AnyResponse | str:
    form = DepositForm()
    if not form.validate():
        return answer.form_again(_page(deposit=form))
    return _answered(answer.act(facilities.hold_for_deposit, form.deposit_hours.data))


def _page(
    benefits: BenefitsForm | None = None,
    issuer: IssuerForm | None = None,
    register: RegisterForm | None = None,
    deposit: DepositForm | None = None,
) -> str:
    """The settings as they are, or as they were typed where that was not right."""
    with answer.reading() as tx:
        kept = house.settings(tx)
    data = {"while_past_due": kept.benefits_while_past_due}
    named = {"issuer_name": kept.issuer_name, "tax_number": kept.tax_number}
    return render_template(
        "staff/settings/index.html",
        form=benefits or BenefitsForm(formdata=None, data=data),
        register=register
        or RegisterForm(formdata=None, data={"register_required": kept.register_required}),
        deposit=deposit or DepositForm(formdata=None, data={"deposit_hours": kept.deposit_hours}),
        issuer=issuer or IssuerForm(formdata=None, data=named),
    )


def _answered(outcome: Outcome) -> AnyResponse:
    return answer.respond(outcome, to=url_for("settings.index"), render=_page)
