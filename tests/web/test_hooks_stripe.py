"""Stripe's webhooks: what is stored, what is answered, and what comes of it once it is applied."""

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import config, doorbell, inbox
from portal.jobs import payment_events
from portal.jobs.applying import Handled, NotYetError
from portal.web import factory
from sandbox.watch import statements
from tests.cast import Booked
from tests.web.shop import OLD_SECRET, SECRET, Shop, card_rail, shop, shop_app

__all__ = ["card_rail", "shop", "shop_app"]

Json = dict[str, Any]


@pytest.fixture
def client(shop: Shop) -> FlaskClient:
    return shop.app.test_client()


def v1(body: bytes, secret: str = SECRET, at: float | None = None) -> str:
    moment = int(datetime.now(UTC).timestamp() if at is None else at)
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


def header(body: bytes, secret: str = SECRET, off: float = 0) -> str:
    at = datetime.now(UTC).timestamp() + off
    return f"t={int(at)},v1={v1(body, secret, at)}"


def an_event(kind: str, obj: Json | None = None, **more: Any) -> Json:
    return {
        "id": f"evt_{uuid4().hex}",
        "object": "event",
        "api_version": "2026-10-28.endive",
        "created": int(datetime.now(UTC).timestamp()),
        "data": {"object": obj or {"id": "obj_1", "object": "thing"}},
        "livemode": False,
        "type": kind,
    } | more


def deliver(
    client: FlaskClient,
    event: Json | bytes,
    signature: str | None = None,
    content_type: str = "application/json",
) -> TestResponse:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    headers = {"Stripe-Signature": header(body) if signature is None else signature}
    return client.post("/webhooks/stripe", data=body, headers=headers, content_type=content_type)


def said(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, answer.get_data(as_text=True)


def rows(shop: Shop) -> list[Any]:
    with shop.cast.transaction(None) as tx:
        return list(tx.rows("select * from webhook_events order by received_at"))


def only_row(shop: Shop) -> Any:
    (row,) = rows(shop)
    return row


def intent_of(shop: Shop, booked: Booked, payment_id: UUID) -> Json:
    """The provider's own object, as an event would carry it."""
    intent_id = shop.scalar(booked, "select intent_id from payments where id = :id", id=payment_id)
    found: Json = shop.rail.get(f"objects/{intent_id}")
    return found


def paid(intent: Json) -> Json:
    return intent | {"status": "succeeded", "amount_received": intent["amount"]}


def state_of(shop: Shop, booked: Booked, payment_id: UUID) -> str:
    return str(shop.scalar(booked, "select state from payments where id = :id", id=payment_id))


# Receipt --------------------------------------------------------------------------------------


def test_an_event_is_stored_as_received(shop: Shop, client: FlaskClient) -> None:
    event = an_event("payment_intent.succeeded")
    body = json.dumps(event).encode()
    with statements() as sent:
        assert said(deliver(client, body)) == (200, "received")
    assert len(sent) == 1
    row = only_row(shop)
    assert (row.source, row.event_id, row.type) == ("stripe", event["id"], event["type"])
    assert (row.state, row.claimed_at, row.attempts) == ("processing", None, 0)
    assert bytes(row.payload) == body
    assert row.api_version == "2026-10-28.endive"
    assert set(row.headers) == {"Content-Type", "Stripe-Signature", "User-Agent"}
    assert row.request_id
    assert [job.args[0] for job in doorbell.queue("inbox").jobs] == ["inbox"]


@pytest.mark.parametrize("off", [-299, 299])
def test_clocks_may_differ_a_little(shop: Shop, client: FlaskClient, off: int) -> None:
    body = json.dumps(an_event("charge.succeeded")).encode()
    assert said(deliver(client, body, header(body, off=off))) == (200, "received")


BODY = json.dumps(an_event("payment_intent.succeeded")).encode()


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        pytest.param(BODY, lambda: header(BODY, "whsec_other"), id="another secret"),
        pytest.param(BODY.replace(b"evt_", b"evT_"), lambda: header(BODY), id="an altered byte"),
        pytest.param(BODY + b"\n", lambda: header(BODY), id="one byte more"),
        pytest.param(BODY, lambda: header(BODY, off=-302), id="old"),
        pytest.param(BODY, lambda: header(BODY, off=302), id="from the future"),
        pytest.param(BODY, lambda: "", id="no header"),
        pytest.param(BODY, lambda: "t=abc", id="no time"),
        pytest.param(BODY, lambda: header(BODY).replace("v1=", "v0="), id="only v0"),
        pytest.param(BODY, lambda: header(BODY).split(",")[0], id="no signature"),
        pytest.param(BODY, lambda: "t=1,t=2,v1=" + v1(BODY), id="two times"),
        pytest.param(BODY, lambda: "ü" * 9000, id="junk"),
        pytest.param(b"", lambda: header(b""), id="an empty body"),
        pytest.param(b"[]", lambda: header(b"[]"), id="a list"),
        pytest.param(b"{}", lambda: header(b"{}"), id="not an event"),
        pytest.param(b"null", lambda: header(b"null"), id="null"),
        pytest.param(b'{"a":NaN}', lambda: header(b'{"a":NaN}'), id="not quite JSON"),
        pytest.param(b"[" * 99_000, lambda: header(b"[" * 99_000), id="too deep"),
    ],
)
def test_what_is_not_signed_or_not_an_event_is_not_stored(
    shop: Shop,
    client: FlaskClient,
    body: bytes,
    signature: Callable[[], str],
) -> None:
    assert said(deliver(client, body, signature())) == (400, "refused")
    assert rows(shop) == []
    assert doorbell.queue("inbox").count == 0


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "a\x00b"])
@pytest.mark.parametrize("field", ["account", "api_version", "id", "type"])
def test_text_that_no_column_can_hold(
    shop: Shop,
    client: FlaskClient,
    field: str,
    odd: str,
) -> None:
    assert said(deliver(client, an_event("charge.succeeded") | {field: odd})) == (400, "refused")
    assert rows(shop) == []


def test_a_body_that_is_too_large(shop: Shop, client: FlaskClient) -> None:
    kept = an_event("charge.succeeded", {"filler": "x" * 500_000})
    assert said(deliver(client, kept)) == (200, "received")
    large = an_event("charge.succeeded", {"filler": "x" * 600_000})
    assert deliver(client, large).status_code == 413
    assert len(rows(shop)) == 1


def test_only_post(client: FlaskClient) -> None:
    assert client.get("/webhooks/stripe").status_code == 405
    assert client.post("/webhooks/other").status_code == 404


# What is held decides the answer ----------------------------------------------------------------


def test_a_duplicate_before_and_after_it_is_applied(
    shop: Shop,
    client: FlaskClient,
) -> None:
    event = an_event("foo.bar")
    assert said(deliver(client, event)) == (200, "received")
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert said(deliver(client, event)) == (200, "duplicate")
    row = only_row(shop)
    assert (row.state, row.attempts) == ("completed", 1)


def test_in_flight_it_is_answered_later_and_an_expired_claim_is_taken_over(
    shop: Shop,
    client: FlaskClient,
) -> None:
    event = an_event("foo.bar")
    deliver(client, event)
    with shop.cast.transaction(None) as tx:
        assert len(inbox.claim(tx, uuid4())) == 1
    answer = deliver(client, event)
    assert said(answer) == (503, "claimed")
    assert int(answer.headers["Retry-After"]) > 0
    with shop.cast.transaction(None) as tx:
        tx.run("update webhook_events set claimed_at = now() - interval '61 seconds'")
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert (only_row(shop).state, only_row(shop).attempts) == ("completed", 2)


def test_a_released_event_is_let_in_at_once(shop: Shop, client: FlaskClient) -> None:
    event, token = an_event("foo.bar"), uuid4()
    deliver(client, event)
    with shop.cast.transaction(None) as tx:
        (claimed,) = inbox.claim(tx, token)
        inbox.release(tx, claimed.id, token, timedelta(hours=1), "nothing")
    shop.work("inbox")
    assert only_row(shop).state == "processing"
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert only_row(shop).state == "completed"


def test_j4_without_redis_it_is_stored_and_asked_for_again(
    shop: Shop,
    client: FlaskClient,
) -> None:
    event = an_event("foo.bar")
    url = shop.app.extensions["monban.config"].redis_url
    doorbell.configure("redis://127.0.0.1:1/0")
    try:
        answer = deliver(client, event)
    finally:
        doorbell.configure(url)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert only_row(shop).state == "processing"
    assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert only_row(shop).state == "completed"


def test_without_a_database_nothing_is_received(
    settings: dict[str, str],
    shop: Shop,
) -> None:
    dead = settings | {"DATABASE_URL": "postgresql://portal_app@127.0.0.1:1/nowhere"}
    client = factory.create_app(config.from_environment(dead)).test_client()
    answer = deliver(client, an_event("foo.bar"))
    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    assert rows(shop) == []
    assert deliver(client, BODY, "").status_code == 400


# Applied --------------------------------------------------------------------------------------


def test_a7_unknown_event_type(shop: Shop, client: FlaskClient) -> None:
    for kind in ("customer.tax_id.created", "foo.bar"):
        event = an_event(kind)
        assert said(deliver(client, event, "t=1,v1=00")) == (400, "refused")
        assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    found = rows(shop)
    assert [(row.state, row.outcome, row.attempts) for row in found] == [
        ("completed", "ignored", 1)
    ] * 2
    with shop.cast.transaction(None) as tx:
        assert tx.rows("select 1 from dead_letters") == []


def test_a8_somebody_elses_event(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    ours = paid(intent_of(shop, booked, payment_id))
    elsewhere = shop.cast.book(shop.cast.osaka)
    nobodys = ours | {"id": "pi_other", "metadata": {}}
    for event in (
        an_event("payment_intent.succeeded", nobodys),
        an_event("payment_intent.succeeded", ours, account="acct_other"),
        an_event("payment_intent.succeeded", ours, livemode=True),
    ):
        assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert {(row.state, row.outcome) for row in rows(shop)} == {("completed", "ignored")}
    assert all(row.detail for row in rows(shop))
    for change in (
        {"facility": str(elsewhere.facility_id)},
        {"subject": str(elsewhere.id)},
        {"purpose": "walk_in"},
    ):
        event = an_event("payment_intent.succeeded", ours | {"metadata": ours["metadata"] | change})
        assert said(deliver(client, event)) == (200, "received")
    shop.work("inbox")
    assert "applied" not in {row.outcome for row in rows(shop)}
    assert state_of(shop, booked, payment_id) == "open"
    assert shop.scalar(booked, "select sum(amount) from ledger_lines") == 6000


def test_a10_the_body_is_the_raw_bytes(shop: Shop, client: FlaskClient) -> None:
    event = an_event("foo.bar")
    odd = (
        b'{"type":"foo.bar",  "note":"\\u65e5\xe6\x9c\xac", "livemode":false,'
        b'"data":{"object":{"z":1,"a":2}},"object":"event","id":"'
        + event["id"].encode()
        + b'","created":1700000000}\n'
    )
    for content_type in (
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        assert said(deliver(client, odd, content_type=content_type)) == (200, "received")
    assert bytes(only_row(shop).payload) == odd
    changed = odd.replace(b"note", b"nose")
    assert said(deliver(client, changed, header(odd))) == (400, "refused")
    broken = odd.replace(b"\xe6\x9c\xac", b"\xff\xfe")
    assert said(deliver(client, broken, "t=1,v1=00")) == (400, "refused")
    assert said(deliver(client, broken)) == (400, "refused")
    assert len(rows(shop)) == 1


def test_a11_two_secrets_and_several_v1(shop: Shop, client: FlaskClient) -> None:
    body = json.dumps(an_event("foo.bar")).encode()
    now = int(datetime.now(UTC).timestamp())
    good = v1(body, at=now)
    for signature, status in (
        (header(body, OLD_SECRET), 200),
        (f"t={now},v1={'0' * 64},v1={good}", 200),
        (f"t={now},v0={good}", 400),
        ("", 400),
        ("t=abc", 400),
    ):
        assert deliver(client, body, signature).status_code == status


def test_a13_ids_of_255_characters(shop: Shop, client: FlaskClient) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    long = {kind: f"{kind}_" + "x" * (254 - len(kind)) for kind in ("evt", "pi", "ch", "re")}
    intent = paid(intent_of(shop, booked, payment_id))
    intent |= {"id": long["pi"], "latest_charge": long["ch"]}
    with shop.cast.transaction(booked.facility_id) as tx:
        tx.run("update payments set intent_id = :id", id=long["pi"])
    assert said(deliver(client, an_event("payment_intent.succeeded", intent, id=long["evt"]))) == (
        200,
        "received",
    )
    shop.work("inbox")
    assert state_of(shop, booked, payment_id) == "succeeded"
    refund = {
        "id": long["re"],
        "object": "refund",
        "amount": 1000,
        "currency": "jpy",
        "status": "succeeded",
        "payment_intent": long["pi"],
        "charge": long["ch"],
        "metadata": {},
        "created": int(datetime.now(UTC).timestamp()),
    }
    deliver(client, an_event("refund.created", refund))
    shop.work("inbox")
    assert [row.outcome for row in rows(shop)] == ["applied", "applied"]
    assert rows(shop)[0].event_id == long["evt"]
    assert shop.scalar(booked, "select provider_refund_id from refunds") == long["re"]


def test_one_event_settles_a_stay_within_its_budget_of_statements(
    shop: Shop,
    client: FlaskClient,
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    event = an_event("foo.warming.up")
    deliver(client, event)
    shop.work("inbox")
    event = an_event("payment_intent.processing", intent_of(shop, booked, payment_id))
    event["data"]["object"] |= {"status": "processing"}
    with statements() as sent:
        deliver(client, event)
        shop.work("inbox")
    assert state_of(shop, booked, payment_id) == "processing"
    # The last one finds that nothing more is due.
    assert len(sent) - 1 <= 10, sent


# Inline ---------------------------------------------------------------------------------------


@pytest.fixture
def inline(settings: dict[str, str], shop: Shop) -> Flask:
    more = {"WEBHOOK_MODE": "inline", "SMTP_URL": "smtp://127.0.0.1:1"}
    made = factory.create_app(config.from_environment({**settings, **more}))
    made.config["TESTING"] = True
    return made


def test_inline_an_event_is_applied_in_the_request(shop: Shop, inline: Flask) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    event = an_event("payment_intent.succeeded", paid(intent_of(shop, booked, payment_id)))
    client = inline.test_client()
    assert said(deliver(client, event)) == (200, "received")
    assert state_of(shop, booked, payment_id) == "succeeded"
    assert only_row(shop).outcome == "applied"
    assert said(deliver(client, event)) == (200, "duplicate")
    assert shop.scalar(booked, "select count(*) from ledger_lines where kind = 'payment'") == 1


def test_inline_what_cannot_be_applied_yet_is_503_and_the_redelivery_lands(
    shop: Shop,
    inline: Flask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    booked = shop.cast.book()
    payment_id = shop.open_payment(booked)
    intent = paid(intent_of(shop, booked, payment_id))
    client = inline.test_client()
    event = an_event("payment_intent.succeeded", intent)

    def overtaken(*_: object) -> Handled:
        raise NotYetError("our own commit is still on its way")

    with monkeypatch.context() as patch:
        patch.setitem(payment_events.HANDLERS, "payment_intent.succeeded", overtaken)
        answer = deliver(client, event)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    row = only_row(shop)
    assert (row.state, row.claimed_at, row.attempts) == ("processing", None, 1)
    assert said(deliver(client, event)) == (200, "received")
    assert state_of(shop, booked, payment_id) == "succeeded"
