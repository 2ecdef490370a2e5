"""Paying for a stay by card: open an attempt, show the provider's form, and come back to what our
books say."""

from typing import cast
from uuid import UUID

from flask import Blueprint, Response, abort, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.outcome import Applied, Noop
from portal.queries import guest_stay
from portal.verbs import payments
from portal.verbs.payments import Part
from portal.web import access, answer
from portal.web.extensions import limiter
from portal.web.guest import cards
from portal.web.guest.limits import guesses
from portal.web.guest.stay import parts

blueprint = Blueprint("guest_payment", __name__, url_prefix="/g/<token>")
guesses(blueprint)


@blueprint.post("/pay")
@limiter.limit("30 per minute")
@access.guest
def begin(token: str) -> AnyResponse:
    part = request.form.get("part", "")
    if part not in ("deposit", "balance"):
        abort(400)
    stay_id = access.visit().subject_id
    outcome = answer.act_at_desk(payments.open_payment, stay_id, cast("Part", part))
    if isinstance(outcome, Applied | Noop) and outcome.code in cards.GOES_ON:
        opened = url_for(".card", token=token, payment_id=outcome.subject)
        return redirect(opened, 303)
    page = ".back" if outcome.code in cards.WAITS else "guest.stay"
    return answer.respond(outcome, to=url_for(page, token=token))


@blueprint.get("/pay/<uuid:payment_id>")
@access.guest
def card(token: str, payment_id: UUID) -> AnyResponse | str:
    with answer.reading() as tx:
        payment = guest_stay.payment(tx, access.visit().subject_id, payment_id)
    if payment is None:
        abort(404)
    if payment.state != "open":
        return redirect(url_for(".back", token=token), 303)
    if payment.client_secret_sealed is None or payment.amount > payment.balance:
        # Never told to the provider, or more than is owed by now: pressed again, it is put right.
        return redirect(url_for("guest.stay", token=token), 303)
    return cards.page(payment, back=url_for(".back", token=token), token=token)


@blueprint.get("/return")
@access.guest
def back(token: str) -> AnyResponse | str:
    stay_id, since = access.visit().subject_id, cards.since()
    with answer.reading() as tx:
        stay = guest_stay.stay(tx, stay_id)
        folio = guest_stay.folio(tx, stay)
        newest = next(iter(guest_stay.payments(tx, stay_id)), None)
    shown = cards.standing(newest, since)
    if request.args.get("seen") == shown["face"] and answer.is_htmx():
        # A live region that is swapped for the same words would be read out again.
        return Response(status=204)
    return render_template(
        "guest/return.html",
        token=token,
        stay=stay,
        folio=folio,
        reachable=stay.reachable,
        parts=parts(folio, stay.currency),
        again=url_for(".back", token=token, since=int(since.timestamp())),
        **shown,
    )
