"""Webhooks: a verified event becomes an inbox row, and that is all that happens here.

What is answered is what we now hold of the event:

| bad signature, bad body                          | 400, nothing stored  |
| database or doorbell out of reach                | 503                  |
| stored, now or earlier, and waiting              | 200 `received`       |
| claimed by a live worker                         | 503 with Retry-After |
| completed                                        | 200 `duplicate`      |

In inline mode the event is applied in the request as well; what stays undone is 503.
"""

import json
from collections.abc import Callable
from typing import cast

from flask import Blueprint, Flask, Response, current_app, request
from flask.blueprints import BlueprintSetupState
from sqlalchemy.exc import DataError

from portal import clock, doorbell, inbox, log
from portal.config import Config
from portal.db import Tx, transaction
from portal.edges import locks, payments
from portal.edges.channels import channels
from portal.inbox import Held, Source
from portal.jobs import events
from portal.jobs.house import House
from portal.web import access

blueprint = Blueprint("hooks", __name__, url_prefix="/webhooks")

LARGEST_BODY = 512 * 1024
RETRY_SECONDS = 10
KEPT_HEADERS = ("User-Agent", "Content-Type")

Store = Callable[[Tx], Held]


@blueprint.record
def _open_house(state: BlueprintSetupState) -> None:
    """Inline mode works in the web's own process, with a house like a worker's."""
    app = cast("Flask", state.app)
    config: Config = app.extensions["monban.config"]
    if config.webhook_mode == "inline":
        held = app.extensions["monban.providers"]
        made = House(config, held, channels(config), app.app_context)
        app.extensions["monban.house"] = made


@blueprint.post("/stripe")
@access.machine
def from_stripe() -> Response:
    body, secrets = _body(), _config().stripe_webhook_secrets
    try:
        event = payments.verify(body, request.headers.get("Stripe-Signature"), secrets, clock.now())
    except (payments.BadSignature, payments.BadBody) as reason:
        return _refuse(reason)

    def store(tx: Tx) -> Held:
        return inbox.receive(
            tx,
            "stripe",
            event_id=event.id,
            kind=event.type,
            created=event.created,
            payload=event.raw,
            headers=_headers("Stripe-Signature"),
            livemode=event.livemode,
            account=event.account,
            api_version=event.api_version,
        )

    return _receive("stripe", event.id, store)


@blueprint.post("/seam")
@access.machine
def from_seam() -> Response:
    body, secrets = _body(), _config().seam_webhook_secrets
    try:
        event = locks.verify(body, dict(request.headers), secrets, clock.now())
    except (locks.BadSignature, locks.BadBody) as reason:
        return _refuse(reason)

    def store(tx: Tx) -> Held:
        return inbox.receive(
            tx,
            "seam",
            event_id=event.id,
            kind=event.type,
            created=event.created,
            # Never what was signed: door codes stand in it.
            payload=json.dumps(event.payload).encode(),
            headers=_headers("Svix-Id", "Svix-Timestamp"),
        )

    return _receive("seam", event.id, store)


def _receive(source: Source, event_id: str, store: Store) -> Response:
    """Committed first, then rung, then answered by what we hold."""
    try:
        with transaction(None, isolation="AUTOCOMMIT") as tx:  # it is one statement
            held = store(tx)
    except (DataError, UnicodeError) as reason:
        return _refuse(reason)
    if held == "completed":
        return _say(200, "duplicate")
    if held == "claimed":
        return _later("claimed")
    if not _handed_on(source, event_id):
        return _later("not now")
    return _say(200, "received")


def _handed_on(source: Source, event_id: str) -> bool:
    """A worker will look, or the event is applied here and now. False: the provider comes again."""
    if _config().webhook_mode == "inline":
        house = cast("House", current_app.extensions["monban.house"])
        return events.apply_now(house, source, event_id)
    return doorbell.ring("inbox")


def _body() -> bytes:
    """The raw bytes, whatever they call themselves: the signature is over these."""
    request.max_content_length = LARGEST_BODY
    return request.get_data(cache=False)


def _headers(*signing: str) -> dict[str, str]:
    """What is kept of them: who came, and by what it proved itself."""
    got = request.headers
    kept = (*KEPT_HEADERS, *signing)
    return {name: value for name in kept if (value := got.get(name)) is not None}


def _refuse(reason: Exception) -> Response:
    log.get(__name__).warning(
        "webhook_refused", endpoint=request.endpoint, reason=type(reason).__name__
    )
    return _say(400, "refused")


def _later(words: str) -> Response:
    response = _say(503, words)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _say(status: int, words: str) -> Response:
    return Response(words, status, mimetype="text/plain")


def _config() -> Config:
    return cast("Config", current_app.extensions["monban.config"])
