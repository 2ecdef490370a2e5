"""Ticket books: found, shown with every ticket, taken back; and what was used, as a file."""

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, redirect, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.lazy import _l
from portal.outcome import Code
from portal.policies import stay_codes
from portal.queries import tickets
from portal.verbs import ticket_books
from portal.web import access, answer, forms, lists, sheet, words
from portal.web.locale import language

blueprint = Blueprint("tickets", __name__, url_prefix="/staff/tickets")

LONGEST_SEARCH = 100


class TakeBackForm(forms.ActForm):
    amount = forms.Amount(_l("Taken off the account"), [forms.required()])
    reason = forms.Text(_l("Reason, for colleagues"), [forms.required()], most=500)


@blueprint.get("")
@access.staff()
def index() -> str:
    asked = {"q": _words(request.args.get("q", ""))}
    with answer.reading() as tx:
        page = tickets.page(tx, asked["q"], lists.cursor())
    return render_template(
        "staff/tickets/index.html",
        asked=asked,
        page=page,
        today=_today(),
        **lists.neighbours("tickets.index", asked, page),
    )


@blueprint.get("/<uuid:ticket_book_id>")
@access.staff()
def show(ticket_book_id: UUID) -> str:
    return _page(ticket_book_id)


@blueprint.get("/<uuid:ticket_book_id>/take-back")
@access.staff()
def take_back(ticket_book_id: UUID) -> str:
    return _take_back_page(ticket_book_id, None)


@blueprint.post("/<uuid:ticket_book_id>/take-back", endpoint="taken_back")
@access.staff()
def do_take_back(ticket_book_id: UUID) -> AnyResponse | str:
    form, seen = TakeBackForm(), forms.seen()
    if not form.validate():
        return answer.form_again(_take_back_page(ticket_book_id, form))
    told = (form.amount.data, form.reason.data or "")
    said = answer.act(ticket_books.take_back, ticket_book_id, seen, *told)
    again = (lambda: _take_back_page(ticket_book_id, form)) if said.status == "refused" else None
    return answer.respond(
        said,
        to=url_for(".show", ticket_book_id=ticket_book_id),
        render=lambda: _page(ticket_book_id),
        again=again,
    )


@blueprint.get("/uses.csv")
@access.staff("manager")
def uses() -> AnyResponse:
    """Every ticket that was used or came back in the days asked for, with what it is worth: that is
    what the house has earned by it, and what is taxed."""
    asked = lists.days()
    if asked is None:
        answer.note("refused", Code.JOURNAL_DAYS_IMPOSSIBLE)
        return redirect(url_for(".index"), 303)
    zone = access.facility().time_zone
    first, last = asked
    start, end = clock.day_bounds(first, zone)[0], clock.day_bounds(last, zone)[1]
    name = f"tickets-{access.facility().slug}-{first}-{last}.csv"
    return sheet.download(name, _heads(), sheet.batches(tickets.uses, start, end, _cells))


def _words(typed: str) -> str:
    """What is looked for: a name as it was typed, a code as it is written."""
    text = typed.strip()[:LONGEST_SEARCH]
    if not forms.is_clean(text):
        return ""
    code = stay_codes.as_typed(text)
    return (
        code if len(code) == stay_codes.LENGTH and set(code) <= set(stay_codes.ALPHABET) else text
    )


def _page(book_id: UUID) -> str:
    with answer.reading() as tx:
        seen = tickets.load(tx, book_id)
    if seen is None:
        abort(404)
    return render_template("staff/tickets/show.html", seen=seen, book=seen.book, today=_today())


def _take_back_page(book_id: UUID, form: TakeBackForm | None) -> str:
    """A fresh form suggests what the tickets that are left are worth."""
    with answer.reading() as tx:
        seen = tickets.load(tx, book_id)
    if seen is None:
        abort(404)
    book = seen.book
    fresh = {"amount": book.worth, "version": book.version}
    form = form or TakeBackForm(formdata=None, data=fresh)
    return render_template("staff/tickets/take_back.html", book=book, form=form)


def _today() -> Any:
    return clock.local_day(clock.now(), access.facility().time_zone)


# The tickets that were used, as a file -----------------------------------------------------------


def _heads() -> list[str]:
    return [
        gettext("Line"),
        gettext("Day"),
        gettext("Time"),
        gettext("What"),
        gettext("Ticket book"),
        gettext("Plan"),
        gettext("Stay"),
        gettext("Arrival day"),
        gettext("Tickets"),
        gettext("Worth"),
        gettext("Currency"),
        gettext("By"),
    ]


def _cells(line: Row) -> list[Any]:
    zone = access.facility().time_zone
    at = clock.local(line.at, zone)
    return [
        line.id,
        at.date().isoformat(),
        at.strftime("%H:%M:%S"),
        words.said(words.TICKET_LINES, line.kind),
        line.book_code,
        line.plan_ja if language() == "ja" else line.plan_en,
        line.stay_code,
        clock.local_day(line.starts_at, zone).isoformat(),
        line.tickets,
        line.worth,
        line.currency,
        line.actor_name,
    ]
