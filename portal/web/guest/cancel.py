"""Cancelling a stay by its guest: what it costs is told first, and done only as it was told."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock
from portal.db import Row
from portal.policies import cancellation
from portal.policies.cancellation import Consequence
from portal.queries import guest_stay
from portal.verbs import stays
from portal.web import access, answer, forms
from portal.web.guest.limits import guesses

blueprint = Blueprint("guest_cancel", __name__, url_prefix="/g/<token>/cancel")
guesses(blueprint)


class AgreeForm(forms.ActForm):
    """What the page said, figure by figure; `returns` is 1 where a visit comes back."""

    fee = forms.Version()
    returns = forms.Version()


@dataclass(frozen=True, slots=True)
class Offer:
    """What cancelling now means. `back` returns to the guest, `owed` is still to be paid."""

    due: Consequence
    back: int
    owed: int


@blueprint.get("")
@access.guest
def show(token: str) -> str:
    return _page(token)


@blueprint.post("", endpoint="cancelled")
@access.guest
def do_cancel(token: str) -> AnyResponse:
    form = AgreeForm()
    version, fee, returns = forms.seen(), form.fee.data, form.returns.data
    if fee is None or returns is None:
        abort(400)
    said = answer.act(stays.cancel_as_agreed, _id(), version, fee, returns=bool(returns))
    home = url_for("guest.stay", token=token)
    return answer.respond(said, to=home, again=lambda: _page(token))


def _id() -> UUID:
    return access.visit().subject_id


def _page(token: str) -> str:
    with answer.reading() as tx:
        stay = guest_stay.stay(tx, _id())
        folio = guest_stay.folio(tx, stay)
    return render_template("guest/cancel.html", token=token, stay=stay, **_told(stay, folio))


def _told(stay: Row, folio: guest_stay.Folio) -> dict[str, Any]:
    now = clock.now()
    steps = cancellation.steps_of(stay.cancellation_steps)
    if stay.state != "reserved" or now >= stay.starts_at or not steps:
        return {"offer": None, "at_desk": not steps}
    price = folio.price - folio.lodging_tax - folio.tickets  # of which the fee is a part
    due = cancellation.consequence(steps, price, stay.starts_at, now)
    paid, kept = folio.price - folio.balance, due.fee + folio.tickets
    return {
        "offer": Offer(due, back=max(0, paid - kept), owed=max(0, kept - paid)),
        "paid": paid,
        "price": folio.price,
        "schedule": cancellation.schedule(steps, price, stay.starts_at),
    }
