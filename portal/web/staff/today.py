"""Today at a glance."""

from flask import Blueprint, current_app, render_template

from portal import clock
from portal.queries import today
from portal.web import access, answer
from portal.web.staff import gate

blueprint = Blueprint("today", __name__, url_prefix="/staff")


@blueprint.get("/")
@access.staff()
def index() -> str:
    return page()


def page() -> str:
    house = access.facility()
    now = clock.now()
    day = clock.local_day(now, house.time_zone)
    began, ends = clock.day_bounds(day, house.time_zone)
    with answer.reading() as tx:
        seen = today.look(tx, began, ends)
        waiting = today.waiting_for_a_person(tx)
    return render_template(
        "staff/today.html",
        day=day,
        now=now,
        began=began,
        seen=seen,
        waiting=waiting,
        attention="attention.index" in current_app.view_functions,
        reasons={row.id: gate.reason(row, now) for row in seen.expected},
    )
