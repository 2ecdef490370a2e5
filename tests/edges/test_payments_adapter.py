"""The adapter and the real SDK against the stand-in, over real sockets."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import stripe

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.payments import Intent, Payments
from portal.edges.payments import faults as meanings
from portal.edges.payments.adapter import StripePayments
from portal.edges.payments.calls import API_VERSION
from portal.fence import TransactionOpenError, transaction_began, transaction_ended
from sandbox.stripe.testing import StandIn, client, running

KEY = os.environ.get("STRIPE_SECRET_KEY") or "sk_test_monban"
HOUR = 3_600


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn | str]:
    elsewhere = os.environ.get("STRIPE_API_BASE")
    if elsewhere:
        yield elsewhere
        return
    with running() as started:
        yield started


@pytest.fixture
def stand_in(server: StandIn | str) -> StandIn:
    if isinstance(server, str):
        pytest.skip("another server has no control door")
    server.post("reset")
    return server


@pytest.fixture
def base(server: StandIn | str) -> str:
    return server if isinstance(server, str) else server.base


@pytest.fixture
def payments(base: str) -> Payments:
    return StripePayments(KEY, api_base=base, connect_seconds=1, read_seconds=3)


@pytest.fixture
def hasty(base: str) -> Payments:
    return StripePayments(KEY, api_base=base, connect_seconds=1, read_seconds=0.5)


def open_intent(payments: Payments, key: str = "k1", **changes: Any) -> Intent:
    wanted: dict[str, Any] = {
        "amount": 10_000,
        "currency": "JPY",
        "metadata": {"payment_id": "p1", "purpose": "order", "subject": "o1"},
        "description": "ご宿泊",
    }
    return payments.create_intent(key=key, **{**wanted, **changes})


def pay(base: str, intent: Intent, card: str = "pm_card_visa") -> None:
    """What the guest does on the page."""
    client(base, KEY).payment_intents.confirm(
        intent.id, {"payment_method": card, "return_url": "https://example.com/back"}
    )


def paid_intent(payments: Payments, base: str, key: str = "k1", **changes: Any) -> Intent:
    intent = open_intent(payments, key, **changes)
    pay(base, intent)
    return payments.retrieve_intent(intent.id)


def refund(payments: Payments, intent: Intent, key: str = "r1", amount: int = 3_000) -> Any:
    return payments.create_refund(
        key=key, intent_id=intent.id, amount=amount, metadata={"refund_id": key}
    )


def fresh() -> str:
    return os.urandom(8).hex()


# --- the ordinary


def test_the_version_is_pinned() -> None:
    assert stripe.api_version == API_VERSION


def test_c1_an_intent_of_500_yen_is_500_at_the_provider(payments: Payments, base: str) -> None:
    intent = open_intent(payments, fresh(), amount=500)
    assert client(base, KEY).payment_intents.retrieve(intent.id).amount == 500
    assert (intent.amount, intent.currency, intent.status) == (
        500,
        "JPY",
        "requires_payment_method",
    )
    assert intent.metadata["payment_id"] == "p1"
    assert intent.created.tzinfo is UTC
    assert abs(intent.created - datetime.now(UTC)) < timedelta(minutes=1)


def test_an_intent_from_open_to_paid(payments: Payments, base: str) -> None:
    paid = paid_intent(payments, base, fresh())
    assert (paid.status, paid.amount_received, paid.decline_code) == ("succeeded", 10_000, None)
    assert paid.latest_charge


def test_a_decline_is_told(payments: Payments, base: str) -> None:
    intent = open_intent(payments, fresh())
    with pytest.raises(stripe.CardError):
        pay(base, intent, "pm_card_visa_chargeDeclinedInsufficientFunds")
    again = payments.retrieve_intent(intent.id)
    assert (again.status, again.decline_code) == ("requires_payment_method", "insufficient_funds")


def test_cancelling_twice_is_calm(payments: Payments) -> None:
    intent = open_intent(payments, fresh())
    assert payments.cancel_intent(intent.id).status == "canceled"
    assert payments.cancel_intent(intent.id).status == "canceled"


def test_what_is_paid_or_in_processing_is_not_cancelled(
    stand_in: StandIn, payments: Payments
) -> None:
    waiting = open_intent(payments, "k2")
    pay(stand_in.base, waiting, "pm_card_processing")
    for intent in (paid_intent(payments, stand_in.base), waiting):
        with pytest.raises(Rejected) as refusal:
            payments.cancel_intent(intent.id)
        assert refusal.value.code == "payment_intent_unexpected_state"


def test_refunds_are_listed_oldest_first(payments: Payments, base: str) -> None:
    intent = paid_intent(payments, base, fresh())
    first = refund(payments, intent, fresh(), 1_000)
    second = refund(payments, intent, fresh(), 2_000)
    assert payments.refunds_of(intent.id) == [first, second]
    assert payments.retrieve_refund(second.id) == second
    assert (first.intent_id, first.charge_id) == (intent.id, intent.latest_charge)
    assert first.status == "succeeded"


def test_more_than_a_page_of_refunds(stand_in: StandIn, payments: Payments) -> None:
    intent = paid_intent(payments, stand_in.base)
    for _ in range(105):
        stand_in.post("refunds", payment_intent=intent.id, amount=1)
    assert len(payments.refunds_of(intent.id)) == 105


def test_a_pending_refund_is_pending(stand_in: StandIn, payments: Payments) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.post("refunds/next", statuses=["pending"])
    waiting = refund(payments, intent)
    assert waiting.status == "pending"
    stand_in.post(f"refunds/{waiting.id}", status="failed", failure_reason="declined")
    failed = payments.retrieve_refund(waiting.id)
    assert (failed.status, failed.failure_reason) == ("failed", "declined")


# --- finding what an unclear answer left behind


def test_an_intent_is_found_by_our_own_id(payments: Payments) -> None:
    name = fresh()
    since = datetime.now(UTC)
    made = open_intent(payments, fresh(), metadata={"payment_id": name})
    assert payments.find_intent(payment_id=name, since=since) == made
    assert payments.find_intent(payment_id="nobody", since=since) is None


def test_an_intent_beyond_the_first_page_is_found(stand_in: StandIn, payments: Payments) -> None:
    since = datetime.now(UTC)
    made = open_intent(payments)
    api = client(stand_in.base)
    for _ in range(105):
        api.payment_intents.create({"amount": 50, "currency": "jpy"})
    assert payments.find_intent(payment_id="p1", since=since) == made


def test_of_several_the_paid_one_is_found(stand_in: StandIn, payments: Payments) -> None:
    paid = paid_intent(payments, stand_in.base, "k1")
    payments.cancel_intent(open_intent(payments, "k2").id)
    open_intent(payments, "k3")
    found = payments.find_intent(payment_id="p1", since=datetime.now(UTC))
    assert found == paid


def test_an_intent_from_long_before_is_not_searched(stand_in: StandIn, payments: Payments) -> None:
    open_intent(payments)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert payments.find_intent(payment_id="p1", since=later) is None


# --- events


def test_events_oldest_first_and_from_a_checkpoint(stand_in: StandIn, payments: Payments) -> None:
    stand_in.post("clock", advance=-HOUR)
    open_intent(payments, "k0")
    stand_in.post("clock", advance=HOUR)
    since = datetime.now(UTC) - timedelta(seconds=30)
    intent = paid_intent(payments, stand_in.base, "k1")
    events = list(payments.events_since(since))
    assert [event.type for event in events] == [
        "payment_intent.created",
        "charge.succeeded",
        "payment_intent.succeeded",
    ]
    assert events[0].payload["data"]["object"]["id"] == intent.id
    assert json.loads(events[0].raw) == events[0].payload
    rest = list(payments.events_since(since, after_event=events[0].id))
    assert rest == events[1:]


def test_events_without_an_older_one(stand_in: StandIn, payments: Payments) -> None:
    since = datetime.now(UTC) - timedelta(days=1)
    assert list(payments.events_since(since)) == []
    open_intent(payments)
    assert [event.type for event in payments.events_since(since)] == ["payment_intent.created"]


def test_events_over_many_pages_are_whole(stand_in: StandIn, payments: Payments) -> None:
    since = datetime.now(UTC) - timedelta(days=1)
    ids = [
        stand_in.post("webhooks/record", type="foo.bar", object={"n": n})["id"] for n in range(230)
    ]
    assert [event.id for event in payments.events_since(since)] == ids
    rest = payments.events_since(since, after_event=ids[4])
    assert [event.id for event in rest] == ids[5:]


def test_a_forgotten_checkpoint_begins_at_the_time(stand_in: StandIn, payments: Payments) -> None:
    open_intent(payments)
    since = datetime.now(UTC) - timedelta(days=1)
    assert len(list(payments.events_since(since, after_event="evt_forgotten"))) == 1


# --- the page


def test_the_stand_in_has_a_page_and_stripe_has_none(stand_in: StandIn, payments: Payments) -> None:
    intent = open_intent(payments)
    page = payments.hosted_page(intent, "http://shop.example/back?a=1&b=2")
    assert page is not None
    assert page.startswith(f"{stand_in.base}/pay/{intent.id}?client_secret={intent.client_secret}&")
    assert "return_url=http%3A%2F%2Fshop.example%2Fback%3Fa%3D1%26b%3D2" in page
    assert StripePayments("sk_test_x").hosted_page(intent, "http://shop.example/") is None


# --- what goes wrong


def all_calls(payments: Payments, intent_id: str) -> dict[str, Callable[[], Any]]:
    now = datetime.now(UTC)
    return {
        "create_intent": lambda: open_intent(payments, fresh()),
        "cancel_intent": lambda: payments.cancel_intent(intent_id),
        "create_refund": lambda: payments.create_refund(
            key=fresh(), intent_id=intent_id, amount=100, metadata={}
        ),
        "retrieve_intent": lambda: payments.retrieve_intent(intent_id),
        "find_intent": lambda: payments.find_intent(payment_id="p1", since=now),
        "refunds_of": lambda: payments.refunds_of(intent_id),
        "retrieve_refund": lambda: payments.retrieve_refund("re_1"),
        "events_since": lambda: list(payments.events_since(now)),
    }


WRITES = ("create_intent", "cancel_intent", "create_refund")
CALLS = tuple(all_calls(StripePayments("sk_test_x"), "pi_1"))


def failing(call: Callable[[], Any]) -> EdgeError:
    with pytest.raises(EdgeError) as failure:
        call()
    return failure.value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("fault", "write_is"),
    [
        ({"mode": "do_then_drop"}, Unknown),
        ({"mode": "refuse"}, Unknown),
        ({"mode": "error_500_before"}, Unknown),
        ({"mode": "error_500_after"}, Unknown),
        ({"mode": "stall", "seconds": 1.0, "when": "before"}, Unknown),
        ({"mode": "stall", "seconds": 1.0, "when": "after"}, Unknown),
        ({"mode": "rate_limit", "retry_after": 7}, Unreachable),
    ],
)
def test_faults_on_the_wire(
    stand_in: StandIn,
    payments: Payments,
    hasty: Payments,
    name: str,
    fault: dict[str, Any],
    write_is: type[EdgeError],
) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.post("faults", method=".*", times=None, **fault)
    error = failing(all_calls(hasty, intent.id)[name])
    assert type(error) is (write_is if name in WRITES else Unreachable)
    if fault["mode"] == "rate_limit":
        assert isinstance(error, Unreachable)
        assert error.retry_after == 7


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_connection_is_unreachable(name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = StripePayments(KEY, api_base=f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert type(failing(all_calls(nobody, "pi_1")[name])) is Unreachable


@pytest.mark.parametrize(
    "nowhere",
    [
        "http://stripe.invalid",
        "http://no such host",
        "nonsense",
        "ftp://127.0.0.1",
        # TEST-NET-1 answers nobody; whether it is refused or runs out of time, nothing was sent.
        "http://192.0.2.1:81",
    ],
)
def test_nothing_was_sent(nowhere: str) -> None:
    payments = StripePayments(KEY, api_base=nowhere, connect_seconds=0.5)
    assert type(failing(lambda: open_intent(payments))) is Unreachable


def test_a_shut_port_is_unreachable_although_it_was_open(
    stand_in: StandIn, payments: Payments
) -> None:
    open_intent(payments)
    stand_in.post("listening", open=False)
    try:
        assert type(failing(lambda: open_intent(payments, "k2"))) is Unreachable
    finally:
        stand_in.post("listening", open=True)
    assert open_intent(payments, "k2").id


@contextmanager
def anybody(status: int, body: bytes, cut: bool = False) -> Iterator[str]:
    """A server that gives every call the same answer; `cut` promises more than it sends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "cut"),
    [
        (200, b"", False),
        (200, b"<html>sign in to the hotel wifi</html>", False),
        (200, b"[]", False),
        (200, b"null", False),
        (200, b"{}", False),
        (200, b'{"object": "list"}', False),
        (200, b"\xff\xfe", False),
        (200, b"5", False),
        (200, b'{"object": 5}', False),
        (200, b'{"object": "list", "data": null, "has_more": false}', False),
        (200, b'{"object": "payment_intent", "id": {}}', False),
        (200, b'{"id": "pi_1"', True),
        (400, b"[]", False),
        (400, b"null", False),
        (400, b"5", False),
        (400, b'{"error": null}', False),
        (400, b'{"error": []}', False),
        (400, b'{"error": "invalid_grant"}', False),
        (400, b"\xff", False),
        (302, b"", False),
        (404, b"<html>no such page</html>", False),
        (403, b"<html>not from here</html>", False),
        (409, b'{"error": {"type": "idempotency_error", "code": "lock"}}', False),
        (502, b"<html>bad gateway</html>", False),
        (503, b"", False),
    ],
)
def test_answers_that_are_not_stripes(status: int, body: bytes, cut: bool) -> None:
    with anybody(status, body, cut) as base:
        payments = StripePayments(KEY, api_base=base)
        for name, call in all_calls(payments, "pi_1").items():
            error = failing(call)
            assert type(error) is (Unknown if name in WRITES else Unreachable), name
            assert "html" not in str(error)


def test_a_bad_key_is_rejected(base: str) -> None:
    stranger = StripePayments("sk_live_not_here", api_base=base)
    for call in all_calls(stranger, "pi_1").values():
        error = failing(call)
        assert type(error) is Rejected
        assert "sk_live_not_here" not in str(error)


def test_c4_below_the_minimum_is_rejected(payments: Payments) -> None:
    error = failing(lambda: open_intent(payments, fresh(), amount=49))
    assert (type(error), error.code) == (Rejected, "amount_too_small")


@pytest.mark.parametrize("amount", [0, -1, 10_001])
def test_c8_a_refund_of_a_bad_amount_is_rejected(
    stand_in: StandIn, payments: Payments, amount: int
) -> None:
    intent = paid_intent(payments, stand_in.base)
    assert type(failing(lambda: refund(payments, intent, amount=amount))) is Rejected
    assert stand_in.creates("refund") == 0


def test_c10_a_refund_of_a_disputed_charge_is_rejected(
    stand_in: StandIn, payments: Payments
) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.post("disputes", payment_intent=intent.id)
    assert failing(lambda: refund(payments, intent)).code == "charge_disputed"


def test_b4_changed_parameters_under_one_key_are_rejected(payments: Payments) -> None:
    key = fresh()
    open_intent(payments, key, amount=12_000)
    error = failing(lambda: open_intent(payments, key, amount=9_000))
    assert (type(error), error.code) == (Rejected, "idempotency_error")


def test_a_card_error_is_rejected_with_its_code() -> None:
    error = stripe.CardError(
        "Your card was declined.",
        None,
        "card_declined",
        json_body={"error": {"type": "card_error", "code": "card_declined"}},
        http_status=402,
    )
    meant = meanings.of_write(error)
    assert (type(meant), meant.code) == (Rejected, "card_declined")


@pytest.mark.parametrize("name", CALLS)
def test_not_while_a_transaction_is_open(name: str) -> None:
    call = all_calls(StripePayments("sk_test_x"), "pi_1")[name]
    transaction_began()
    try:
        with pytest.raises(TransactionOpenError):
            call()
    finally:
        transaction_ended()


def test_not_while_a_transaction_is_open_between_pages(
    stand_in: StandIn, payments: Payments
) -> None:
    for n in range(102):
        stand_in.post("webhooks/record", type="foo.bar", object={"n": n})
    first = stand_in.get("calls")
    events = payments.events_since(datetime.now(UTC) + timedelta(days=1), after_event=None)
    assert first == []
    transaction_began()
    try:
        with pytest.raises(TransactionOpenError):
            next(events)
    finally:
        transaction_ended()


# --- field cases, at the adapter's level


def test_b1_a_dropped_refund_under_one_key_is_one_refund(
    stand_in: StandIn, payments: Payments
) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.fault("do_then_drop", "/v1/refunds")
    assert type(failing(lambda: refund(payments, intent))) is Unknown
    again = [refund(payments, intent) for _ in range(3)]
    assert {one.id for one in again} == {again[0].id}
    assert stand_in.creates("refund") == 1
    assert [one.amount for one in payments.refunds_of(intent.id)] == [3_000]
    assert {call["idempotency_key"] for call in stand_in.calls("/v1/refunds")} == {"r1"}
    charge = stand_in.get(f"objects/{intent.latest_charge}")
    assert charge["amount"] - charge["amount_refunded"] == 7_000


def test_b1_a_refund_whose_500_is_replayed_is_found_by_reading(
    stand_in: StandIn, payments: Payments
) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.fault("error_500_after", "/v1/refunds")
    for _ in range(3):
        assert type(failing(lambda: refund(payments, intent))) is Unknown
    (found,) = payments.refunds_of(intent.id)
    assert found.metadata == {"refund_id": "r1"}
    assert stand_in.creates("refund") == 1


def test_b2_a_new_attempt_has_a_new_key_and_is_not_the_old_decline(
    stand_in: StandIn, payments: Payments
) -> None:
    first = open_intent(payments, "order:o1:1")
    with pytest.raises(stripe.CardError):
        pay(stand_in.base, first, "pm_card_visa_chargeDeclined")
    payments.cancel_intent(first.id)
    second = paid_intent(payments, stand_in.base, "order:o1:2")
    assert second.id != first.id
    assert (second.status, second.decline_code) == ("succeeded", None)
    charges = stand_in.get("objects")["charge"]
    assert [charge["status"] for charge in charges] == ["failed", "succeeded"]


def test_b5_still_in_flight_is_unknown_and_ends_as_one(
    stand_in: StandIn, payments: Payments
) -> None:
    stand_in.fault("stall", "/v1/payment_intents", seconds=0.8)
    first: list[Intent] = []
    slow = threading.Thread(target=lambda: first.append(open_intent(payments)))
    slow.start()
    time.sleep(0.3)
    error = failing(lambda: open_intent(payments))
    slow.join()
    assert (type(error), error.code) == (Unknown, "idempotency_key_in_use")
    assert open_intent(payments) == first[0]
    assert stand_in.creates("payment_intent") == 1


def test_b7_after_a_day_the_key_is_forgotten_and_the_refunds_tell(
    stand_in: StandIn, payments: Payments
) -> None:
    intent = paid_intent(payments, stand_in.base)
    stand_in.fault("do_then_drop", "/v1/refunds")
    assert type(failing(lambda: refund(payments, intent))) is Unknown
    stand_in.post("clock", advance=25 * HOUR)
    (found,) = payments.refunds_of(intent.id)
    assert (found.amount, found.metadata) == (3_000, {"refund_id": "r1"})
    # Why one has to look first: the forgotten key would have paid a second time.
    assert refund(payments, intent).id != found.id


def test_b11_two_wanted_refunds_are_two_and_one_form_is_one(
    stand_in: StandIn, payments: Payments
) -> None:
    intent = paid_intent(payments, stand_in.base)
    for key in ("r1", "r2", "r3", "r3"):
        refund(payments, intent, key, 1_000)
    assert sum(one.amount for one in payments.refunds_of(intent.id)) == 3_000
