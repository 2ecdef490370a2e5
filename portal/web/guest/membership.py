"""A membership, for the person who holds its link: how it stands, and how to leave or stay."""

from datetime import datetime
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.outcome import Outcome
from portal.policies.periods import month_boundary, period_at
from portal.queries import members
from portal.verbs import guests, memberships
from portal.verbs.membership_end import Ending, When, end_membership
from portal.web import access, answer, forms, words
from portal.web.guest.limits import guesses
from portal.web.locale import LOCALES

blueprint = Blueprint("membership", __name__, url_prefix="/m/<token>")
guesses(blueprint)

ENDS: tuple[When, ...] = ("month_boundary", "period_end")
RUNNING = ("active", "past_due")


@blueprint.get("")
@access.member
def show(token: str) -> str:
    return _page(token)


@blueprint.get("/cancel")
@access.member
def cancel(token: str) -> str:
    """What an end would mean, before it is asked for."""
    membership = _membership()
    if membership.state not in ("applying", *RUNNING):
        return _page(token)
    with answer.reading() as tx:
        ahead = members.bookings(tx, membership.id)
    running = membership.state in RUNNING
    ends = {_end(membership, when): when for when in reversed(ENDS)} if running else {}
    return render_template(
        "guest/membership/cancel.html",
        token=token,
        membership=membership,
        ends=[(when, at) for at, when in reversed(ends.items())],
        bookings=ahead,
    )


@blueprint.post("/cancel", endpoint="cancelled")
@access.member
def do_cancel(token: str) -> AnyResponse:
    when = request.form.get("when", "month_boundary")
    if when not in ENDS:
        abort(400)
    ending = Ending("self_cancel", when=when, seen=_seen())
    return _answered(answer.act_at_desk(end_membership, _id(), ending), token)


@blueprint.post("/resume")
@access.member
def resume(token: str) -> AnyResponse:
    return _answered(answer.act(memberships.resume, _id(), _seen()), token)


@blueprint.post("/language")
@access.member
def language(token: str) -> AnyResponse:
    wanted = request.form.get("lang", "")
    if wanted not in LOCALES:
        abort(400)
    guest_id = access.visit().actor.id
    if guest_id is None:
        raise LookupError("a member is always a guest")
    return _answered(answer.act(guests.choose_language, guest_id, wanted), token)


def _id() -> UUID:
    return access.visit().subject_id


def _seen() -> int:
    version: int | None = forms.ActForm().version.data
    if version is None:
        abort(400)
    return version


def _membership() -> Row:
    with answer.reading() as tx:
        found = members.head(tx, _id())
    if found is None:
        raise LookupError("a link led to a membership that is not there")
    return found


def _end(membership: Row, when: When) -> datetime:
    """As `end_membership` would reckon it now."""
    zone = access.facility().time_zone
    if when == "month_boundary":
        return month_boundary(clock.now(), zone)
    anchor = clock.local_day(membership.started_at, zone)
    return period_at(anchor, membership.billed_every, clock.now(), zone)[1]


def _page(token: str) -> str:
    with answer.reading() as tx:
        seen = members.load(tx, _id())
        if seen is None:
            raise LookupError("a link led to a membership that is not there")
        ahead = members.bookings(tx, _id())
    return render_template(
        "guest/membership/show.html",
        token=token,
        membership=seen.membership,
        bookings=ahead,
        running=seen.membership.state in RUNNING,
        price=words.price,
    )


def _answered(outcome: Outcome, token: str) -> AnyResponse:
    return answer.respond(
        outcome, to=url_for("membership.show", token=token), render=lambda: _page(token)
    )
