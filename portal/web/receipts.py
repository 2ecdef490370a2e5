"""Receipts, the same wherever they are asked for: the account's documents, one more, one of them as
it is printed. A place is a blueprint with the endpoints index, issue, show, download and again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Response, abort, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.lazy import _l
from portal.outcome import Applied, Noop, Outcome
from portal.queries import documents
from portal.verbs.documents import Folio
from portal.web import answer, forms, paper

LONGEST_ADDRESSEE = 300


class AddresseeForm(forms.MakeForm):
    # A browser counts UTF-16 units, of which a character may have two.
    addressee = forms.Text(
        _l("Name on the receipt"),
        most=LONGEST_ADDRESSEE,
        render_kw={"maxlength": 2 * LONGEST_ADDRESSEE, "autocomplete": "organization"},
    )

    def typed(self) -> tuple[str, UUID]:
        """Only of a form that is valid."""
        return self.addressee.data or "", self.form_key.data


@dataclass(frozen=True, slots=True)
class Place:
    """`at`: the parts of its address. `layout`: whose pages these are. `back`: where one came
    from."""

    folio: Folio
    endpoints: str
    at: Mapping[str, Any]
    layout: str
    back: str
    guest: str
    currency: str

    def url(self, endpoint: str, **more: Any) -> str:
        return url_for(f"{self.endpoints}.{endpoint}", **self.at, **more)


def index(place: Place, form: AddresseeForm | None = None) -> str:
    with answer.reading() as tx:
        made = _of(place)(tx, place.folio.id)
        left = documents.unstated(tx, place.folio.column, place.folio.id)
    form = form or AddresseeForm(formdata=None, data={"addressee": _last(made, place.guest)})
    return render_template(
        "receipts/index.html",
        place=place,
        documents=made,
        left=left,
        form=form,
        titles=paper.TITLES,
    )


def issued(place: Place, said: Outcome, form: AddresseeForm) -> AnyResponse:
    """To the paper, once there is one."""
    if isinstance(said, Applied | Noop) and said.subject:
        return answer.respond(said, to=place.url("show", document_id=said.subject))
    return answer.respond(said, to=place.url("index"), again=lambda: index(place, form))


def show(place: Place, document_id: UUID) -> str:
    document = _document(place, document_id)
    return render_template(
        "receipts/paper.html",
        place=place,
        document=document,
        paper=paper.paper(document),
        sheet=paper.sheet(),
        form=forms.MakeForm(formdata=None),
    )


def download(place: Place, document_id: UUID) -> Response:
    return paper.as_pdf(_document(place, document_id))


def asked_again() -> UUID:
    """The key of the form that asks for a document once more."""
    form = forms.MakeForm()
    if not form.validate():
        abort(400)
    key: UUID = form.form_key.data
    return key


def _of(place: Place) -> Any:
    return documents.of_stay if place.folio.stay_id else documents.of_membership


def _document(place: Place, document_id: UUID) -> Row:
    """One of this very account; another's does not exist."""
    with answer.reading() as tx:
        found = documents.one(tx, document_id)
    if found is None or getattr(found, place.folio.column) != place.folio.id:
        abort(404)
    return found


def _last(made: Sequence[Row], guest: str) -> str:
    return made[-1].addressee if made else guest
