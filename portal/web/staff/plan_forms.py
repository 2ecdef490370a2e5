"""The forms of what can be joined: what a manager types, and what it means."""

import re
from typing import Any

from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from wtforms import ValidationError

from portal.db import Row
from portal.lazy import _l
from portal.money import CARD_MINIMUM, Money
from portal.verbs.membership_plans import NewPlan, Terms
from portal.web import access, forms
from portal.web.locale import money

LONGEST_CODE = 40
LONGEST_TERMS = 10_000
LABELS = {
    "name_ja": _l("Name in Japanese"),
    "name_en": _l("Name in English"),
    "price": _l("Price"),
    "billed_every": _l("Billed every"),
    "billing": _l("Payment"),
    "monthly_quota": _l("Visits in a calendar month"),
    "terms_ja": _l("Terms in Japanese"),
    "terms_en": _l("Terms in English"),
    "terms_version": _l("Version of the terms"),
}
EVERY = {"month": _l("Month"), "year": _l("Year")}
BILLING = {"desk": _l("At the desk"), "card": _l("By card")}
CHOICES = {"billed_every": EVERY, "billing": BILLING}
# A browser counts UTF-16 units, of which a character may have two: it must not cut what we take.
TERMS_UNITS = {"maxlength": 2 * LONGEST_TERMS, "rows": 8}


class TermsForm(forms.Form):
    name_ja = forms.Text(LABELS["name_ja"], [forms.required()])
    name_en = forms.Text(LABELS["name_en"], [forms.required()])
    price = forms.Amount(LABELS["price"], [forms.required()])
    billed_every = forms.Choice(LABELS["billed_every"], default="month")
    billing = forms.Choice(LABELS["billing"], default="desk")
    monthly_quota = forms.Amount(LABELS["monthly_quota"], least=1)
    terms_ja = forms.Note(LABELS["terms_ja"], most=LONGEST_TERMS, render_kw=TERMS_UNITS)
    terms_en = forms.Note(LABELS["terms_en"], most=LONGEST_TERMS, render_kw=TERMS_UNITS)
    terms_version = forms.Text(LABELS["terms_version"], [forms.required()], most=LONGEST_CODE)

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self.billed_every.choices = [(key, str(said)) for key, said in EVERY.items()]
        self.billing.choices = [(key, str(said)) for key, said in BILLING.items()]

    def validate_price(self, field: Any) -> None:
        """The verb says the same; here it stands at its field, with the amount to reach."""
        least = Money(CARD_MINIMUM[access.facility().currency], access.facility().currency)
        if self.billing.data == "card" and field.data is not None and field.data < least.amount:
            raise ValidationError(gettext("A card takes %(amount)s or more.", amount=money(least)))

    def terms(self) -> Terms:
        """Only of a form that is valid."""
        return Terms(
            name_ja=self.name_ja.data or "",
            name_en=self.name_en.data or "",
            price=self.price.data,
            billed_every=self.billed_every.data,
            billing=self.billing.data,
            monthly_quota=self.monthly_quota.data,
            terms_ja=self.terms_ja.data or "",
            terms_en=self.terms_en.data or "",
            terms_version=self.terms_version.data or "",
        )


class NewPlanForm(TermsForm, forms.MakeForm):
    code = forms.Text(_l("Code"), [forms.required()], most=LONGEST_CODE)

    def validate_code(self, field: Any) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", field.data or ""):
            raise ValidationError(gettext("Small letters, figures and hyphens between them."))

    def wanted(self) -> NewPlan:
        """Only of a form that is valid."""
        return NewPlan(self.form_key.data, self.code.data or "", self.terms())


class PlanForm(TermsForm, forms.ActForm):
    pass


def of_plan(plan: Row) -> PlanForm:
    """A plan's terms as a form writes them."""
    written = {
        name: str(getattr(plan, name))
        for name in (*Terms.__slots__, "version")
        if getattr(plan, name) is not None
    }
    return PlanForm(formdata=MultiDict(written))
