"""The house's tables of lodging tax: what holds from which day, and a new one."""

from datetime import date
from typing import Any

from flask import Blueprint, render_template, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from portal.lazy import _l
from portal.policies.lodging_tax import Band
from portal.queries import lodging_tax
from portal.verbs import lodging_taxes
from portal.web import access, answer, forms

blueprint = Blueprint("lodging_tax", __name__, url_prefix="/staff/settings/lodging-tax")

LINES = range(1, 7)


class TableForm(forms.MakeForm):
    """`least_1`, `most_1`, `amount_1` and so on: a line each, as many as are filled in."""

    valid_from = forms.Day(_l("Valid from"), [forms.required()])

    def line(self, number: int) -> list[Any]:
        return [self[f"{name}_{number}"] for name in ("least", "most", "amount")]

    def validate(self, extra_validators: Any = None) -> bool:
        return all([super().validate(extra_validators), *map(self._is_whole, LINES)])

    def _is_whole(self, number: int) -> bool:
        """A line without its lower end or its amount is told at the field."""
        least, most, amount = self.line(number)
        if all(field.data is None for field in (least, most, amount)):
            return not any(field.errors for field in (least, most, amount))
        for field in (least, amount):
            if field.data is None and not field.errors:
                field.errors = [str(ValidationError(gettext("Please fill this in.")))]
        return not any(field.errors for field in (least, most, amount))

    def table(self) -> tuple[date, list[Band]]:
        """Only of a form that is valid."""
        day = self.valid_from.data
        if day is None:
            raise ValueError("a table without its day")
        lines = [[field.data for field in self.line(number)] for number in LINES]
        return day, [
            Band(least, most, amount) for least, most, amount in lines if least is not None
        ]


for _number in LINES:
    setattr(TableForm, f"least_{_number}", forms.Amount(_l("From (without tax)")))
    setattr(TableForm, f"most_{_number}", forms.Amount(_l("To")))
    setattr(TableForm, f"amount_{_number}", forms.Amount(_l("Lodging tax")))


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    return _page()


@blueprint.post("")
@access.staff("manager")
def write() -> AnyResponse | str:
    form = TableForm()
    if not form.validate():
        return answer.form_again(_page(form))
    said = answer.act(lodging_taxes.write_table, *form.table(), form.form_key.data)
    return answer.respond(said, to=url_for("lodging_tax.index"), again=lambda: _page(form))


def _page(form: TableForm | None = None) -> str:
    with answer.reading() as tx:
        lines = lodging_tax.tables(tx)
    return render_template(
        "staff/settings/lodging_tax.html",
        lines=lines,
        form=form or TableForm(formdata=None),
        numbers=LINES,
    )
