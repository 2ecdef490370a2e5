"""Paying what a membership's invoice asks for: the same card form and the same way back as any
payment."""

from uuid import UUID

from flask import Blueprint, Response, abort, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from portal.outcome import Applied, Noop
from portal.queries import members
from portal.verbs import membership_money
from portal.web import access, answer
from portal.web.extensions import limiter
from portal.web.guest import cards
from portal.web.guest.limits import guesses
from portal.web.locale import language

blueprint = Blueprint("membership_payment", __name__, url_prefix="/m/<token>")
guesses(blueprint)


@blueprint.post("/pay")
@limiter.limit("30 per minute")
@access.member
def begin(token: str) -> AnyResponse:
    outcome = answer.act_at_desk(membership_money.pay, access.visit().subject_id)
    if isinstance(outcome, Applied | Noop) and outcome.code in cards.GOES_ON:
        return redirect(url_for(".card", token=token, payment_id=outcome.subject), 303)
    page = ".back" if outcome.code in cards.WAITS else "membership.show"
    return answer.respond(outcome, to=url_for(page, token=token))


@blueprint.get("/pay/<uuid:payment_id>")
@access.member
def card(token: str, payment_id: UUID) -> AnyResponse | str:
    with answer.reading() as tx:
        payment = members.payment(tx, access.visit().subject_id, payment_id)
    if payment is None:
        abort(404)
    if payment.state != "open":
        return redirect(url_for(".back", token=token), 303)
    name = payment.plan_ja if language() == "ja" else payment.plan_en
    return cards.page(payment, back=url_for(".back", token=token), token=token, plan=name)


@blueprint.get("/return")
@access.member
def back(token: str) -> AnyResponse | str:
    membership_id, since = access.visit().subject_id, cards.since()
    with answer.reading() as tx:
        membership = members.head(tx, membership_id)
        newest = members.newest_payment(tx, membership_id)
    shown = cards.standing(newest, since)
    if request.args.get("seen") == shown["face"] and answer.is_htmx():
        # A live region that is swapped for the same words would be read out again.
        return Response(status=204)
    return render_template(
        "guest/membership/return.html",
        token=token,
        membership=membership,
        reachable=True,
        again=url_for(".back", token=token, since=int(since.timestamp())),
        **shown,
    )
