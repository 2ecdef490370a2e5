"""The stay, for the guest who holds its link: what is booked, what is owed, the door."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, abort, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal import clock, seal
from portal.db import Row
from portal.money import Money, below_card_minimum
from portal.outcome import Outcome
from portal.policies import door_code
from portal.queries import guest_stay, tickets
from portal.verbs import guests
from portal.web import access, answer
from portal.web.guest import words
from portal.web.guest.limits import guesses
from portal.web.locale import LOCALES

blueprint = Blueprint("guest", __name__, url_prefix="/g/<token>")
guesses(blueprint)

LIVE = ("processing", "unknown")


@dataclass(frozen=True, slots=True)
class Door:
    face: door_code.Face
    pin: str | None

    @property
    def waiting(self) -> bool:
        """Something is under way that this page can show soon."""
        return self.face == "preparing"


@blueprint.get("")
@access.guest
def stay(token: str) -> AnyResponse | str:
    shown = _look()
    if answer.is_htmx() and request.args.get("seen") == shown["door"].face:
        # A live region that is swapped for the same words would be read out again.
        return Response(status=204)
    return render_template("guest/stay.html", token=token, **shown)


@blueprint.post("/language")
@access.guest
def language(token: str) -> AnyResponse:
    wanted = request.form.get("lang", "")
    if wanted not in LOCALES:
        abort(400)
    outcome = answer.act(guests.choose_language, _guest_id(), wanted)
    return _respond(outcome, token)


def _guest_id() -> UUID:
    guest_id = access.visit().actor.id
    if guest_id is None:
        raise LookupError("a visit is always a guest's")
    return guest_id


def _respond(outcome: Outcome, token: str) -> AnyResponse:
    return answer.respond(outcome, to=url_for("guest.stay", token=token))


def _look() -> dict[str, Any]:
    """What the page shows, as it is now."""
    stay_id = access.visit().subject_id
    with answer.reading() as tx:
        stay = guest_stay.stay(tx, stay_id)
        folio = guest_stay.folio(tx, stay)
        payments = guest_stay.payments(tx, stay_id)
        refunds = guest_stay.refunds(tx, stay_id)
        books = tickets.of_stay(tx, stay_id)
    house = access.facility()
    on_its_way = sum(r.amount for r in refunds if r.state in ("asked", "unknown", "pending"))
    return {
        "stay": stay,
        "nights": clock.nights(stay.starts_at, stay.ends_at, house.time_zone),
        "door": _door(stay),
        "folio": folio,
        "parts": parts(folio, stay.currency),
        "too_small": below_card_minimum(Money(max(folio.balance, 0), stay.currency)),
        "under_way": any(payment.state in LIVE for payment in payments),
        "refunds": refunds,
        "tickets": books,
        # What no card refund covers is handed out at the desk.
        "at_the_desk": max(0, -folio.balance - on_its_way),
        "entry": words.entry,
        "now": clock.now(),
    }


def _door(stay: Row) -> Door:
    face = door_code.face(
        stay.state, stay.key_state, stay.key_starts_at, stay.key_ends_at, clock.now()
    )
    return Door(face, seal.unseal(stay.pin_sealed) if face == "shown" else None)


def parts(folio: guest_stay.Folio, currency: str) -> list[tuple[str, int]]:
    """What can be paid by card now: [(part, amount)], the deposit first."""
    wanted = [("balance", folio.balance)]
    if 0 < folio.deposit < folio.balance:
        wanted.insert(0, ("deposit", folio.deposit))
    return [
        (part, amount)
        for part, amount in wanted
        if amount > 0 and not below_card_minimum(Money(amount, currency))
    ]
