"""Signatures over raw bytes; the clock is ours. Headers are made by Stripe's own library."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from portal.edges.payments import BadBody, BadSignature, ProviderEvent, verify

NOW = datetime(2026, 11, 10, 6, 0, 30, tzinfo=UTC)
NEW, OLD, OTHER = "whsec_new", "whsec_old", "whsec_other"
EVENT: dict[str, Any] = {
    "id": "evt_1",
    "object": "event",
    "api_version": "2026-10-28.endive",
    "created": int(NOW.timestamp()),
    "data": {"object": {"id": "pi_1", "object": "payment_intent"}},
    "livemode": False,
    "type": "payment_intent.succeeded",
}
BODY = json.dumps(EVENT).encode()


def v1(body: bytes, secret: str = NEW, at: datetime = NOW) -> str:
    """Only the signature, over any bytes."""
    signed = str(int(at.timestamp())).encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def header(body: bytes, secret: str = NEW, at: datetime = NOW) -> str:
    return f"t={int(at.timestamp())},v1={v1(body, secret, at)}"


def check(body: bytes, given_header: str | None, *secrets: str, now: datetime = NOW) -> Any:
    return verify(body, given_header, secrets or (NEW,), now)


def test_a_signed_event() -> None:
    event = check(BODY, header(BODY))
    assert event == ProviderEvent(
        id="evt_1",
        type="payment_intent.succeeded",
        created=NOW,
        livemode=False,
        account=None,
        api_version="2026-10-28.endive",
        payload=EVENT,
        raw=BODY,
    )


def test_our_reading_of_the_header_is_the_librarys() -> None:
    moment = int(NOW.timestamp())
    made = stripe.WebhookSignature.generate_signature_header(BODY.decode(), NEW, moment)
    assert made == header(BODY)
    assert check(BODY, made).id == "evt_1"


ODD = (
    b'{"type":"payment_intent.succeeded", "livemode" :false,\n"data":{"object":{"note":'
    b'"\\u65e5\xe6\x9c\xac"}},"created":1793599230,"id":"evt_1"}\n'
)


def test_a10_the_signature_is_over_the_raw_bytes() -> None:
    event = check(ODD, header(ODD))
    assert event.raw == ODD
    assert event.payload["data"]["object"]["note"] == "日本"


def test_a10_one_byte_changed() -> None:
    for index in range(len(ODD)):
        changed = ODD[:index] + bytes([ODD[index] ^ 1]) + ODD[index + 1 :]
        with pytest.raises(BadSignature):
            check(changed, header(ODD))


def test_a10_the_same_json_written_again_is_another_body() -> None:
    with pytest.raises(BadSignature):
        check(json.dumps(json.loads(ODD)).encode(), header(ODD))


def test_a10_invalid_utf8_with_a_bogus_signature() -> None:
    with pytest.raises(BadSignature):
        check(b"\xff\xfe{", f"t={int(NOW.timestamp())},v1=bogus")


def test_a10_invalid_utf8_signed() -> None:
    with pytest.raises(BadBody):
        check(b"\xff\xfe{", header(b"\xff\xfe{"))


def test_a11_the_old_secret_still_counts() -> None:
    assert check(BODY, header(BODY, OLD), NEW, OLD).id == "evt_1"


def test_a11_any_v1_counts() -> None:
    moment = int(NOW.timestamp())
    good = v1(BODY)
    assert check(BODY, f"t={moment},v1=bad,v1={good}").id == "evt_1"
    assert check(BODY, f"t={moment},v1={good},v1=bad").id == "evt_1"
    assert check(BODY, f"t={moment}, v1=bad, v1={good}, v0=old").id == "evt_1"


MOMENT = int(NOW.timestamp())


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "",
        "t=abc",
        f"t=abc,v1={v1(BODY)}",
        f"t={MOMENT}",
        f"t={MOMENT},v0={v1(BODY)}",
        f"v1={v1(BODY)}",
        f"t={MOMENT},v1=",
        f"t={MOMENT},v1={v1(BODY).upper()}",
        f"t={MOMENT},v1={v1(BODY)[:-1]}",
        f"t={MOMENT},t={MOMENT},v1={v1(BODY)}",
        f"t=-{MOMENT},v1={v1(BODY)}",
        f"t=+{MOMENT},v1={v1(BODY)}",
        f"t={MOMENT}.0,v1={v1(BODY)}",
        "t=" + "9" * 400 + f",v1={v1(BODY)}",
        "t=１７９３５９９２３０,v1=" + v1(BODY),
        f"t={MOMENT},v1=日本",
        f"t={MOMENT},v1=\udcff",
        "t\x00=1,v1=\xff",
        "," * 5_000,
    ],
)
def test_a11_a_header_that_is_none(bad: str | None) -> None:
    with pytest.raises(BadSignature):
        check(BODY, bad)


def test_a11_a_secret_of_somebody_else() -> None:
    with pytest.raises(BadSignature):
        check(BODY, header(BODY, OTHER), NEW, OLD)


@pytest.mark.parametrize("secrets", [(), ("",), ("", "")])
def test_without_a_secret_nothing_is_signed(secrets: tuple[str, ...]) -> None:
    with pytest.raises(BadSignature):
        verify(BODY, header(BODY, ""), secrets, NOW)


@pytest.mark.parametrize("seconds", [-300, -299, 0, 299, 300])
def test_within_five_minutes(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    assert check(BODY, header(BODY, at=at)).id == "evt_1"


@pytest.mark.parametrize("seconds", [-301, -86_400, 301, 86_400, 10**9])
def test_too_old_or_from_the_future(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    with pytest.raises(BadSignature):
        check(BODY, header(BODY, at=at))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b'"event"',
        b"17",
        b"{",
        b"{}",
        b"NaN",
        b'{"id": NaN}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"1" * 5_000,
        b"\xef\xbb\xbf" + BODY,
        "日本".encode("shift_jis"),
        json.dumps({**EVENT, "id": ""}).encode(),
        json.dumps({**EVENT, "id": None}).encode(),
        json.dumps({**EVENT, "id": ["evt_1"]}).encode(),
        json.dumps({**EVENT, "id": "evt \x00"}).encode(),
        json.dumps({**EVENT, "id": "e" * 256}).encode(),
        json.dumps({**EVENT, "id": "\ud800"}).encode(),
        json.dumps({**EVENT, "type": 1}).encode(),
        json.dumps({**EVENT, "created": "2026-11-10"}).encode(),
        json.dumps({**EVENT, "created": True}).encode(),
        json.dumps({**EVENT, "created": -1}).encode(),
        json.dumps({**EVENT, "created": 10**30}).encode(),
        json.dumps({**EVENT, "livemode": "false"}).encode(),
        json.dumps({**EVENT, "data": {}}).encode(),
        json.dumps({**EVENT, "data": []}).encode(),
        json.dumps({**EVENT, "account": {}}).encode(),
    ],
)
def test_signed_but_not_an_event(body: bytes) -> None:
    with pytest.raises(BadBody):
        check(body, header(body))


def test_a13_the_longest_id_is_whole() -> None:
    body = json.dumps({**EVENT, "id": "evt_" + "x" * 251}).encode()
    assert len(check(body, header(body)).id) == 255


def test_a7_a_type_that_we_do_not_know_is_an_event() -> None:
    body = json.dumps({**EVENT, "type": "foo.bar"}).encode()
    assert check(body, header(body)).type == "foo.bar"


def test_a8_the_account_is_told() -> None:
    body = json.dumps({**EVENT, "account": "acct_other", "livemode": True}).encode()
    event = check(body, header(body))
    assert (event.account, event.livemode) == ("acct_other", True)


@given(body=st.binary(max_size=200), text=st.text(max_size=200))
def test_strangers_are_turned_away_quietly(body: bytes, text: str) -> None:
    for given_header in (text, f"t={MOMENT},v1={text}", f"t={text},v1={v1(body)}"):
        with pytest.raises((BadSignature, BadBody)):
            check(body, given_header)


@given(body=st.binary(max_size=200))
def test_signed_noise_is_no_event(body: bytes) -> None:
    with pytest.raises(BadBody):
        check(body, header(body))
