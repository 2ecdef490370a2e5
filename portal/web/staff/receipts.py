"""Receipts of a stay, for the desk."""

from uuid import UUID

from flask import Blueprint, Response, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.verbs import documents
from portal.verbs.documents import Folio
from portal.web import access, answer, receipts
from portal.web.receipts import AddresseeForm, Place
from portal.web.staff import stay_view

blueprint = Blueprint("receipts", __name__, url_prefix="/staff/stays/<uuid:stay_id>/receipts")


@blueprint.get("")
@access.staff()
def index(stay_id: UUID) -> str:
    return receipts.index(_place(stay_id))


@blueprint.post("")
@access.staff()
def issue(stay_id: UUID) -> AnyResponse | str:
    place, form = _place(stay_id), AddresseeForm()
    if not form.validate():
        return answer.form_again(receipts.index(place, form))
    return receipts.issued(place, answer.act(documents.issue, place.folio, *form.typed()), form)


@blueprint.get("/<uuid:document_id>")
@access.staff()
def show(stay_id: UUID, document_id: UUID) -> str:
    return receipts.show(_place(stay_id), document_id)


@blueprint.get("/<uuid:document_id>/pdf")
@access.staff()
def download(stay_id: UUID, document_id: UUID) -> Response:
    return receipts.download(_place(stay_id), document_id)


@blueprint.post("/<uuid:document_id>/again")
@access.staff()
def again(stay_id: UUID, document_id: UUID) -> AnyResponse:
    place, key = _place(stay_id), receipts.asked_again()
    said = answer.act(documents.issue_again, document_id, key, place.folio)
    return answer.respond(said, to=place.url("show", document_id=document_id))


def _place(stay_id: UUID) -> Place:
    with answer.reading() as tx:
        stay = stay_view.head_of(tx, stay_id)
    return Place(
        folio=Folio(stay_id=stay_id),
        endpoints="receipts",
        at={"stay_id": stay_id},
        layout="staff/base.html",
        back=url_for("stays.show", stay_id=stay_id),
        guest=stay.guest,
        currency=stay.currency,
    )
