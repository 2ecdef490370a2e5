"""The card form and the way back from it: the same for whatever is paid.

Nothing that a browser brings back is believed. The return page reads the ledger and no argument but
`since`, which says for how long the guest has been looking and decides only how patient the words
are.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from flask import current_app, render_template, request

from portal import clock, seal
from portal.config import Config
from portal.db import Row
from portal.edges.payments.calls import API_VERSION
from portal.edges.payments.port import Intent
from portal.outcome import Code
from portal.policies import payment_face
from portal.web import answer, headers
from portal.web.guest import words

# Stripe.js is released with the API and named like it: "2026-10-28.endive" goes with "endive".
STRIPE_JS = f"{headers.STRIPE_SCRIPTS}/{API_VERSION.partition('.')[2]}/stripe.js"

GOES_ON = (Code.PAYMENT_OPENED, Code.PAYMENT_ATTEMPT_OPEN)
WAITS = (Code.PAYMENT_PENDING, Code.PAYMENT_UNKNOWN)
LONGEST_WAIT = timedelta(days=1)


def page(payment: Row, *, back: str, template: str = "guest/card.html", **more: Any) -> str:
    """The provider's form for an open payment. `back` is the path that it returns to; `more` is
    what the template says of what is paid."""
    config = cast("Config", current_app.extensions["monban.config"])
    intent, address = _intent(payment), config.public_url + back
    hosted = answer.desk().payments.hosted_page(intent, address)
    if hosted is None:
        headers.allow_payment()
    return render_template(
        template,
        payment=payment,
        purpose=words.purpose(payment.purpose),
        hosted=hosted,
        back=address,
        client_secret=intent.client_secret,
        publishable_key=config.stripe_publishable_key,
        stripe_js=STRIPE_JS,
        **more,
    )


def standing(newest: Row | None, since: datetime) -> dict[str, Any]:
    """What the return page shows of the newest payment, for who has looked `since`."""
    face = payment_face.face(
        newest.state if newest else None,
        newest.decline_code if newest else None,
        clock.now() - since,
        set_aside=newest is not None and newest.authorised_at is not None,
    )
    return {
        "payment": newest,
        "purpose": words.purpose(newest.purpose) if newest else "",
        "face": face,
        "waiting": payment_face.is_waiting(face),
        "why": words.decline(newest.decline_code) if newest else "",
    }


def since() -> datetime:
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
