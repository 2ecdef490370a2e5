"""What the gate refused, for whoever is asked about it later: bookings, check-ins and moves."""

from typing import Any

from flask import Blueprint, render_template, request

from portal.db import Row
from portal.lazy import _l
from portal.queries import entrances
from portal.queries import refusals as listed
from portal.web import access, answer, lists, people, words
from portal.web.staff import stay_view

blueprint = Blueprint("refusals", __name__, url_prefix="/staff/refusals")

ASKED = {"booking": _l("A booking"), "entry": _l("Check-in"), "move": _l("Another space")}
RULES = {
    "entrance_mode": _l("Who may come"),
    "plans_sold": _l("Plans that are sold here"),
    "opening_hours": _l("Opening hours"),
    "capacity": _l("Guests at once"),
    "blocklist": _l("Blocklist"),
    "blocklist_without_ground": _l("Blocklist, without a ground of the law"),
    "membership": _l("Membership"),
    "window": _l("Time of the stay"),
    "space": _l("The space"),
    "register": _l("Register of guests"),
    "settled": _l("Payment"),
}
ASKERS = {"staff": _l("Staff"), "guest": _l("The guest"), "tablet": _l("Tablet")}


@blueprint.get("")
@access.staff()
def index() -> str:
    """The blocklist's grounds only for whom its own pages are for."""
    asked, may_read = _asked(), access.person().may(access.role_for("blocklist.index"))
    wanted = listed.Wanted(
        people.uuid_of(asked["entrance"]), asked["rule"], may_read, lists.cursor(lists.number_of)
    )
    with answer.reading() as tx:
        page, ways = listed.page(tx, wanted), entrances.names(tx)
    return render_template(
        "staff/refusals/index.html",
        asked=asked,
        page=page,
        ways=ways,
        rules=RULES,
        said=_said,
        **lists.neighbours("refusals.index", asked, page),
    )


def _asked() -> dict[str, str]:
    """The query's own words, in one order, so that the same list has one address."""
    way, rule = people.uuid_of(request.args.get("entrance")), request.args.get("rule", "")
    return {"entrance": str(way or ""), "rule": rule if rule in RULES else ""}


def _said(row: Row) -> dict[str, Any]:
    """An audit row in the page's language."""
    kind = "tablet" if row.by_tablet else row.actor_kind
    return {
        "asked": words.said(ASKED, row.asks),
        "why": stay_view.gate_words(row.code, None),
        "rule": words.said(RULES, row.rule),
        "ground": " · ".join(filter(None, (row.ground, row.statute))),
        "by": words.who(row.actor_kind, row.actor_name),
        "asker": words.said(ASKERS, kind) if kind in ASKERS else "",
    }
