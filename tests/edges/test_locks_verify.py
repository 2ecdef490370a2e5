"""Signatures made by Svix's own library; the clock is ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from portal.edges.locks import BadBody, BadSignature, verify

NOW = datetime(2026, 10, 10, 6, 0, 30, tzinfo=UTC)
OURS = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_cGxlYXNlIG5vdCB0aGlzIG9uZSBhdCBhbGw="
EVENT: dict[str, Any] = {
    "event_id": "0b7e",
    "event_type": "access_code.set_on_device",
    "access_code_id": "c1",
    "code": "048213",
    "created_at": "2026-10-10T06:00:00.000Z",
}


def signed(
    body: str, secret: str = OURS, at: datetime = NOW, prefix: str = "svix"
) -> dict[str, str]:
    return {
        f"{prefix}-id": "msg_1",
        f"{prefix}-timestamp": str(int(at.timestamp())),
        f"{prefix}-signature": Webhook(secret).sign("msg_1", at, body),
    }


BODY = json.dumps(EVENT)


def test_a_signed_event() -> None:
    event = verify(BODY.encode(), signed(BODY), [OURS], NOW)
    assert (event.id, event.type) == ("0b7e", "access_code.set_on_device")
    assert event.created == datetime(2026, 10, 10, 6, tzinfo=UTC)
    assert event.payload["access_code_id"] == "c1"
    assert event.raw == BODY.encode()


def test_the_pin_is_not_in_what_is_kept_or_shown() -> None:
    changed = {**EVENT, "from": {"code": "1"}, "changed_properties": [{"from": "1", "to": "2"}]}
    body = json.dumps(changed)
    event = verify(body.encode(), signed(body), [OURS], NOW)
    assert event.payload == {
        "event_id": "0b7e",
        "event_type": "access_code.set_on_device",
        "access_code_id": "c1",
        "created_at": "2026-10-10T06:00:00.000Z",
        "changed_properties": [{}],
    }
    assert "048213" not in repr(event)


@pytest.mark.parametrize("secrets", [[OURS, OLD], [OLD, OURS]])
def test_any_of_several_secrets(secrets: list[str]) -> None:
    assert verify(BODY.encode(), signed(BODY, OLD), secrets, NOW).id == "0b7e"


def test_any_of_several_signatures() -> None:
    headers = signed(BODY)
    headers["svix-signature"] = f"v1a,xyz v2,abc {headers['svix-signature']}"
    assert verify(BODY.encode(), headers, [OURS], NOW).id == "0b7e"


def test_header_names_in_any_case_and_both_prefixes() -> None:
    upper = {name.title(): value for name, value in signed(BODY).items()}
    assert verify(BODY.encode(), upper, [OURS], NOW).id == "0b7e"
    assert verify(BODY.encode(), signed(BODY, prefix="webhook"), [OURS], NOW).id == "0b7e"


@pytest.mark.parametrize("seconds", [-300, -299, 0, 299, 300])
def test_within_the_tolerance(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    assert verify(BODY.encode(), signed(BODY, at=at), [OURS], NOW).id == "0b7e"


@pytest.mark.parametrize("seconds", [-301, 301, -86400, 86400])
def test_too_old_or_from_the_future(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    with pytest.raises(BadSignature):
        verify(BODY.encode(), signed(BODY, at=at), [OURS], NOW)


@pytest.mark.parametrize("secrets", [[], [OTHER], [OTHER, OLD]])
def test_not_our_secret(secrets: list[str]) -> None:
    with pytest.raises(BadSignature):
        verify(BODY.encode(), signed(BODY), secrets, NOW)


@pytest.mark.parametrize("change", [b" ", b"\n", b"x"])
def test_a_changed_body(change: bytes) -> None:
    with pytest.raises(BadSignature):
        verify(BODY.encode() + change, signed(BODY), [OURS], NOW)


@pytest.mark.parametrize("header", ["id", "timestamp", "signature"])
@pytest.mark.parametrize(
    "value", [None, "", "x", "é☃", "-1", "1e9", "9" * 400, "٣٣", "v1,", "\x00"]
)
def test_a_spoilt_header(header: str, value: str | None) -> None:
    headers = signed(BODY)
    if value is None:
        del headers[f"svix-{header}"]
    else:
        headers[f"svix-{header}"] = value
    with pytest.raises(BadSignature):
        verify(BODY.encode(), headers, [OURS], NOW)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        '"text"',
        "{",
        "NaN",
        '{"event_id": NaN}',
        "[" * 200_000,
        json.dumps({**EVENT, "event_id": None}),
        json.dumps({**EVENT, "event_id": ""}),
        json.dumps({**EVENT, "event_type": 5}),
        json.dumps({**EVENT, "created_at": "yesterday"}),
        json.dumps({**EVENT, "created_at": "2026-10-10T06:00:00"}),
        json.dumps({k: v for k, v in EVENT.items() if k != "created_at"}),
    ],
)
def test_signed_but_not_an_event(body: str) -> None:
    with pytest.raises(BadBody):
        verify(body.encode(), signed(body), [OURS], NOW)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"\xc3\x28", bytes(range(256))])
def test_bytes_that_are_no_text(body: bytes) -> None:
    with pytest.raises(BadBody):
        verify(body, signed(""), [OURS], NOW)
