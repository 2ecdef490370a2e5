"""What a house decides about itself. A page of its own for each matter is linked from here."""

from flask import Blueprint, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse
from wtforms import BooleanField

from portal.lazy import _l
from portal.outcome import Outcome
from portal.queries import house
from portal.verbs import facilities
from portal.web import access, answer, forms

blueprint = Blueprint("settings", __name__, url_prefix="/staff/settings")


class BenefitsForm(forms.Form):
    while_past_due = BooleanField(_l("Members whose payment is overdue keep what they are given"))


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


def _page(typed: BenefitsForm | None = None) -> str:
    """The settings as they are, or as they were typed where that was not right."""
    if typed is None:
        with answer.reading() as tx:
            kept = house.settings(tx)
        typed = BenefitsForm(formdata=None, data={"while_past_due": kept.benefits_while_past_due})
    return render_template("staff/settings/index.html", form=typed)


def _answered(outcome: Outcome) -> AnyResponse:
    return answer.respond(outcome, to=url_for("settings.index"), render=_page)
