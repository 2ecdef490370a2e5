"""Stays: found, booked, shown. What is done to one stands in `stay_acts`."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from flask import Blueprint, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.machines.stay import MACHINE
from portal.outcome import Applied, Noop, Outcome
from portal.queries import members, offers
from portal.queries import stays as listed
from portal.verbs import bookings
from portal.web import access, answer, forms, lists, people, words
from portal.web.staff import brief, stay_acts, stay_forms, stay_tickets, stay_view

blueprint = Blueprint("stays", __name__, url_prefix="/staff/stays")
blueprint.register_blueprint(stay_acts.blueprint)
blueprint.register_blueprint(stay_tickets.blueprint)

# Words that the templates of staff pages share.
blueprint.app_context_processor(words.table)
blueprint.app_template_filter("brief")(brief.brief)

LONGEST_SEARCH = 100


@blueprint.get("")
@access.staff()
def index() -> str:
    asked = _asked()
    with answer.reading() as tx:
        page = listed.page(tx, _wanted(asked))
    return render_template(
        "staff/stays/index.html",
        asked=asked,
        page=page,
        states=list(MACHINE.table),
        previous=_at(asked, before=page.previous),
        following=_at(asked, after=page.following),
    )


@blueprint.get("/new")
@access.staff()
def new() -> str:
    with answer.reading() as tx:
        plans = offers.plans(tx)
    form = stay_forms.StayForm(stay_forms.fresh(access.facility(), plans, request.args))
    return _form_page(form, plans)


@blueprint.post("", endpoint="create")
@access.staff()
def create() -> AnyResponse | str:
    form = stay_forms.StayForm()
    with answer.reading() as tx:
        plans = offers.plans(tx)
        stay_forms.set_choices(form, plans, _spaces(tx, form), _members(tx, form))
    if not form.validate():
        return answer.form_again(_form_page(form, plans))
    wanted = form.wanted(access.facility(), stay_forms.find(plans, form.plan_id.data))
    return _created(answer.act(bookings.create, wanted), form, plans)


@blueprint.get("/<uuid:stay_id>")
@access.staff()
def show(stay_id: UUID) -> str:
    return stay_view.page(stay_id)


def _created(outcome: Outcome, form: stay_forms.StayForm, plans: Any) -> AnyResponse:
    """One stay for one form: the second answer leads to it like the first."""
    if isinstance(outcome, Applied | Noop) and outcome.subject:
        return stay_view.answered(outcome, outcome.subject)
    return answer.respond(outcome, to=url_for("stays.new"), again=lambda: _form_page(form, plans))


def _form_page(form: stay_forms.StayForm, plans: Any) -> str:
    """The form with the spaces that are free at its times, and the plan's price for them."""
    house = access.facility()
    period = form.period(house.time_zone)
    with answer.reading() as tx:
        spaces, found = _spaces(tx, form), _members(tx, form)
    stay_forms.set_choices(form, plans, spaces, found)
    plan = stay_forms.find(plans, form.plan_id.data)
    return render_template(
        "staff/stays/new.html",
        form=form,
        plan=plan,
        members=found,
        free=[space for space in spaces if not space.taken],
        quoted=stay_forms.quote(plan, period, house.time_zone) if plan and period else None,
    )


def _spaces(tx: Any, form: stay_forms.StayForm) -> Any:
    now = clock.now()
    begins, ends = form.period(access.facility().time_zone) or (now, now)
    return offers.spaces(tx, begins, ends)


def _members(tx: Any, form: stay_forms.StayForm) -> Any:
    """Who may be meant; nobody is looked for where nobody was asked after."""
    typed = (form.member.data or "")[:LONGEST_SEARCH]
    named, chosen = typed if forms.is_clean(typed) else "", people.uuid_of(form.membership_id.data)
    return members.to_book(tx, named, chosen) if named or chosen else []


# What the list is asked for ----------------------------------------------------------------------


def _asked() -> dict[str, str]:
    """The query's own words, in one order, so that the same list has one address."""
    typed = request.args.get("q", "").strip()[:LONGEST_SEARCH]
    state = request.args.get("state", "")
    day = lists.day("day")
    return {
        "q": typed if forms.is_clean(typed) else "",
        "state": state if state in MACHINE.table else "",
        "day": day.isoformat() if day else "",
    }


def _wanted(asked: dict[str, str]) -> listed.Wanted:
    """What is to come begins today, like the desk's work; what is looked for, at its latest."""
    zone = access.facility().time_zone
    day = lists.day("day")
    to_come = not asked["q"] and day is None and asked["state"] in ("", MACHINE.initial)
    today = clock.day_bounds(clock.local_day(clock.now(), zone), zone)[0]
    after = listed.Cursor.read(request.args.get("after"))
    return listed.Wanted(
        words=asked["q"],
        state=asked["state"],
        during=clock.day_bounds(day, zone) if day else None,
        onwards=today if to_come else None,
        latest_first=day is None and not to_come,
        after=after,
        before=None if after else listed.Cursor.read(request.args.get("before")),
    )


def _at(asked: dict[str, str], **cursor: listed.Cursor | None) -> str | None:
    """The address of a neighbouring page; None where there is none."""
    named = {name: str(value) for name, value in cursor.items() if value}
    if not named:
        return None
    query = {**{name: value for name, value in asked.items() if value}, **named}
    return f"{url_for('stays.index')}?{urlencode(query)}"
