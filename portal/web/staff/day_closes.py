"""The day's close: what is still open, the drawer, the closes before; and the journal as a file."""

from datetime import date, time, timedelta
from typing import Any
from uuid import UUID

from flask import (
    Blueprint,
    abort,
    redirect,
    render_template,
    url_for,
)
from flask_babel import gettext
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.lazy import _l
from portal.outcome import Applied, Code, Noop
from portal.queries import day_closes as queries
from portal.verbs import day_close
from portal.web import access, answer, forms, lists, sheet, words

blueprint = Blueprint("day_closes", __name__, url_prefix="/staff/day-close")

MATTERS = {
    "money_unknown": _l("Whether this card payment went through is not known"),
    "refund_unknown": _l("Whether this refund went out is not known"),
    "money_differs": _l("The card provider's books and ours differ"),
    "unpaid": _l("Left without paying everything"),
    "not_checked_out": _l("Should have left, and is not checked out"),
}
NOON = time(12)


class CloseForm(forms.MakeForm):
    day = forms.Day(_l("Close of which day"), [forms.required()])
    opening = forms.Amount(_l("In the drawer when it began"), default=0)
    counted = forms.Amount(_l("Counted in the drawer"), [forms.required()])
    taken = forms.Amount(_l("Taken out for the bank"), default=0)
    reason = forms.Text(_l("Why it differs, or why something stays open"), most=500)
    cash_moved = forms.Seen()
    left_open = forms.Seen()

    def count(self) -> day_close.Count:
        """Only of a form that is valid."""
        if self.day.data is None:
            raise ValueError("a close without a day")
        return day_close.Count(
            form_key=self.form_key.data,
            day=self.day.data,
            opening=self.opening.data or 0,
            counted=self.counted.data,
            taken=self.taken.data or 0,
            cash_moved=self.cash_moved.data,
            left_open=self.left_open.data,
            reason=self.reason.data or "",
        )


@blueprint.app_template_global()
def matter(kind: str) -> str:
    return words.said(MATTERS, kind)


@blueprint.get("")
@access.staff()
def index() -> str:
    return _page()


@blueprint.post("", endpoint="close")
@access.staff()
def close() -> AnyResponse | str:
    form = CloseForm()
    if not form.validate():
        return answer.form_again(_page(form))
    said = answer.act(day_close.close, form.count())
    if isinstance(said, Applied | Noop) and said.subject:
        return answer.respond(said, to=url_for("day_closes.show", day_close_id=said.subject))
    return answer.respond(said, to=url_for("day_closes.index"), again=lambda: _page(form))


@blueprint.get("/<uuid:day_close_id>")
@access.staff()
def show(day_close_id: UUID) -> str:
    with answer.reading() as tx:
        seen = queries.load(tx, day_close_id)
    return render_template("staff/day_closes/show.html", seen=seen or abort(404))


@blueprint.get("/journal.csv")
@access.staff("manager")
def journal() -> AnyResponse:
    """Every line of the folios in the days asked for, as a spreadsheet reads it."""
    asked = lists.days()
    if asked is None:
        answer.note("refused", Code.JOURNAL_DAYS_IMPOSSIBLE)
        return redirect(url_for("day_closes.index"), 303)
    zone = access.facility().time_zone
    first, last = asked
    start, end = clock.day_bounds(first, zone)[0], clock.day_bounds(last, zone)[1]
    name = f"journal-{access.facility().slug}-{first}-{last}.csv"
    return sheet.download(name, _heads(), sheet.batches(queries.lines, start, end, _cells))


def _page(typed: CloseForm | None = None) -> str:
    """The figures as they are now; what was typed stays, what was seen is as it is shown."""
    with answer.reading() as tx:
        now = queries.to_close(tx, clock.now())
        page = queries.page(tx, lists.cursor())
    form = typed or CloseForm(formdata=None, data={"day": _usual_day(now.last)})
    form.cash_moved.data = now.figures.cash_moved
    form.left_open.data = len(now.matters)
    return render_template(
        "staff/day_closes/index.html",
        form=form,
        now=now,
        page=page,
        today=clock.local_day(clock.now(), access.facility().time_zone),
        **lists.neighbours("day_closes.index", {}, page),
    )


def _usual_day(last: Row | None) -> date:
    """Before noon the night's, unless that is closed: a house counts when it has become quiet."""
    now = clock.local(clock.now(), access.facility().time_zone)
    before = now.date() - timedelta(days=1)
    return before if now.time() < NOON and not (last and last.day >= before) else now.date()


# The journal as a file ---------------------------------------------------------------------------


def _heads() -> list[str]:
    return [
        gettext("Line"),
        gettext("Day"),
        gettext("Time"),
        gettext("Stay"),
        gettext("Name"),
        gettext("Entry"),
        gettext("What the guest owes by it"),
        gettext("Tax in it, percent"),
        gettext("Currency"),
        gettext("At the card provider"),
        gettext("Memo"),
        gettext("By"),
        gettext("Close"),
    ]


def _cells(line: Row) -> list[Any]:
    at = clock.local(line.at, access.facility().time_zone)
    return [
        line.id,
        at.date().isoformat(),
        at.strftime("%H:%M:%S"),
        line.stay_code or "",
        line.guest or "",
        words.entry(line),
        line.amount,
        "" if line.tax_rate is None else line.tax_rate,
        line.currency,
        line.provider_refund_id or line.intent_id or "",
        line.memo,
        line.actor_name,
        line.close_no or "",
    ]
