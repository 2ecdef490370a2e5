"""Receipts, the same wherever they are asked for: the account's documents, one more, one of them as
it is printed. `pages` makes the blueprint of one place."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, abort, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.lazy import _l
from portal.outcome import Applied, Noop, Outcome
from portal.queries import documents as listed
from portal.verbs import documents
from portal.verbs.documents import Folio
from portal.web import answer, forms, paper

LONGEST_ADDRESSEE = 300

View = Callable[..., Any]


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
    """`name`: of its blueprint. `at`: the parts of its address. `layout`: whose pages these are.
    `back`: where one came from."""

    folio: Folio
    name: str
    at: Mapping[str, Any]
    layout: str
    back: str
    guest: str
    currency: str

    def url(self, endpoint: str, **more: Any) -> str:
        return url_for(f"{self.name}.{endpoint}", **self.at, **more)


def pages(
    name: str,
    prefix: str,
    who: Callable[[View], View],
    place: Callable[..., Place],
    *,
    as_often: Callable[[View], View] = lambda view: view,
) -> Blueprint:
    """The pages of `place`, which is made of the parts of the address. `who` may use them, and
    `as_often` limits how often a PDF is written."""
    blueprint = Blueprint(name, __name__, url_prefix=prefix)

    @blueprint.get("")
    @who
    def index(**at: Any) -> str:
        return _index(place(**at))

    @blueprint.post("")
    @who
    def issue(**at: Any) -> AnyResponse | str:
        here, form = place(**at), AddresseeForm()
        if not form.validate():
            return answer.form_again(_index(here, form))
        return _issued(here, answer.act(documents.issue, here.folio, *form.typed()), form)

    @blueprint.get("/<uuid:document_id>")
    @who
    def show(document_id: UUID, **at: Any) -> str:
        return _show(place(**at), document_id)

    @blueprint.get("/<uuid:document_id>/pdf")
    @as_often
    @who
    def download(document_id: UUID, **at: Any) -> Response:
        return paper.as_pdf(_document(place(**at), document_id))

    @blueprint.post("/<uuid:document_id>/again")
    @who
    def again(document_id: UUID, **at: Any) -> AnyResponse:
        here, key = place(**at), _asked_again()
        said = answer.act(documents.issue_again, document_id, key, here.folio)
        return answer.respond(said, to=here.url("show", document_id=document_id))

    return blueprint


def _index(place: Place, form: AddresseeForm | None = None) -> str:
    with answer.reading() as tx:
        made = listed.of(tx, place.folio.column, place.folio.id)
        left = listed.unstated(tx, place.folio.column, place.folio.id)
    form = form or AddresseeForm(formdata=None, data={"addressee": _last(made, place.guest)})
    return render_template(
        "receipts/index.html",
        place=place,
        documents=made,
        left=left,
        form=form,
        titles=paper.TITLES,
    )


def _issued(place: Place, said: Outcome, form: AddresseeForm) -> AnyResponse:
    """To the paper, once there is one."""
    if isinstance(said, Applied | Noop) and said.subject:
        return answer.respond(said, to=place.url("show", document_id=said.subject))
    return answer.respond(said, to=place.url("index"), again=lambda: _index(place, form))


def _show(place: Place, document_id: UUID) -> str:
    document = _document(place, document_id)
    return render_template(
        "receipts/paper.html",
        place=place,
        document=document,
        paper=paper.paper(document),
        sheet=paper.sheet(),
        form=forms.MakeForm(formdata=None),
    )


def _asked_again() -> UUID:
    """The key of the form that asks for a document once more."""
    form = forms.MakeForm()
    if not form.validate():
        abort(400)
    key: UUID = form.form_key.data
    return key


def _document(place: Place, document_id: UUID) -> Row:
    """One of this very account; another's does not exist."""
    with answer.reading() as tx:
        found = listed.one(tx, document_id)
    if found is None or getattr(found, place.folio.column) != place.folio.id:
        abort(404)
    return found


def _last(made: Sequence[Row], guest: str) -> str:
    return made[-1].addressee if made else guest
