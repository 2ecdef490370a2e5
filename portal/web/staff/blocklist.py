"""Who is not let in, for managers: listed, added, lifted; and the law's grounds. The front desk
sees of it what the gate says of a stay."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse
from wtforms import ValidationError

from portal import clock
from portal.db import Row
from portal.lazy import _l
from portal.outcome import Outcome
from portal.queries import blocklist as listed
from portal.verbs import blocklist
from portal.verbs.blocklist import NewEntry
from portal.web import access, answer, forms, lists, people, words
from portal.web.locale import language

blueprint = Blueprint("blocklist", __name__, url_prefix="/staff/settings/blocklist")

RECORDS = {"created": _l("Added"), "lifted": _l("Lifted")}
NOT_KEPT = {"autocomplete": "off"}
"""What a browser of the house has no business to offer again."""


class EntryForm(forms.MakeForm):
    name = forms.PersonName(_l("Name"))
    kana = forms.PersonName(_l("Name in kana"))
    variants = forms.Note(_l("Other ways to write the name"), most=500)
    phone = forms.Phone(_l("Telephone"), render_kw=NOT_KEPT)
    email = forms.Email(_l("E-mail"), render_kw=NOT_KEPT)
    document = forms.Text(_l("Number of a passport or card"), most=60, render_kw=NOT_KEPT)
    ground = forms.Note(_l("Why"), [forms.required()], most=1000)
    refusal_ground_id = forms.Choice(_l("Ground of the law"), default="")
    expires = forms.Day(_l("Last day"))

    def offer(self, grounds: Any) -> None:
        self.refusal_ground_id.choices = [
            ("", gettext("None: refused for day use alone")),
            *((str(one.id), _words(one)) for one in grounds if one.retired_at is None),
        ]

    def wanted(self) -> NewEntry:
        """Only of a form that is valid."""
        last, zone = self.expires.data, access.facility().time_zone
        return NewEntry(
            form_key=self.form_key.data,
            ground=self.ground.data or "",
            name=self.name.data or "",
            kana=self.kana.data or "",
            variants=self.variants.data or "",
            phone=self.phone.data,
            email=self.email.data,
            document=self.document.data or "",
            refusal_ground_id=people.uuid_of(self.refusal_ground_id.data),
            expires_at=clock.day_bounds(last, zone)[1] if last else None,
        )


class LiftForm(forms.ActForm):
    why = forms.Note(_l("Why it is lifted"), [forms.required()], most=1000)


class GroundForm(forms.Form):
    code = forms.Text(_l("Code"), [forms.required()], most=40)
    words_ja = forms.Text(_l("Words in Japanese"), [forms.required()], most=200)
    words_en = forms.Text(_l("Words in English"), [forms.required()], most=200)

    def validate_code(self, field: Any) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", field.data or ""):
            raise ValidationError(gettext("Small letters, figures and hyphens between them."))


@blueprint.get("")
@access.staff("manager")
def index() -> str:
    with answer.reading() as tx:
        page = listed.page(tx, lists.cursor())
    return render_template(
        "staff/blocklist/index.html",
        page=page,
        standing=_standing,
        **lists.neighbours("blocklist.index", {}, page),
    )


@blueprint.get("/new")
@access.staff("manager")
def new() -> str:
    return _new_page(_offered(EntryForm(formdata=None)))


@blueprint.post("", endpoint="create")
@access.staff("manager")
def create() -> AnyResponse | str:
    form = _offered(EntryForm())
    if not form.validate():
        return answer.form_again(_new_page(form))
    said = answer.act(blocklist.add, form.wanted())
    return answer.respond(said, to=url_for(".index"), render=index, again=lambda: _new_page(form))


@blueprint.get("/<uuid:blocklist_entry_id>")
@access.staff("manager")
def show(blocklist_entry_id: UUID) -> str:
    return _page(blocklist_entry_id, None)


@blueprint.post("/<uuid:blocklist_entry_id>/lift", endpoint="lifted")
@access.staff("manager")
def do_lift(blocklist_entry_id: UUID) -> AnyResponse | str:
    seen, form = forms.seen(), LiftForm()
    if not form.validate():
        return answer.form_again(_page(blocklist_entry_id, form))
    said = answer.act(blocklist.lift, blocklist_entry_id, seen, form.why.data or "")
    return answer.respond(
        said,
        to=url_for(".show", blocklist_entry_id=blocklist_entry_id),
        render=lambda: _page(blocklist_entry_id, None),
    )


@blueprint.get("/grounds")
@access.staff("manager")
def grounds() -> str:
    return _grounds_page(GroundForm(formdata=None))


@blueprint.post("/grounds", endpoint="ground_added")
@access.staff("manager")
def do_add_ground() -> AnyResponse | str:
    form = GroundForm()
    if not form.validate():
        return answer.form_again(_grounds_page(form))
    typed = (form.code.data or "", form.words_ja.data or "", form.words_en.data or "")
    return _at_grounds(answer.act(blocklist.add_ground, *typed))


@blueprint.post("/grounds/<uuid:refusal_ground_id>/retire")
@access.staff("manager")
def retire_ground(refusal_ground_id: UUID) -> AnyResponse:
    return _at_grounds(answer.act(blocklist.retire_ground, refusal_ground_id))


def _offered(form: EntryForm) -> EntryForm:
    with answer.reading() as tx:
        form.offer(listed.grounds(tx))
    return form


def _new_page(form: EntryForm) -> str:
    return render_template("staff/blocklist/new.html", form=form)


def _page(entry_id: UUID, form: LiftForm | None) -> str:
    with answer.reading() as tx:
        entry = listed.head(tx, entry_id)
        records = listed.history(tx, entry_id)
    if entry is None:
        abort(404)
    return render_template(
        "staff/blocklist/show.html",
        entry=entry,
        form=form or LiftForm(formdata=None, data={"version": entry.version}),
        standing=_standing,
        moments=[(one, words.said(RECORDS, one.event)) for one in records],
        last_day=entry.expires_at - timedelta(microseconds=1) if entry.expires_at else None,
    )


def _grounds_page(form: GroundForm) -> str:
    with answer.reading() as tx:
        found = listed.grounds(tx)
    return render_template("staff/blocklist/grounds.html", form=form, grounds=found)


def _at_grounds(outcome: Outcome) -> AnyResponse:
    return answer.respond(outcome, to=url_for(".grounds"), render=grounds)


def _standing(entry: Row) -> tuple[str, str]:
    """Words and tone of what an entry does now."""
    if entry.lifted_at is not None:
        return gettext("Lifted"), "plain"
    if entry.expires_at is not None and entry.expires_at <= clock.now():
        return gettext("Over"), "plain"
    return gettext("Refused"), "bad"


def _words(ground: Row) -> str:
    return str(ground.words_ja if language() == "ja" else ground.words_en)
