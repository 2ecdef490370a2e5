"""Pages for what goes wrong: the same layout, plain words, no trace of the inside."""

from http import HTTPStatus
from typing import Any

from flask import Flask, Response, g, jsonify, make_response, render_template, request
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException, InternalServerError

from portal import log
from portal.lazy import _l
from portal.web import access

# status → (title, what a person can do)
WORDS: dict[int, tuple[Any, Any]] = {
    400: (_l("This could not be read"), _l("Please go back, load the page again and retry.")),
    401: (_l("You are signed out"), _l("Nothing was saved. Sign in and send it again.")),
    403: (_l("This is not allowed"), _l("Your role does not allow this.")),
    404: (_l("There is nothing here"), _l("The address may be wrong, or the page is gone.")),
    405: (_l("This cannot be done here"), _l("Please go back and use the buttons of the page.")),
    413: (_l("This is too large"), _l("Please send less at once.")),
    415: (_l("This kind of data is not taken"), _l("Please use the form of the page.")),
    429: (_l("Too many attempts"), _l("Please wait a few minutes, then try again.")),
    500: (
        _l("Something went wrong"),
        _l("It is our fault and has been recorded. Nothing that was not confirmed has been done."),
    ),
    503: (_l("Not available at this moment"), _l("Please try again in a minute.")),
}
BAD_TOKEN = _l("The page that sent this was not recognised. Nothing was saved. Load it again.")


def init_app(app: Flask) -> None:
    app.register_error_handler(CSRFError, on_forged)
    app.register_error_handler(HTTPException, on_http)
    app.register_error_handler(DataError, on_bad_data)
    for gone in (OperationalError, InterfaceError, PoolTimeoutError):
        app.register_error_handler(gone, on_unreachable)


def on_http(error: HTTPException) -> Response:
    if error.response is not None and error.code is None:
        return make_response(error.response)
    status = error.code or 500
    if isinstance(error, InternalServerError):
        g.bare = True
    response = page(status)
    for name in ("Allow", "Retry-After"):
        for value in dict(error.get_headers()).get(name, "").split("\0"):
            if value:
                response.headers[name] = value
    return response


def on_forged(error: CSRFError) -> Response:
    log.get(__name__).info("csrf_refused", reason=error.description, endpoint=request.endpoint)
    return page(400, BAD_TOKEN)


def on_bad_data(error: DataError) -> Response:
    """A value that no column can hold got past the forms: the visitor's fault, worth a line."""
    log.get(__name__).warning(
        "bad_data", endpoint=request.endpoint, fault=type(error.orig).__name__
    )
    return page(400)


def on_unreachable(error: Exception) -> Response:
    log.get(__name__).error("database_unreachable", endpoint=request.endpoint, error=str(error))
    g.bare = True
    response = page(503)
    response.headers["Retry-After"] = "30"
    return response


def page(status: int, words: Any = None) -> Response:
    """The page for a status; plain data for machines."""
    declared = access.declared(request.endpoint)
    if declared and declared.kind == "machine":
        return make_response(jsonify(error=_phrase(status)), status)
    title, advice = WORDS.get(status) or WORDS[400 if status < 500 else 500]
    body = render_template("errors/page.html", status=status, title=title, advice=words or advice)
    return make_response(body, status)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return str(status)
