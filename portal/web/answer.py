"""From an outcome to what the person sees: the only place that knows both.

| outcome  | htmx                                 | without script       |
| applied  | 200, the page re-read                | 303 to it, with note |
| noop     | 200, the page re-read                | 303, quiet note      |
| conflict | 409, the page re-read, what it is now| 303, same text       |
| refused  | 422, the page re-read, the reason    | 303, same text       |
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from flask import Response, abort, current_app, flash, g, get_flashed_messages, redirect, request
from flask import make_response as make
from sqlalchemy.exc import OperationalError
from werkzeug.wrappers import Response as AnyResponse

from portal import wording
from portal.config import Config
from portal.db import Actor, Tx, transaction
from portal.edges.providers import Providers
from portal.money import Money
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused, Standing
from portal.verbs.desk import Desk
from portal.web import access, forms, people

P = ParamSpec("P")

HTTP = {"applied": 200, "noop": 200, "conflict": 409, "refused": 422}
ATTEMPTS = 3
RETRY = {"40001", "40P01"}
"""Serialization failure, deadlock: the verb did nothing and may simply run again."""


# Running one verb -----------------------------------------------------------------------------


def act(
    verb: Callable[Concatenate[Tx, Actor, P], Outcome], *args: P.args, **kwargs: P.kwargs
) -> Outcome:
    """Run a verb in a transaction of the facility in use, as whoever is asking."""
    if forms.expired():
        return Refused(Code.FORM_EXPIRED)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction(access.facility().id) as tx:
                return verb(tx, people.actor(), *args, **kwargs)
        except OperationalError as fault:
            if attempt == ATTEMPTS or getattr(fault.orig, "sqlstate", None) not in RETRY:
                raise
    raise AssertionError("unreachable")


def act_at_desk(
    verb: Callable[Concatenate[Desk, Actor, P], Outcome], *args: P.args, **kwargs: P.kwargs
) -> Outcome:
    """Run a verb that speaks with a provider and makes its transactions itself."""
    if forms.expired():
        return Refused(Code.FORM_EXPIRED)
    return verb(desk(), people.actor(), *args, **kwargs)


@contextmanager
def reading() -> Iterator[Tx]:
    """A page's own reads, in the facility in use."""
    with transaction(access.facility().id) as tx:
        yield tx


def desk() -> Desk:
    config: Config = current_app.extensions["monban.config"]
    held: Providers = current_app.extensions["monban.providers"]
    return Desk.of(access.facility().id, held, config.public_url)


# Answering ------------------------------------------------------------------------------------


def respond(
    outcome: Outcome,
    *,
    to: str,
    render: Callable[[], str] | None = None,
    again: Callable[[], str] | None = None,
) -> AnyResponse:
    """Say what happened.

    `to`: the page to land on. `render`: that page, read afresh, for htmx; without it an applied or
    noop outcome sends htmx to `to` as well. `again`: the form with what was typed, for a refusal
    or conflict in either mode, so that nothing typed is lost.
    """
    if isinstance(outcome, Refused) and outcome.code == Code.NOT_FOUND:
        abort(404)
    if isinstance(outcome, Refused) and outcome.code == Code.NOT_PERMITTED:
        raise access.NotPermitted
    notice = as_notice(outcome)
    good = outcome.status in ("applied", "noop")
    if not good and again:
        return show(again, notice)
    if is_htmx() and render:
        g.shown_path = urlsplit(to).path
        response = show(render, notice)
        response.headers["HX-Push-Url"] = to if to != _shown_path() else "false"
        return response
    keep(notice)
    return redirect(to, 303)


def show(render: Callable[[], str], notice: dict[str, Any]) -> Response:
    """A page with the notice in its live region, under the outcome's status."""
    g.notices = [notice]
    response = make(render())
    response.status_code = HTTP[notice["status"]]
    return response


def form_again(html: str) -> Response:
    """A form whose fields are not right: 422, with what was typed."""
    return make(html, 422)


def is_htmx() -> bool:
    """A part of a page asks, not the browser itself, nor htmx restoring a whole page."""
    return (
        request.headers.get("HX-Request") == "true"
        and "HX-History-Restore-Request" not in request.headers
    )


def _shown_path() -> str:
    """Path and query of the page that the person is on, by htmx's word."""
    parts = urlsplit(request.headers.get("HX-Current-URL", ""))
    return parts.path + (f"?{parts.query}" if parts.query else "")


# Notices: code and details, never a text, so that they speak the language of the page that shows
# them, even when the language is switched in between.


def as_notice(outcome: Outcome) -> dict[str, Any]:
    notice: dict[str, Any] = {"status": outcome.status, "code": str(outcome.code), "details": {}}
    match outcome:
        case Refused():
            notice["details"] = {name: _packed(value) for name, value in outcome.details.items()}
        case Conflict():
            now = outcome.current
            since = now.since.isoformat() if now.since else None
            notice["standing"] = [now.machine, now.state, now.version, since, now.by]
        case Applied() | Noop():
            pass
    return notice


def note(status: str, code: Code) -> None:
    """A note without a verb behind it, for the next page."""
    keep({"status": status, "code": str(code), "details": {}})


def keep(notice: dict[str, Any]) -> None:
    """For the next page that is shown. Flask's flash takes whatever a session can hold."""
    flash(cast("str", notice), notice["status"])


def notices() -> list[dict[str, Any]]:
    """For the base template: [{status, code, text, now}] in the page's language."""
    waiting = [*g.get("notices", []), *get_flashed_messages()]
    return [_spoken(notice) for notice in waiting if isinstance(notice, dict)]


def _spoken(notice: dict[str, Any]) -> dict[str, Any]:
    details = {name: _unpacked(value) for name, value in notice["details"].items()}
    now = ""
    if standing := notice.get("standing"):
        machine, state, version, since, by = standing
        since = datetime.fromisoformat(since) if since else None
        now = wording.standing(Standing(machine, state, version, since, by), _words)
    return {
        "status": notice["status"],
        "code": notice["code"],
        "text": wording.message(Code(notice["code"]), details, _words),
        "now": now,
    }


def sentence(code: Code, details: Mapping[str, Any]) -> str:
    """A code's message in the page's language: the reason beside a button."""
    return wording.message(code, details, _words)


def _words(value: Any) -> str:
    """A detail as people read it."""
    from portal.web import locale

    match value:
        case Money():
            return locale.money(value)
        case datetime():
            return locale.when(value)
        case date():
            return locale.day(value)
        case _:
            return str(value)


def _packed(value: Any) -> list[Any]:
    match value:
        case Money():
            return ["money", value.amount, value.currency]
        case datetime():
            return ["instant", value.isoformat()]
        case date():
            return ["day", value.isoformat()]
        case int():
            return ["number", value]
        case _:
            return ["text", str(value)]


def _unpacked(packed: list[Any]) -> Any:
    match packed:
        case ["money", amount, currency]:
            return Money(amount, currency)
        case ["instant", text]:
            return datetime.fromisoformat(text)
        case ["day", text]:
            return date.fromisoformat(text)
        case [_, plain]:
            return plain
    raise ValueError(packed)
