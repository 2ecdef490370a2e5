"""The forms of what stays are sold as: what a manager types, and what it means."""

import re
from typing import Any

from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from wtforms import BooleanField, ValidationError

from portal.db import Row
from portal.lazy import _l, _lp
from portal.money import CARD_MINIMUM, Money, below_card_minimum
from portal.verbs.stay_plans import NewPlan, Terms
from portal.web import access, forms
from portal.web.locale import money

LONGEST_CODE = 40
LABELS = {
    "name_ja": _l("Name in Japanese"),
    "name_en": _l("Name in English"),
    "kind": _lp("stay plan", "Kind"),
    "unit": _l("Sold by"),
    "unit_price": _l("Price of one"),
    "deposit": _l("Deposit"),
    "tax_class": _l("Consumption tax"),
    "members_only": _l("For members only"),
}
KINDS = {"lodging": _l("Lodging"), "day_use": _l("Day use")}
UNITS = {"night": _l("Night"), "hour": _l("Hour"), "visit": _l("Visit")}
CLASSES = {
    "standard": _l("Standard rate"),
    "reduced": _l("Reduced rate"),
    "untaxed": _l("Not taxed"),
}
CHOICES = {"kind": KINDS, "unit": UNITS, "tax_class": CLASSES}


class TermsForm(forms.Form):
    name_ja = forms.Text(LABELS["name_ja"], [forms.required()])
    name_en = forms.Text(LABELS["name_en"], [forms.required()])
    kind = forms.Choice(LABELS["kind"], default="lodging")
    unit = forms.Choice(LABELS["unit"], default="night")
    unit_price = forms.Amount(LABELS["unit_price"], [forms.required()])
    deposit = forms.Amount(LABELS["deposit"])
    tax_class = forms.Choice(LABELS["tax_class"], default="standard")
    members_only = BooleanField(LABELS["members_only"])

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for field in (self.kind, self.unit, self.tax_class):
            field.choices = [(key, str(said)) for key, said in CHOICES[field.name].items()]

    def validate_unit_price(self, field: Any) -> None:
        _takes_a_card(field)

    def validate_deposit(self, field: Any) -> None:
        """The verb says the same; here it stands at its field."""
        _takes_a_card(field)
        if field.data and self.unit_price.data is not None and field.data > self.unit_price.data:
            raise ValidationError(gettext("At most the price of one night, hour or visit."))

    def terms(self) -> Terms:
        """Only of a form that is valid."""
        return Terms(
            name_ja=self.name_ja.data or "",
            name_en=self.name_en.data or "",
            kind=self.kind.data,
            unit=self.unit.data,
            unit_price=self.unit_price.data,
            deposit=self.deposit.data or 0,
            tax_class=self.tax_class.data,
            members_only=bool(self.members_only.data),
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
    written = {name: str(getattr(plan, name)) for name in (*Terms.__slots__, "version")}
    if not plan.members_only:
        del written["members_only"]
    return PlanForm(formdata=MultiDict(written))


def _takes_a_card(field: Any) -> None:
    currency = access.facility().currency
    least = Money(CARD_MINIMUM[currency], currency)
    if field.data is not None and below_card_minimum(Money(field.data, currency)):
        raise ValidationError(
            gettext("Nothing, or %(amount)s or more: a card takes no less.", amount=money(least))
        )
