"""Signing in and out, the facility in use, the language."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from flask import Blueprint, g, redirect, render_template, request, session, url_for
from flask_babel import refresh
from flask_login import login_user, logout_user
from werkzeug.wrappers import Response as AnyResponse
from wtforms import PasswordField

from portal import clock, log, seal
from portal.db import transaction
from portal.lazy import _l
from portal.web import access, answer, forms, passwords, people
from portal.web.extensions import account_named, limiter
from portal.web.locale import LOCALES

blueprint = Blueprint("session", __name__, url_prefix="/staff")

HOURS = 12


class SignInForm(forms.Form):
    email = forms.Text(
        _l("E-mail"),
        [forms.required()],
        most=254,
        render_kw={"type": "email", "autocomplete": "username", "autocapitalize": "none"},
    )
    password = PasswordField(
        _l("Password"),
        [forms.required(), forms.AtMost(passwords.LONGEST)],
        render_kw={"autocomplete": "current-password"},
    )


class PlainForm(forms.Form):
    """A button without fields."""


def _failed(response: Any) -> bool:
    """Only attempts that did not get in count against the limit."""
    return bool(response.status_code != 303)


@blueprint.get("/sign-in")
@access.anyone
def sign_in() -> AnyResponse | str:
    if people.person():
        return redirect(_wanted(), 303)
    return _sign_in_page(SignInForm())


@blueprint.post("/sign-in", endpoint="begin")
@access.anyone
@limiter.limit("30 per 5 minutes", deduct_when=_failed)
@limiter.limit("10 per 5 minutes", key_func=account_named, deduct_when=_failed)
def begin() -> AnyResponse | str:
    form = SignInForm()
    if not form.validate():
        return answer.form_again(_sign_in_page(form))
    found = _who(form.email.data or "", form.password.data or "")
    if found is None:
        form.password.errors = [_l("E-mail or password is not right.")]
        return answer.form_again(_sign_in_page(form))
    wanted = _wanted()
    _start(found)
    return redirect(wanted, 303)


@blueprint.post("/sign-out")
@access.staff(facility=False)
def sign_out() -> AnyResponse:
    with transaction(None) as tx:
        tx.run(
            "update staff_sessions set ended_at = :now where token_hash = :hash",
            now=clock.now(),
            hash=seal.token_hash(access.person().token),
        )
    _forget()
    return redirect(url_for("session.sign_in"), 303)


@blueprint.get("/facility")
@access.staff(facility=False)
def facility() -> str:
    return render_template("staff/facility.html", form=PlainForm())


@blueprint.post("/facility", endpoint="choose")
@access.staff(facility=False)
def choose() -> AnyResponse:
    chosen = people.uuid_of(request.form.get("facility"))
    person = access.person()
    if chosen not in {place.id for place in person.workplaces}:
        raise access.NotPermitted
    if not forms.expired():
        _use(person.token, chosen)
    return redirect(url_for("session.home"), 303)


@blueprint.post("/language")
@access.staff(facility=False)
def language() -> AnyResponse:
    wanted = request.form.get("lang")
    if wanted in LOCALES and not forms.expired():
        with transaction(None) as tx:
            tx.run(
                "update staff set locale = :locale where id = :id",
                locale=wanted,
                id=access.person().id,
            )
    return redirect(access.local_path(request.form.get("next"), url_for("session.home")), 303)


@blueprint.get("/home")
@access.staff()
def home() -> AnyResponse:
    """The first page after signing in."""
    return redirect(url_for("today.index"), 303)


def _sign_in_page(form: SignInForm) -> str:
    return render_template("staff/sign_in.html", form=form, next=request.values.get("next", ""))


def _wanted() -> str:
    return access.local_path(request.values.get("next"), url_for("session.home"))


def _who(email: str, password: str) -> UUID | None:
    """The person with this password. The check takes as long for an unknown address."""
    with transaction(None) as tx:
        found = tx.row(
            "select id, password_hash from staff where lower(email) = lower(:email) and active",
            email=email,
        )
    if not passwords.matches(found.password_hash if found else None, password) or found is None:
        log.get(__name__).info("sign_in_failed", known=found is not None)
        return None
    if passwords.outdated(found.password_hash):
        _strengthen(found.id, passwords.digest(password))
    return UUID(str(found.id))


def _strengthen(person: UUID, digest: str) -> None:
    with transaction(None) as tx:
        tx.run("update staff set password_hash = :hash where id = :id", hash=digest, id=person)


def _start(person: UUID) -> None:
    """A new session with a new token; whatever the browser held before counts for nothing."""
    token = seal.new_token()
    with transaction(None) as tx:
        places = tx.rows("select facility_id from staff_facilities(:who)", who=person)
        only = places[0].facility_id if len(places) == 1 else None
        tx.run(
            """
            insert into staff_sessions (token_hash, staff_id, chosen_facility, expires_at)
            values (:hash, :who, :facility, now() + :lasts)
            """,
            hash=seal.token_hash(token),
            who=person,
            facility=only,
            lasts=timedelta(hours=HOURS),
        )
    _forget()
    session["facility"] = str(only) if only else None
    session.permanent = True
    login_user(people.load_person(token))
    refresh()


def _use(token: str, chosen: UUID) -> None:
    with transaction(None) as tx:
        tx.run(
            "update staff_sessions set chosen_facility = :facility where token_hash = :hash",
            facility=chosen,
            hash=seal.token_hash(token),
        )
    session["facility"] = str(chosen)


def _forget() -> None:
    """Drop everything that the browser's session held, its CSRF secret included."""
    logout_user()
    session.clear()
    g.pop("csrf_token", None)
    refresh()
