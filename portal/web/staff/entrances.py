"""The ways into the house: listed, opened, changed."""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.db import Row
from portal.outcome import Outcome
from portal.policies import opening
from portal.queries import entrances as listed
from portal.verbs import entrances
from portal.web import access, answer, forms
from portal.web.staff import entrance_forms, hours

blueprint = Blueprint("entrances", __name__, url_prefix="/staff/settings/entrances")


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    with answer.reading() as tx:
        found, plans, doors = listed.listed(tx), listed.plans(tx), listed.doors(tx)
    names = {row.id: row for row in (*plans, *doors)}
    return render_template(
        "staff/entrances/index.html",
        entrances=found,
        names=names,
        modes=entrance_forms.MODES,
        hours=lambda way: hours.lines(opening.week(way.opens, way.closes)),
    )


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    form = entrance_forms.NewEntranceForm(formdata=None)
    return _new_page(_offered(form))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = _offered(entrance_forms.NewEntranceForm())
    if not form.validate():
        return answer.form_again(_new_page(form))
    said = answer.act(entrances.create, form.wanted())
    return _answered(said, lambda: _new_page(form))


@blueprint.get("/<uuid:entrance_id>")
@access.staff("manager")
def change(entrance_id: UUID) -> str:
    entrance = _entrance(entrance_id)
    return _page(entrance, _offered(entrance_forms.of_entrance(entrance), entrance_id))


@blueprint.post("/<uuid:entrance_id>", endpoint="changed")
@access.staff("manager")
def do_change(entrance_id: UUID) -> AnyResponse | str:
    seen, form = forms.seen(), _offered(entrance_forms.EntranceForm(), entrance_id)
    if not form.validate():
        return answer.form_again(_page(_entrance(entrance_id), form))
    said = answer.act(entrances.change, entrance_id, seen, form.terms())
    return _answered(said, lambda: _page(_entrance(entrance_id), form))


def _entrance(entrance_id: UUID) -> Row:
    with answer.reading() as tx:
        found = listed.head(tx, entrance_id)
    return found if found is not None else abort(404)


def _offered(form: Any, own: UUID | None = None) -> Any:
    """The form with what this house has to choose from."""
    with answer.reading() as tx:
        form.offer(listed.plans(tx), listed.doors(tx), own)
    return form


def _new_page(form: entrance_forms.NewEntranceForm) -> str:
    return render_template("staff/entrances/new.html", form=form)


def _page(entrance: Row, form: entrance_forms.EntranceForm) -> str:
    """`stale`: somebody changed it while this form was open."""
    stale = form.version.data != entrance.version
    return render_template("staff/entrances/change.html", entrance=entrance, form=form, stale=stale)


def _answered(outcome: Outcome, again: Any) -> AnyResponse:
    return answer.respond(outcome, to=url_for("entrances.index"), render=index, again=again)
