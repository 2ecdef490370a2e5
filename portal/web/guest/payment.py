"""Paying by card: open an attempt, show the provider's form, and come back to what our books say.

Nothing that a browser brings back is believed. The return page reads the ledger and no argument
but `since`, which says for how long the guest has been looking and decides only how patient the
words are.
"""

from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from portal import clock, seal
from portal.config import Config
from portal.db import Row
from portal.edges.payments.calls import API_VERSION
from portal.edges.payments.port import Intent
from portal.outcome import Applied, Code, Noop
from portal.policies import payment_face
from portal.queries import guest_stay
from portal.verbs import payments
from portal.verbs.payments import Part
from portal.web import access, answer, headers
from portal.web.extensions import limiter
from portal.web.guest import words
from portal.web.guest.limits import guesses
from portal.web.guest.stay import parts

blueprint = Blueprint("guest_payment", __name__, url_prefix="/g/<token>")
guesses(blueprint)

# Stripe.js is released with the API and named like it: "2026-10-28.endive" goes with "endive".
STRIPE_JS = f"{headers.STRIPE_SCRIPTS}/{API_VERSION.partition('.')[2]}/stripe.js"

GOES_ON = (Code.PAYMENT_OPENED, Code.PAYMENT_ATTEMPT_OPEN)
WAITS = (Code.PAYMENT_PENDING, Code.PAYMENT_UNKNOWN)
LONGEST_WAIT = timedelta(days=1)


@blueprint.post("/pay")
@limiter.limit("30 per minute")
@access.guest
def begin(token: str) -> AnyResponse:
    part = request.form.get("part", "")
    if part not in ("deposit", "balance"):
        abort(400)
    stay_id = access.visit().subject_id
    outcome = answer.act_at_desk(payments.open_payment, stay_id, cast("Part", part))
    if isinstance(outcome, Applied | Noop) and outcome.code in GOES_ON:
        opened = url_for(".card", token=token, payment_id=outcome.subject)
        return redirect(opened, 303)
    page = ".back" if outcome.code in WAITS else "guest.stay"
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
    return _card_page(token, payment)


def _card_page(token: str, payment: Row) -> str:
    config = _config()
    intent = _intent(payment)
    back = config.public_url + url_for(".back", token=token)
    hosted = answer.desk().payments.hosted_page(intent, back)
    if hosted is None:
        headers.allow_payment()
    return render_template(
        "guest/card.html",
        token=token,
        payment=payment,
        purpose=words.purpose(payment.purpose),
        hosted=hosted,
        back=back,
        client_secret=intent.client_secret,
        publishable_key=config.stripe_publishable_key,
        stripe_js=STRIPE_JS,
    )


@blueprint.get("/return")
@access.guest
def back(token: str) -> AnyResponse | str:
    stay_id, since = access.visit().subject_id, _since()
    with answer.reading() as tx:
        stay = guest_stay.stay(tx, stay_id)
        folio = guest_stay.folio(tx, stay)
        newest = next(iter(guest_stay.payments(tx, stay_id)), None)
    face = payment_face.face(
        newest.state if newest else None,
        newest.decline_code if newest else None,
        clock.now() - since,
    )
    if request.args.get("seen") == face and answer.is_htmx():
        # A live region that is swapped for the same words would be read out again.
        return Response(status=204)
    return render_template(
        "guest/return.html",
        token=token,
        stay=stay,
        folio=folio,
        payment=newest,
        purpose=words.purpose(newest.purpose) if newest else "",
        parts=parts(folio, stay.currency),
        face=face,
        waiting=payment_face.is_waiting(face),
        why=words.decline(newest.decline_code) if newest else "",
        again=url_for(".back", token=token, since=int(since.timestamp())),
    )


def _since() -> datetime:
    """When the guest came back, by their own page's word; now for whoever says nothing or odd."""
    now, told = clock.now(), request.args.get("since", "")
    if not (told.isascii() and told.isdigit() and len(told) <= 12):
        return now
    since = datetime.fromtimestamp(int(told), UTC) if int(told) < now.timestamp() else now
    return max(since, now - LONGEST_WAIT)


def _intent(payment: Row) -> Intent:
    """As much of the intent as the address of its page needs; the provider is not asked."""
    return Intent(
        id=payment.intent_id,
        status="requires_payment_method",
        amount=payment.amount,
        amount_received=0,
        currency=payment.currency,
        client_secret=seal.unseal(payment.client_secret_sealed),
        metadata={},
        latest_charge=None,
        livemode=bool(payment.livemode),
        created=payment.created_at,
        decline_code=None,
    )


def _config() -> Config:
    return cast("Config", current_app.extensions["monban.config"])
