"""Joining: an application, the last page before it is sent, and the link that it leads to."""

from typing import Any
from uuid import uuid4

from flask import Blueprint, abort, render_template, request, url_for
from flask_babel import gettext
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as AnyResponse
from wtforms import BooleanField, ValidationError

from portal import seal
from portal.db import Row
from portal.lazy import _l
from portal.models import Membership
from portal.outcome import Applied, Noop, Outcome
from portal.queries import members
from portal.verbs import memberships
from portal.verbs.guests import NewGuest
from portal.verbs.memberships import Application
from portal.web import access, answer, forms, words
from portal.web.extensions import limiter
from portal.web.guest.limits import guesses
from portal.web.locale import language

blueprint = Blueprint("join", __name__, url_prefix="/join/<token>/<plan>")
guesses(blueprint)


class JoinForm(forms.Form):
    form_key = forms.Key()
    version = forms.Version()
    name = forms.PersonName(_l("Name"), [forms.required()])
    kana = forms.PersonName(_l("Name in kana"))
    email = forms.Email(_l("E-mail"), [forms.required()])
    phone = forms.Phone(_l("Telephone"))
    locale = forms.Choice(_l("Language of messages"))
    terms = BooleanField(_l("I have read the terms and agree to them"))

    def validate_name(self, field: Any) -> None:
        forms.require_a_name(field)

    def validate_terms(self, field: Any) -> None:
        if not field.data:
            raise ValidationError(gettext("Without your agreement nobody can join."))

    def guest(self) -> NewGuest:
        """Only of a form that is valid."""
        return NewGuest(
            name=self.name.data or "",
            kana=self.kana.data or "",
            email=self.email.data,
            phone=self.phone.data,
            locale=self.locale.data,
        )


@blueprint.get("")
@access.newcomer
def form(token: str, plan: str) -> str:
    wanted = _plan(plan)
    fresh = {"form_key": str(uuid4()), "version": str(wanted.version), "locale": language()}
    return _form_page(wanted, _form(MultiDict(fresh)))


@blueprint.post("", endpoint="send")
@limiter.limit("20 per minute")
@access.newcomer
def send(token: str, plan: str) -> AnyResponse | str:
    """On to the last page, back from it with what was typed, or off with it."""
    wanted, typed, step = _plan(plan), _form(), request.form.get("step")
    if step == "change":
        return _form_page(wanted, typed)
    if not typed.validate():
        return answer.form_again(_form_page(wanted, typed))
    if step != "apply":
        return _last_page(wanted, typed)
    application = Application(
        form_key=typed.form_key.data,
        plan_id=wanted.id,
        seen=typed.version.data,
        guest=typed.guest(),
        confirmation=_seen(wanted),
    )
    outcome = answer.act(memberships.apply, application)
    return answer.respond(outcome, to=_leads_to(outcome), again=lambda: _last_page(wanted, typed))


def _plan(code: str) -> Row:
    with answer.reading() as tx:
        found = members.plan_to_join(tx, code)
    return found if found is not None else abort(404)


def _form(values: MultiDict[str, str] | None = None) -> JoinForm:
    typed = JoinForm(formdata=values if values is not None else request.form)
    typed.locale.choices = [(key, str(said)) for key, said in words.LANGUAGES.items()]
    return typed


def _form_page(plan: Row, typed: JoinForm) -> str:
    return render_template("guest/join/form.html", plan=plan, form=typed, promises=_promises(plan))


def _last_page(plan: Row, typed: JoinForm) -> str:
    return render_template(
        "guest/join/confirm.html", plan=plan, form=typed, promises=_promises(plan)
    )


def _promises(plan: Row) -> list[tuple[str, str]]:
    """What is agreed, in the page's language: [(what, how)], as the last page shows it and as it is
    kept. The law asks for price, first charge, renewal and cancelling before the last press."""
    currency = access.facility().currency
    quota = (
        gettext("%(count)s visits in a calendar month", count=plan.monthly_quota)
        if plan.monthly_quota
        else gettext("As often as you like")
    )
    return [
        (gettext("Plan"), str(plan.name_ja if language() == "ja" else plan.name_en)),
        (gettext("Price"), words.price(plan.price, currency, plan.billed_every)),
        (gettext("Visits"), quota),
        *_charges(plan),
        (
            gettext("Cancelling"),
            gettext("On your own page at any time, to the end of the month or of what is paid"),
        ),
        (gettext("Terms"), str(plan.terms_version)),
    ]


def _charges(plan: Row) -> list[tuple[str, str]]:
    if plan.billing == "desk":
        return [
            (gettext("First charge"), gettext("At the desk, once your application is approved")),
            (gettext("Renewal"), gettext("By itself, until you cancel; you pay at the desk")),
        ]
    return [
        (
            gettext("First charge"),
            gettext("By card, once your application is approved: you pay on your own page"),
        ),
        (
            gettext("Renewal"),
            gettext("By itself each month, from the same card, until you cancel")
            if plan.billed_every == "month"
            else gettext("By itself each year, from the same card, until you cancel"),
        ),
    ]


def _seen(plan: Row) -> dict[str, Any]:
    """The last page, word for word."""
    return {"language": language(), "promises": [list(pair) for pair in _promises(plan)]}


def _leads_to(outcome: Outcome) -> str:
    """To the page of the membership that the form has made."""
    if not isinstance(outcome, Applied | Noop) or outcome.subject is None:
        return request.path
    with answer.reading() as tx:
        made = tx.get(Membership, outcome.subject)
    if made is None:
        abort(404)
    return url_for("membership.show", token=seal.unseal(made.token_sealed))
