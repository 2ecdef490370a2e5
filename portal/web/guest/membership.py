"""A membership, for the person who holds its link: how it stands, and how to leave or stay."""

from datetime import date, datetime
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.outcome import Outcome
from portal.policies.membership_quota import month_of_use
from portal.policies.periods import When, leaving
from portal.queries import members, quota
from portal.verbs import guests, memberships
from portal.verbs.membership_end import Ending, end_membership
from portal.web import access, answer, forms, words
from portal.web.guest.limits import guesses
from portal.web.locale import LOCALES

blueprint = Blueprint("membership", __name__, url_prefix="/m/<token>")
guesses(blueprint)

ENDS: tuple[When, ...] = ("month_boundary", "period_end")
RUNNING = ("active", "past_due")
UNBEGUN = ("applying", "checkout")


@blueprint.get("")
@access.member
def show(token: str) -> str:
    return _page(token)


@blueprint.get("/cancel")
@access.member
def cancel(token: str) -> str:
    """What an end would mean, before it is asked for."""
    membership = _membership()
    if membership.state not in (*UNBEGUN, *RUNNING):
        return _page(token)
    with answer.reading() as tx:
        ahead = members.bookings(tx, membership.id)
    return render_template(
        "guest/membership/cancel.html",
        token=token,
        membership=membership,
        ends=_ends(membership) if membership.state in RUNNING else [],
        bookings=ahead,
        unbegun=membership.state in UNBEGUN,
    )


@blueprint.post("/cancel", endpoint="cancelled")
@access.member
def do_cancel(token: str) -> AnyResponse:
    when = request.form.get("when", "month_boundary")
    if when not in ENDS:
        abort(400)
    ending = Ending("self_cancel", when=when, seen=forms.seen())
    return _answered(answer.act_at_desk(end_membership, _id(), ending), token)


@blueprint.post("/resume")
@access.member
def resume(token: str) -> AnyResponse:
    return _answered(answer.act_at_desk(memberships.resume, _id(), forms.seen()), token)


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


def _membership() -> Row:
    with answer.reading() as tx:
        found = members.head(tx, _id())
    if found is None:
        raise LookupError("a link led to a membership that is not there")
    return found


def _ends(membership: Row) -> list[tuple[When, datetime]]:
    """As `end_membership` would reckon them now, the earlier first; one where both are the same."""
    found = {_end(membership, when): when for when in reversed(ENDS)}
    return [(when, at) for at, when in sorted(found.items())]


def _end(membership: Row, when: When) -> datetime:
    """The provider's own period counts where it bills."""
    if when == "period_end" and membership.period_end is not None:
        found: datetime = membership.period_end
        return found
    return leaving(
        when,
        membership.started_at,
        membership.billed_every,
        clock.now(),
        access.facility().time_zone,
    )


def _this_month() -> date:
    return month_of_use(clock.now(), access.facility().time_zone)


def _page(token: str) -> str:
    membership = _membership()
    with answer.reading() as tx:
        ahead = members.bookings(tx, membership.id)
        paid = members.periods(tx, membership.id)
        months = quota.months(tx, membership.id, membership.monthly_quota, _this_month())
    return render_template(
        "guest/membership/show.html",
        months=months if membership.started_at else [],
        periods=paid,
        unbegun=membership.state in UNBEGUN,
        token=token,
        membership=membership,
        bookings=ahead,
        running=membership.state in RUNNING,
        price=words.price,
    )


def _answered(outcome: Outcome, token: str) -> AnyResponse:
    return answer.respond(
        outcome, to=url_for("membership.show", token=token), render=lambda: _page(token)
    )
