"""The hosted payment page: plain HTML forms, no script, in Japanese and English."""

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import jinja2

from sandbox.stripe import attempts, cards, customers
from sandbox.stripe.errors import ApiError
from sandbox.stripe.world import Obj, World

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
)

_REDIRECT_STATUS = {"succeeded": "succeeded", "requires_capture": "succeeded"}
_PAYABLE = ("requires_payment_method", "requires_confirmation", "requires_action")


@dataclass(slots=True)
class Shown:
    """A page, or with `location` a 303 to somewhere else."""

    status: int
    html: str = ""
    location: str | None = None


@dataclass(slots=True)
class Visit:
    intent: Obj
    secret: str
    return_url: str


def answer(world: World, method: str, path: str, fields: dict[str, str]) -> Shown:
    """`/pay/<intent>` and `/pay/<intent>/authenticate`; `fields` from the query and the form."""
    intent_id, _, step = path.removeprefix("/pay/").partition("/")
    with world.lock:
        visit = _visit(world, intent_id, fields)
        if visit is None:
            return _problem(404, "支払いが見つかりません", "No such payment")
        if visit.return_url and not _may_return_to(visit.return_url):
            return _problem(400, "戻り先のURLが正しくありません", "The return URL is not valid")
        if step == "authenticate":
            return _challenge_page(world, visit, method, fields)
        if step:
            return _problem(404, "ページが見つかりません", "No such page")
        return _card_page(world, visit, method, fields)


def _visit(world: World, intent_id: str, fields: dict[str, str]) -> Visit | None:
    intent = world.objects.get("payment_intent", {}).get(intent_id)
    if intent is None or fields.get("client_secret") != intent["client_secret"]:
        return None
    remembered = _remembered_return(intent)
    return Visit(intent, fields["client_secret"], fields.get("return_url") or remembered)


def _remembered_return(intent: Obj) -> str:
    """An intent in 3-D Secure knows where its confirmation wanted to go back to."""
    action = intent["next_action"] or {}
    return str((action.get("redirect_to_url") or {}).get("return_url") or "")


def _may_return_to(url: str) -> bool:
    """Only the web: never javascript:, data: or a header break."""
    if any(ord(ch) < 32 for ch in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _card_page(world: World, visit: Visit, method: str, fields: dict[str, str]) -> Shown:
    if visit.intent["status"] not in _PAYABLE:
        return _finished(visit) if method == "POST" else _render("done.html", visit)
    if method != "POST":
        return _render("pay.html", visit, error=None, cards=cards.CARDS)
    try:
        _try_card(world, visit, fields.get("number", ""))
    except ApiError as error:
        message = str(error.fields["message"])
        return _render("pay.html", visit, 402, error=message, cards=cards.CARDS)
    if visit.intent["status"] == "requires_action":
        return Shown(303, location=_challenge_url(visit))
    return _finished(visit)


def _try_card(world: World, visit: Visit, number: str) -> None:
    method = customers.keep(world, cards.by_number(number))
    attempts.attempt(world, visit.intent, method, return_url=visit.return_url or None)


def _challenge_page(world: World, visit: Visit, method: str, fields: dict[str, str]) -> Shown:
    if visit.intent["status"] != "requires_action":
        return _finished(visit)
    if method != "POST":
        return _render("authenticate.html", visit)
    approved = fields.get("outcome") == "approve"
    attempts.answer_challenge(world, visit.intent, approved)
    return _finished(visit)


def _challenge_url(visit: Visit) -> str:
    query = urlencode({"client_secret": visit.secret, "return_url": visit.return_url})
    return f"/pay/{visit.intent['id']}/authenticate?{query}"


def _finished(visit: Visit) -> Shown:
    """Back to the shop with Stripe's three arguments, which prove nothing."""
    if not visit.return_url:
        return _render("done.html", visit)
    status = visit.intent["status"]
    outcome = "pending" if status == "processing" else _REDIRECT_STATUS.get(status, "failed")
    parts = urlsplit(visit.return_url)
    query = [
        *parse_qsl(parts.query, keep_blank_values=True),
        ("payment_intent", visit.intent["id"]),
        ("payment_intent_client_secret", visit.secret),
        ("redirect_status", outcome),
    ]
    return Shown(303, location=urlunsplit(parts._replace(query=urlencode(query))))


def _problem(status: int, ja: str, en: str) -> Shown:
    html = _TEMPLATES.get_template("problem.html").render(ja=ja, en=en)
    return Shown(status, html)


def _render(name: str, visit: Visit, status: int = HTTPStatus.OK, **more: Any) -> Shown:
    page = _TEMPLATES.get_template(name)
    html = page.render(
        intent=visit.intent, secret=visit.secret, return_url=visit.return_url, **more
    )
    return Shown(int(status), html)
