"""Any text at all becomes a well-formed message that says the same."""

from __future__ import annotations

import email
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage

from hypothesis import example, given, settings
from hypothesis import strategies as st

from portal.edges.mail import MailMessage
from portal.edges.mail.compose import compose, header_text

NOW = datetime(2026, 10, 10, 6, tzinfo=UTC)
SENDER = "no-reply@monban.example"
HEADERS = [
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "auto-submitted",
    "content-type",
    "content-transfer-encoding",
    "mime-version",
    "content-language",
]
anything = st.text(max_size=300) | st.text(alphabet='\r\n\t =?:<>,@"\\()鍵é\u202eBcq_', max_size=80)


def parsed(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def composed_as(message_id: str, language: str) -> bytes:
    wanted = MailMessage("hana@guest.example", "s", "t", None, "n", message_id, language)
    return compose(wanted, SENDER, NOW)


def composed(subject: str, name: str, text: str, html: str | None = None) -> bytes:
    wanted = MailMessage("hana@guest.example", subject, text, html, name, "row@x", "ja")
    return compose(wanted, SENDER, NOW)


@settings(max_examples=300, deadline=None)
@given(subject=anything, name=anything, text=anything)
@example(subject="a\r\nBcc: x@evil.example", name="=?utf-8?q?=0D=0A?=", text="\ud800")
@example(subject="?= =?", name="a\u3000b", text=".\r\n.\r\n")
def test_f8_any_text_is_one_message_with_our_headers(subject: str, name: str, text: str) -> None:
    raw = composed(subject, name, text)
    got = parsed(raw)
    assert raw.isascii()
    assert not set(b"\r\n") & set(raw.replace(b"\r\n", b""))
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert [key.lower() for key in got.keys()] == HEADERS  # noqa: SIM118
    assert [address.addr_spec for address in got["From"].addresses] == [SENDER]
    assert got["To"] == "hana@guest.example"


@settings(max_examples=200, deadline=None)
@given(subject=st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=150))
def test_a_subject_is_read_as_it_was_meant(subject: str) -> None:
    got = parsed(composed(subject, "x", "y"))
    assert " ".join(str(got["Subject"]).split()) == header_text(subject)


def test_a_line_that_cannot_be_folded_is_cut() -> None:
    assert header_text("花" * 300) == "花" * 199 + "…"


@settings(max_examples=200, deadline=None)
@given(message_id=anything | st.text(alphabet="ab.@<>+", max_size=12), language=anything)
def test_our_own_headers_stand_whatever_came(message_id: str, language: str) -> None:
    got = parsed(composed_as(message_id, language))
    assert [key.lower() for key in got.keys()] == HEADERS  # noqa: SIM118
    assert str(got["Message-ID"]).count("@") == 1
