"""Who may come in. Every endpoint declares it; one that declares nothing is a fault of ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from flask import Flask, Response, abort, current_app, g, redirect, request, url_for
from werkzeug.exceptions import Forbidden, Unauthorized
from werkzeug.wrappers import Response as AnyResponse

from portal.web import people
from portal.web.people import Person, Visit

View = TypeVar("View", bound=Callable[..., Any])
Kind = Literal["staff", "guest", "anyone", "machine"]


class UndeclaredError(RuntimeError):
    """An endpoint without a declaration of who may use it."""


class NotPermitted(Forbidden):
    """Signed in, but the role is too small."""


@dataclass(frozen=True, slots=True)
class Access:
    kind: Kind
    role: str = "front_desk"
    facility: bool = True
    of: people.Of = "stay"


def staff(role: str = "front_desk", *, facility: bool = True) -> Callable[[View], View]:
    """Signed-in staff of at least this role in the facility in use.

    `facility=False`: also before a facility is chosen.
    """
    return _declares(Access("staff", role, facility))


def guest(view: View) -> View:
    """Whoever holds the link: the URL's `<token>` names the stay."""
    return _declares(Access("guest"))(view)


def member(view: View) -> View:
    """Whoever holds the link: the URL's `<token>` names the membership."""
    return _declares(Access("guest", of="membership"))(view)


def newcomer(view: View) -> View:
    """Anybody: the URL's `<token>` is the name of a house."""
    return _declares(Access("guest", of="facility"))(view)


def kiosk(view: View) -> View:
    """Whoever stands at a tablet: the URL's `<token>` is the public name of an entrance."""
    return _declares(Access("guest", of="entrance"))(view)


def anyone(view: View) -> View:
    """A page without a person behind it."""
    return _declares(Access("anyone"))(view)


def machine(view: View) -> View:
    """Not a browser: proves itself by a signature or has nothing to prove. No CSRF token."""
    return _declares(Access("machine"))(view)


def _declares(access: Access) -> Callable[[View], View]:
    def declare(view: View) -> View:
        view.access = access  # type: ignore[attr-defined]
        return view

    return declare


def declared(endpoint: str | None) -> Access | None:
    view = current_app.view_functions.get(endpoint or "")
    return getattr(view, "access", None)


def init_app(app: Flask) -> None:
    anyone(app.view_functions["static"])
    app.before_request(check)


def is_machine() -> bool:
    """Whether this request is for an endpoint of machines."""
    access = declared(request.endpoint)
    return access is not None and access.kind == "machine"


def check() -> AnyResponse | None:
    """Before any view. An unknown URL has no endpoint and goes on to its 404."""
    if request.endpoint is None:
        return None
    access = declared(request.endpoint)
    if access is None:
        raise UndeclaredError(f"{request.endpoint} does not declare who may use it")
    if access.kind == "staff":
        return _check_staff(access)
    if access.kind == "guest":
        g.visit = people.load_visit(access.of, (request.view_args or {})["token"])
        if g.visit is None:
            abort(404)
    return None


def _check_staff(access: Access) -> AnyResponse | None:
    somebody = people.person()
    if somebody is None:
        return _to_sign_in()
    if not access.facility:
        return None
    if somebody.facility is None:
        return redirect(url_for("session.facility"), 303)
    if not somebody.may(access.role):
        raise NotPermitted
    return None


def _to_sign_in() -> AnyResponse:
    if request.method not in ("GET", "HEAD"):
        raise Unauthorized
    if "HX-Request" in request.headers:
        # Part of a page asks: let the browser load the whole page, which leads to the sign-in.
        return Response(status=401, headers={"HX-Refresh": "true"})
    query = request.query_string.decode("latin-1")
    back = request.path + (f"?{query}" if query else "")
    return redirect(url_for("session.sign_in", next=back), 303)


def role_for(endpoint: str) -> str:
    """The least role of staff that an endpoint is for."""
    access = declared(endpoint)
    if access is None or access.kind != "staff":
        raise UndeclaredError(f"{endpoint} is not declared staff's")
    return access.role


def person() -> Person:
    """The signed-in person; only for endpoints declared `staff`."""
    somebody = people.person()
    if somebody is None:
        raise RuntimeError("access.person() is for endpoints declared staff")
    return somebody


def visit() -> Visit:
    """The guest's visit; only for endpoints declared `guest`."""
    somebody = people.visit()
    if somebody is None:
        raise RuntimeError("access.visit() is for endpoints declared guest")
    return somebody


def facility() -> people.House:
    """The facility in use; only for endpoints of staff and guests."""
    house = people.facility()
    if house is None:
        raise RuntimeError("access.facility() is for endpoints of staff and guests")
    return house


def local_path(wanted: str | None, otherwise: str) -> str:
    """`wanted` if it is a path of ours, else `otherwise`: never a way to another site."""
    if not wanted or not wanted.startswith("/") or wanted.startswith(("//", "/\\")):
        return otherwise
    if any(ord(character) < 32 or character == "\\" for character in wanted):
        return otherwise
    parts = urlsplit(wanted)
    return otherwise if parts.scheme or parts.netloc else wanted
