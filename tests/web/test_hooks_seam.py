"""Seam's webhooks: the same rules, and no door code in what is kept."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from standardwebhooks import Webhook
from werkzeug.test import TestResponse

from portal import doorbell, inbox
from portal.db import SYSTEM
from portal.verbs import cash
from sandbox.watch import statements
from tests.conftest import SECRETS
from tests.web.shop import Shop, card_rail, shop, shop_app
from tests.web.test_hooks_stripe import only_row, rows, said

__all__ = ["card_rail", "shop", "shop_app"]

Json = dict[str, Any]
SECRET = SECRETS["SEAM_WEBHOOK_SECRET"]
OTHER = "whsec_cGxlYXNlIG5vdCB0aGlzIG9uZSBhdCBhbGw="


@pytest.fixture
def client(shop: Shop) -> FlaskClient:
    return shop.app.test_client()


def an_event(kind: str = "access_code.set_on_device", **more: Any) -> Json:
    return {
        "event_id": str(uuid4()),
        "event_type": kind,
        "access_code_id": "ac_1",
        "code": "048213",
        "created_at": datetime.now(UTC).isoformat(),
    } | more


def signed(body: bytes, secret: str = SECRET, off: int = 0) -> dict[str, str]:
    at = datetime.now(UTC) + timedelta(seconds=off)
    return {
        "svix-id": "msg_1",
        "svix-timestamp": str(int(at.timestamp())),
        "svix-signature": Webhook(secret).sign("msg_1", at, body.decode()),
    }


def deliver(
    client: FlaskClient, event: Json | bytes, headers: dict[str, str] | None = None
) -> TestResponse:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return client.post("/webhooks/seam", data=body, headers=headers or signed(body))


def test_an_event_is_stored_without_the_code(
    shop: Shop, client: FlaskClient, capfd: pytest.CaptureFixture[str]
) -> None:
    event = an_event(changed_properties=[{"property": "code", "from": "048213", "to": "048214"}])
    with statements() as sent:
        assert said(deliver(client, event)) == (200, "received")
    assert len(sent) == 1
    row = only_row(shop)
    assert (row.source, row.event_id, row.type) == ("seam", event["event_id"], event["event_type"])
    assert json.loads(bytes(row.payload))["access_code_id"] == "ac_1"
    kept = bytes(row.payload).decode() + json.dumps(row.headers) + "".join(capfd.readouterr())
    assert "04821" not in kept
    assert "Svix-Signature" not in row.headers
    assert [job.args[0] for job in doorbell.queue("inbox").jobs] == ["inbox"]


BODY = json.dumps(an_event()).encode()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(BODY, lambda: signed(BODY, OTHER), id="another secret"),
        pytest.param(BODY.replace(b"ac_1", b"ac_2"), lambda: signed(BODY), id="an altered byte"),
        pytest.param(BODY, lambda: signed(BODY, off=-302), id="old"),
        pytest.param(BODY, lambda: signed(BODY, off=302), id="from the future"),
        pytest.param(BODY, lambda: {"svix-id": "msg_1"}, id="no signature"),
        pytest.param(BODY, lambda: signed(BODY) | {"svix-timestamp": "abc"}, id="no time"),
        pytest.param(BODY, lambda: signed(BODY) | {"svix-id": "msg_2"}, id="another message"),
        pytest.param(BODY, lambda: signed(BODY) | {"svix-signature": "v1,ü"}, id="junk"),
        pytest.param(b"\xff\xfe", lambda: signed(b"x"), id="not UTF-8"),
        pytest.param(b"", lambda: signed(b""), id="an empty body"),
        pytest.param(b"[]", lambda: signed(b"[]"), id="a list"),
        pytest.param(b"{}", lambda: signed(b"{}"), id="not an event"),
    ],
)
def test_what_is_not_signed_or_not_an_event_is_not_stored(
    shop: Shop, client: FlaskClient, body: bytes, headers: Callable[[], dict[str, str]]
) -> None:
    assert said(deliver(client, body, headers())) == (400, "refused")
    assert rows(shop) == []


@pytest.mark.parametrize("field", ["event_id", "event_type"])
@pytest.mark.parametrize("odd", ["a\x00b", "\ud800", "x" * 9000])
def test_odd_text(shop: Shop, client: FlaskClient, field: str, odd: str) -> None:
    answer = deliver(client, an_event() | {field: odd})
    assert answer.status_code in (200, 400)
    assert len(rows(shop)) == (answer.status_code == 200)


def test_text_of_the_payload_may_be_anything(shop: Shop, client: FlaskClient) -> None:
    event = an_event(name="扉\x00\ud800 \u202e")
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert only_row(shop).outcome == "ignored"


def test_the_table_of_answers(shop: Shop, client: FlaskClient) -> None:
    event = an_event("device.connected")
    assert said(deliver(client, event)) == (200, "received")
    with shop.cast.transaction(None) as tx:
        inbox.claim(tx, uuid4())
    answer = deliver(client, event)
    assert said(answer) == (503, "claimed")
    assert int(answer.headers["Retry-After"]) > 0
    with shop.cast.transaction(None) as tx:
        tx.run("update webhook_events set claimed_at = now() - interval '61 seconds'")
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert said(deliver(client, event)) == (200, "duplicate")
    assert only_row(shop).outcome == "ignored"


def test_an_event_of_ours_makes_the_key_due_for_a_question(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    with shop.cast.transaction(booked.facility_id) as tx:
        cash.take(tx, SYSTEM, booked.id, 6000, uuid4())
    shop.take_in(booked)
    with shop.cast.transaction(booked.facility_id) as tx:
        tx.run(
            "update entry_keys set provider_code_id = 'ac_1',"
            " next_poll_at = now() + interval '1 hour'"
        )
    assert said(deliver(client, an_event())) == (200, "received")
    shop.work("inbox")
    assert only_row(shop).outcome == "applied"
    assert shop.scalar(booked, "select next_poll_at <= now() from entry_keys")
    assert shop.key(booked).state == "requested", "an event proves nothing"
