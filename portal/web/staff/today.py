"""Today at a glance."""

from flask import Blueprint, render_template

from portal import clock
from portal.queries import attention, today
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
        waiting = attention.count(tx, now)
        said = gate.look(tx, seen.expected, now)
    return render_template(
        "staff/today.html",
        day=day,
        now=now,
        began=began,
        seen=seen,
        waiting=waiting,
        reasons={stay_id: one.refusal for stay_id, one in said.items()},
    )
