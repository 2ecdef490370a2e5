"""Receipts of a membership, for the person who holds its link."""

from uuid import UUID

from flask import Blueprint, Response, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.verbs import documents
from portal.verbs.documents import Folio
from portal.web import access, answer, receipts
from portal.web.extensions import limiter
from portal.web.guest.limits import guesses
from portal.web.receipts import AddresseeForm, Place

blueprint = Blueprint("membership_receipts", __name__, url_prefix="/m/<token>/receipt")
guesses(blueprint)


@blueprint.get("")
@access.member
def index(token: str) -> str:
    return receipts.index(_place(token))


@blueprint.post("")
@access.member
def issue(token: str) -> AnyResponse | str:
    place, form = _place(token), AddresseeForm()
    if not form.validate():
        return answer.form_again(receipts.index(place, form))
    return receipts.issued(place, answer.act(documents.issue, place.folio, *form.typed()), form)


@blueprint.get("/<uuid:document_id>")
@access.member
def show(token: str, document_id: UUID) -> str:
    return receipts.show(_place(token), document_id)


@blueprint.get("/<uuid:document_id>/pdf")
@limiter.limit("30 per minute")
@access.member
def download(token: str, document_id: UUID) -> Response:
    return receipts.download(_place(token), document_id)


@blueprint.post("/<uuid:document_id>/again")
@access.member
def again(token: str, document_id: UUID) -> AnyResponse:
    place, key = _place(token), receipts.asked_again()
    said = answer.act(documents.issue_again, document_id, key, place.folio)
    return answer.respond(said, to=place.url("show", document_id=document_id))


def _place(token: str) -> Place:
    visit = access.visit()
    return Place(
        folio=Folio(membership_id=visit.subject_id),
        endpoints="membership_receipts",
        at={"token": token},
        layout="guest/base.html",
        back=url_for("membership.show", token=token),
        guest=visit.actor.name,
        currency=access.facility().currency,
    )
