"""Forms, their fields, and the one mechanism against forged posts.

CSRF: `check` runs before every POST that is not a machine's. A missing, foreign or altered token is
refused there and nothing of the form is shown again. A token that is ours and only too old lets
the view run, so that it can show the form again with what was typed and a fresh token; but every
form fails its validation and `answer.act` refuses, so that nothing is written.
"""

import unicodedata
from typing import Any
from urllib.parse import unquote_to_bytes

from flask import Flask, abort, g, request
from flask_babel import gettext
from flask_wtf import FlaskForm
from flask_wtf.csrf import CSRFError, generate_csrf, validate_csrf
from itsdangerous import SignatureExpired
from wtforms import Field, ValidationError
from wtforms.csrf.core import CSRF
from wtforms.widgets import HiddenInput

from portal.lazy import _l
from portal.web import access
from portal.web.fields import (
    LONGEST_NAME,
    LONGEST_NOTE,
    Amount,
    AtMost,
    Choice,
    ClockTime,
    Count,
    Day,
    Email,
    Key,
    Moment,
    Note,
    PersonName,
    Phone,
    Seen,
    Text,
    Version,
    in_reach,
    is_clean,
    required,
    typed,
)

# A page's form is written with `forms.` alone.
__all__ = [
    "LONGEST_NAME",
    "LONGEST_NOTE",
    "ActForm",
    "Amount",
    "AtMost",
    "Choice",
    "ClockTime",
    "Count",
    "Day",
    "Email",
    "Form",
    "Key",
    "MakeForm",
    "Moment",
    "Note",
    "PersonName",
    "Phone",
    "Seen",
    "Text",
    "Version",
    "expired",
    "in_reach",
    "is_clean",
    "require_a_name",
    "required",
    "seen",
    "typed",
]

EXPIRED = _l("This page was open for too long. Nothing was saved; check it and send it again.")


def init_app(app: Flask) -> None:
    app.before_request(refuse_broken_text)
    app.before_request(check)


def check() -> None:
    if request.method in ("GET", "HEAD", "OPTIONS") or request.endpoint is None:
        return
    declared = access.declared(request.endpoint)
    if declared is None or declared.kind == "machine":
        return
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        raise CSRFError("posted from another site")
    token = request.form.get("csrf_token") or request.headers.get("X-CSRFToken")
    try:
        validate_csrf(token)
    except ValidationError as refusal:
        if not isinstance(refusal.__cause__, SignatureExpired) or not _ours(token):
            raise CSRFError(refusal.args[0]) from None
        g.csrf_expired = True
    else:
        g.csrf_valid = True


def _ours(token: str | None) -> bool:
    """Signed by us for this very session, at whatever time."""
    try:
        validate_csrf(token, time_limit=10**9)
    except ValidationError:
        return False
    return True


def expired() -> bool:
    """The form was open for too long: show it again, do nothing."""
    return bool(g.get("csrf_expired"))


def refuse_broken_text() -> None:
    """NUL and broken UTF-8: nothing that a page of ours ever sends. Machines prove themselves by
    their bytes and are not looked at."""
    if "\x00" in request.path or "\ufffd" in request.path:
        abort(404)
    declared = access.declared(request.endpoint)
    if declared is None or declared.kind == "machine":
        return
    posted = request.mimetype == "application/x-www-form-urlencoded"
    body = request.get_data() if posted else b""
    if not _is_text(request.query_string) or b"\x00" in unquote_to_bytes(request.query_string):
        abort(400)
    if not _is_text(body):
        abort(400)


def _is_text(quoted: bytes) -> bool:
    try:
        unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        return False
    return True


class _Token(CSRF):
    """The token of a form: the request's check has already decided."""

    def generate_csrf_token(self, csrf_token_field: Field) -> str:
        return str(generate_csrf())

    def validate_csrf_token(self, form: Any, field: Field) -> None:
        if not g.get("csrf_valid"):
            raise ValidationError(str(EXPIRED))


class Form(FlaskForm):
    """Every form of ours. `form.validate()` is false for an expired token."""

    class Meta(FlaskForm.Meta):
        csrf_class = _Token  # type: ignore[assignment]
        csrf = True

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)  # type: ignore[no-untyped-call]

    @property
    def problems(self) -> list[str]:
        """What stands above the form because it belongs to no visible field."""
        hidden = [field for field in self if isinstance(field.widget, HiddenInput)]
        return [str(error) for field in hidden for error in field.errors]


def require_a_name(field: Field) -> None:
    """Spaces, and signs without a shape, are no name that anyone could call out."""
    if not any(unicodedata.category(sign)[0] in "LNPS" for sign in field.data or ""):
        raise ValidationError(gettext("Please fill this in."))


class ActForm(Form):
    """A button that acts on a row: carries the version that the person saw."""

    version = Version()


def seen() -> int:
    """The version that the person saw. Every form that acts on a row carries it: 400 without."""
    version: int | None = ActForm().version.data
    if version is None:
        abort(400)
    return version


class MakeForm(Form):
    """A form that creates something: carries its own key."""

    form_key = Key()
