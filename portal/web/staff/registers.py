"""The register of guests at the desk: filled in, opened for a reason, taken out on request."""

from datetime import date
from uuid import UUID

from flask import Blueprint, Response, abort, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.lazy import _l
from portal.outcome import Applied
from portal.queries import registers as known
from portal.verbs import registers
from portal.web import access, answer, forms, people, register_form, sheet
from portal.web.locale import when
from portal.web.register_form import RegisterForm

blueprint = Blueprint("registers", __name__, url_prefix="/staff")

FIELDS = {
    "name": _l("Name"),
    "address": _l("Address"),
    "contact": _l("Telephone or e-mail"),
    "nationality": _l("Nationality"),
    "passport": _l("Passport number"),
    "occupation": _l("Occupation"),
}


class ReasonForm(forms.Form):
    reason = forms.Text(_l("Reason"), [forms.required()], most=300)


class ExportForm(ReasonForm):
    first = forms.Day(_l("Arrivals from"), [forms.required()])
    last = forms.Day(_l("Arrivals until"), [forms.required()])

    def days(self) -> tuple[date, date]:
        """Only of a form that is valid."""
        if self.first.data is None or self.last.data is None:
            raise ValueError("an export without its days")
        return self.first.data, self.last.data


@blueprint.get("/stays/<uuid:stay_id>/register")
@access.staff()
def show(stay_id: UUID) -> str:
    return _page(stay_id)


@blueprint.post("/stays/<uuid:stay_id>/register")
@access.staff()
def fill(stay_id: UUID) -> AnyResponse | str:
    form = RegisterForm()
    if not form.validate():
        return answer.form_again(_page(stay_id, form=form))
    said = answer.act(registers.fill, stay_id, form.entry(), form.person)
    return answer.respond(
        said,
        to=url_for("registers.show", stay_id=stay_id),
        again=lambda: _page(stay_id, form=form),
    )


@blueprint.post("/stays/<uuid:stay_id>/register/open", endpoint="open")
@access.staff()
def open_sealed(stay_id: UUID) -> AnyResponse | str:
    """The answer itself shows it: an address that could be loaded again would need no reason."""
    form = ReasonForm()
    if not form.validate():
        return answer.form_again(_page(stay_id, reason=form))
    said = answer.act(registers.open_sealed, stay_id, form.reason.data or "")
    if isinstance(said, Applied):
        return answer.show(lambda: _page(stay_id, opened=True), answer.as_notice(said))
    return answer.respond(
        said,
        to=url_for("registers.show", stay_id=stay_id),
        again=lambda: _page(stay_id, reason=form),
    )


@blueprint.get("/registers")
@access.staff("manager")
def index() -> str:
    return _export_page()


@blueprint.post("/registers")
@access.staff("manager")
def export() -> AnyResponse | str:
    form = ExportForm()
    if not form.validate():
        return answer.form_again(_export_page(form))
    days = form.days()
    said = answer.act(registers.export, *days, form.reason.data or "")
    if isinstance(said, Applied):
        return _file(*days)
    return answer.respond(said, to=url_for("registers.index"), again=lambda: _export_page(form))


def _page(
    stay_id: UUID,
    *,
    form: RegisterForm | None = None,
    reason: ReasonForm | None = None,
    opened: bool = False,
) -> str:
    with answer.reading() as tx:
        stay, filled = known.of_stay(tx, stay_id), known.filled(tx, stay_id)
        sealed = known.sealed(tx, stay_id) if opened else []
    if stay is None or not stay.lodging:
        abort(404)
    progress = register_form.progress(stay, filled, people.actor())
    return render_template(
        "staff/registers/show.html",
        stay=stay,
        progress=progress,
        open=stay.state in registers.OPEN,
        form=form or register_form.fresh(stay, progress.asked(request.args.get("person"))),
        reason=reason or ReasonForm(formdata=None),
        told={row.person: _told(row) for row in sealed},
    )


def _told(sealed: Row) -> list[tuple[str, str]]:
    values = registers.unsealed(sealed)
    return [(str(words), values[name]) for name, words in FIELDS.items() if values[name]]


def _export_page(form: ExportForm | None = None) -> str:
    with answer.reading() as tx:
        readings = known.readings(tx)
    return render_template(
        "staff/registers/index.html",
        readings=readings,
        form=form or ExportForm(formdata=None),
    )


def _file(first: date, last: date) -> Response:
    with answer.reading() as tx:
        rows = registers.entries(tx, first, last)
    headings = [gettext("Reservation code"), gettext("Space"), gettext("From"), gettext("Until")]
    return sheet.download(
        f"register-{first}-{last}.csv",
        [*headings, *(str(words) for words in FIELDS.values())],
        [[_row(row) for row in rows]],
    )


def _row(row: Row) -> list[str]:
    values = registers.unsealed(row)
    times = [when(row.admitted_at or row.starts_at), when(row.departed_at or row.ends_at)]
    return [row.code, row.space_code, *times, *(values[name] for name in FIELDS)]
