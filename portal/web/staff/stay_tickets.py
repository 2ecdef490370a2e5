"""Ticket books on a stay's page: one sold on its account, or a ticket that pays it."""

from uuid import UUID

from flask import Blueprint, render_template
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.lazy import _l
from portal.policies import stay_codes
from portal.queries import tickets
from portal.verbs import ticket_books
from portal.web import access, answer, forms
from portal.web.locale import language, money
from portal.web.staff import stay_view

blueprint = Blueprint("tickets", __name__, url_prefix="/<uuid:stay_id>")


class SellForm(forms.MakeForm):
    offer = forms.Choice(_l("Ticket book"))


class UseForm(forms.ActForm):
    ticket = forms.Text(
        _l("Code of a ticket book"),
        [forms.required()],
        most=20,
        render_kw={"autocomplete": "off"},
    )


@blueprint.get("/ticket-book")
@access.staff()
def sell(stay_id: UUID) -> str:
    return _sell_page(stay_id, SellForm(formdata=None))


@blueprint.post("/ticket-book", endpoint="sold")
@access.staff()
def do_sell(stay_id: UUID) -> AnyResponse | str:
    form = _offered(SellForm())
    if not form.validate():
        return answer.form_again(_sell_page(stay_id, form))
    said = answer.act(ticket_books.sell, stay_id, UUID(form.offer.data), form.form_key.data)
    again = (lambda: _sell_page(stay_id, form)) if said.status == "refused" else None
    return stay_view.answered(said, stay_id, again)


@blueprint.get("/ticket")
@access.staff()
def use(stay_id: UUID) -> str:
    return _use_page(stay_id, None)


@blueprint.post("/ticket", endpoint="used")
@access.staff()
def do_use(stay_id: UUID) -> AnyResponse | str:
    form, seen = UseForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_use_page(stay_id, form))
    code = stay_codes.as_typed(form.ticket.data or "")
    said = answer.act(ticket_books.use, stay_id, seen, code)
    again = (lambda: _use_page(stay_id, form)) if said.status == "refused" else None
    return stay_view.answered(said, stay_id, again)


def _sell_page(stay_id: UUID, form: SellForm) -> str:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    return render_template("staff/tickets/sell.html", stay=stay, form=_offered(form))


def _offered(form: SellForm) -> SellForm:
    with answer.reading() as tx:
        offers = tickets.sold_now(tx)
    form.offer.choices = [(str(offer.id), _label(offer)) for offer in offers]
    return form


def _label(offer: Row) -> str:
    name = offer.name_ja if language() == "ja" else offer.name_en
    return f"{name} · {money(offer.price)}"


def _use_page(stay_id: UUID, form: UseForm | None) -> str:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    form = form or UseForm(formdata=None, data={"version": stay.version})
    return render_template("staff/tickets/use.html", stay=stay, form=form)
