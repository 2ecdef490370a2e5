"""What ticket books the desk sells: offered and withdrawn by managers."""

from typing import Any
from uuid import UUID

from flask import Blueprint, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.lazy import _l
from portal.models.ticket import MOST_MONTHS, MOST_TICKETS
from portal.outcome import Outcome
from portal.queries import tickets
from portal.verbs import ticket_offers
from portal.verbs.ticket_offers import NewOffer
from portal.web import access, answer, forms
from portal.web.locale import language, money

blueprint = Blueprint("ticket_offers", __name__, url_prefix="/staff/settings/tickets")

USUAL_MONTHS = 6


class OfferForm(forms.MakeForm):
    name_ja = forms.Text(_l("Name in Japanese"), [forms.required()])
    name_en = forms.Text(_l("Name in English"), [forms.required()])
    plan_id = forms.Choice(_l("Visits under which plan"))
    tickets = forms.Count(_l("How many tickets"), [forms.required()], least=1, most=MOST_TICKETS)
    price = forms.Amount(_l("Price of the book"), [forms.required()])
    months = forms.Count(
        _l("Months in which they are used"), [forms.required()], least=1, most=MOST_MONTHS
    )

    def wanted(self) -> NewOffer:
        """Only of a form that is valid."""
        return NewOffer(
            form_key=self.form_key.data,
            name_ja=self.name_ja.data or "",
            name_en=self.name_en.data or "",
            plan_id=UUID(self.plan_id.data),
            tickets=self.tickets.data,
            price=self.price.data,
            months=self.months.data,
        )


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    return _page()


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    return _new_page(_offered(OfferForm(formdata=None, data={"months": USUAL_MONTHS})))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = _offered(OfferForm())
    if not form.validate():
        return answer.form_again(_new_page(form))
    return _answered(answer.act(ticket_offers.create, form.wanted()), form)


@blueprint.post("/<uuid:ticket_offer_id>/withdraw")
@access.staff("manager")
def withdraw(ticket_offer_id: UUID) -> AnyResponse:
    return _answered(answer.act(ticket_offers.withdraw, ticket_offer_id, forms.seen()))


def _offered(form: OfferForm) -> OfferForm:
    """With the plans that a ticket can pay, each at what a visit costs without."""
    with answer.reading() as tx:
        plans = tickets.visits(tx)
    form.plan_id.choices = [(str(plan.id), _plan_label(plan)) for plan in plans]
    return form


def _plan_label(plan: Any) -> str:
    name = plan.name_ja if language() == "ja" else plan.name_en
    return f"{name} · {money(plan.unit_price)}"


def _page() -> str:
    with answer.reading() as tx:
        offers = tickets.offers(tx)
    currency = access.facility().currency
    return render_template("staff/tickets/offers.html", offers=offers, currency=currency)


def _new_page(form: OfferForm) -> str:
    return render_template("staff/tickets/new_offer.html", form=form)


def _answered(outcome: Outcome, form: OfferForm | None = None) -> AnyResponse:
    return answer.respond(
        outcome,
        to=url_for(".index"),
        render=_page,
        again=(lambda: _new_page(form)) if form else None,
    )
