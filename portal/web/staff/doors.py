"""Doors: what we want on each lock, what the lock says, and the work between."""

from itertools import groupby
from uuid import UUID

from flask import Blueprint, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.lazy import _l
from portal.outcome import Outcome
from portal.queries import doors as listed
from portal.verbs import doors, keys
from portal.web import access, answer, words

blueprint = Blueprint("doors", __name__, url_prefix="/staff/doors")

WANTED = {
    "set": _l("on the lock"),
    "gone": _l("gone"),
    "nothing": _l("another code"),
}

COMMANDS = {
    "set": _l("Set the key"),
    "update": _l("Change the key's time"),
    "remove": _l("Remove the key"),
}

COMMAND_STATES = {
    "waiting": _l("Waiting"),
    "unknown": _l("Answer lost, asked again"),
    "dead": _l("Given up"),
    "done": _l("Done"),
}

COMMAND_TONES = {"waiting": "busy", "unknown": "busy", "dead": "bad", "done": "good"}


@blueprint.app_template_global()
def wanted(word: str) -> str:
    return words.said(WANTED, word)


@blueprint.app_template_global()
def lock_work(kind: str) -> str:
    return words.said(COMMANDS, kind)


@blueprint.app_template_global()
def lock_work_state(state: str) -> tuple[str, str]:
    """Its words and its tone."""
    return words.said(COMMAND_STATES, state), COMMAND_TONES.get(state, "plain")


@blueprint.app_template_global()
def why_revoked(reason: str | None) -> str:
    return words.said(words.REVOKED, reason) if reason else ""


@blueprint.get("")
@access.staff()
def index() -> str:
    return page()


@blueprint.post("/<uuid:door_id>/ask", endpoint="ask")
@access.staff()
def ask(door_id: UUID) -> AnyResponse:
    return _answered(answer.act_at_desk(doors.ask, door_id))


@blueprint.post("/commands/<uuid:command_id>/again", endpoint="again")
@access.staff()
def again(command_id: UUID) -> AnyResponse:
    return _answered(answer.act(keys.ask_again, command_id))


def page() -> str:
    with answer.reading() as tx:
        seen = listed.look(tx)
    in_order = sorted(seen.keys, key=lambda key: key.door_id)
    by_door = {
        door: list(of_door) for door, of_door in groupby(in_order, key=lambda key: key.door_id)
    }
    return render_template("staff/doors/index.html", seen=seen, by_door=by_door)


def _answered(said: Outcome) -> AnyResponse:
    return answer.respond(said, to=url_for("doors.index"), render=page)
