"""The adapter against a real SMTP server on loopback that misbehaves step by step."""

from __future__ import annotations

import datetime as dt
import ssl
import time
import traceback
from collections.abc import Iterator
from email.headerregistry import Address
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.mail import Mail, MailMessage
from portal.edges.mail.adapter import SmtpMail, SmtpServer
from portal.fence import TransactionOpenError, transaction_began, transaction_ended
from sandbox.mail import MailSink
from sandbox.seam.running import eventually

OURS = "no-reply@monban.example"
GUEST = "hana@guest.example"


@pytest.fixture
def sink() -> Iterator[MailSink]:
    with MailSink() as sink:
        yield sink


@pytest.fixture
def mail(sink: MailSink) -> Mail:
    return adapter(sink)


def adapter(sink: MailSink, scheme: str = "smtp", login: str = "", **options: Any) -> SmtpMail:
    url = f"{scheme}://{login}127.0.0.1:{sink.port}"
    return SmtpMail(url, sender=OURS, **options)


def message(**changes: Any) -> MailMessage:
    wanted: dict[str, Any] = {
        "to": GUEST,
        "subject": "鍵の準備ができました",
        "text": "花さま\n\n扉の番号は 0482 です。\n.\n..点で始まる行\n",
        "html": None,
        "sender_name": "紅葉の宿",
        "message_id": "row-1@monban.example",
        "language": "ja",
    }
    return MailMessage(**{**wanted, **changes})


def test_a_message_arrives_as_it_was_written(sink: MailSink, mail: Mail) -> None:
    mail.send(message())
    (got,) = sink.kept
    assert (got.mail_from, got.rcpt_to) == (OURS, (GUEST,))
    assert got.message["Subject"] == "鍵の準備ができました"
    assert got.message["From"].addresses == (Address("紅葉の宿", addr_spec=OURS),)
    assert got.message["To"] == GUEST
    assert got.message["Message-ID"] == "<row-1@monban.example>"
    assert got.message["Content-Language"] == "ja"
    assert got.message["Auto-Submitted"] == "auto-generated"
    assert got.message["Date"].datetime.tzinfo is not None
    assert got.message.get_content().replace("\r\n", "\n") == message().text
    assert got.data.isascii()
    assert b"\n" not in got.data.replace(b"\r\n", b"")


def test_both_forms_of_the_text(sink: MailSink, mail: Mail) -> None:
    mail.send(message(html="<p lang='ja'>番号は <b>0482</b></p>"))
    got = sink.kept[0].message
    assert got.get_content_type() == "multipart/alternative"
    assert got["Content-Language"] == "ja"
    plain, html = got.get_body(("plain",)), got.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert "0482" in plain.get_content()
    assert html.get_content().startswith("<p lang='ja'>番号は")


EVIL = [
    "Hana\r\nBcc: x@evil.example",
    "Hana\nBcc: x@evil.example",
    "Hana\rBcc: x@evil.example",
    "Hana\r\n\r\n<b>body</b>",
    "Hana\n",
    "Hana\x00\x0b\x0c\x1c\x1d\x85\u2028\u2029Bcc: x@evil.example",
    "=?utf-8?q?Hana=0D=0ABcc:_x=40evil.example?=",
    "=?utf-8?b?SGFuYQ0KQmNjOiB4QGV2aWwuZXhhbXBsZQ==?=",
    '"Hana" <x@evil.example>, ',
    "花\r\n" * 60 + "Bcc: x@evil.example",
    "a" * 2000,
    "花" * 2000,
    "\ud800 half",
    "(comment) \\",
]


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("field", ["subject", "sender_name", "message_id", "language"])
def test_f8_header_injection(sink: MailSink, mail: Mail, field: str, evil: str) -> None:
    mail.send(message(**{field: evil}))
    (got,) = sink.kept
    assert got.rcpt_to == (GUEST,)
    names = [name.lower() for name in got.message.keys()]  # noqa: SIM118
    assert sorted(names) == sorted(
        [
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
            "x-peer",
            "x-mailfrom",
            "x-rcptto",
        ][: len(names)]
    )
    assert "bcc" not in names
    assert [a.addr_spec for a in got.message["From"].addresses] == [OURS]
    assert got.message["To"] == GUEST
    assert got.message.get_content().replace("\r\n", "\n") == message().text
    assert max(map(len, got.data.split(b"\r\n"))) <= 998


@pytest.mark.parametrize("field", ["subject", "sender_name"])
def test_f8_direction_overrides_are_taken_out(sink: MailSink, mail: Mail, field: str) -> None:
    marks = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
    mail.send(message(**{field: f"Ha{marks}na"}))
    got = sink.kept[0].message
    shown = str(got["Subject"]) if field == "subject" else got["From"].addresses[0].display_name
    assert shown == "Ha na"


def test_f8_a_literal_encoded_word_is_shown_as_text(sink: MailSink, mail: Mail) -> None:
    mail.send(message(subject="=?utf-8?q?Free?= key"))
    assert sink.kept[0].message["Subject"] == "= ?utf-8?q?Free?= key"


@pytest.mark.parametrize(
    "to",
    [
        "",
        "hana",
        "hana@",
        "@guest.example",
        "hana@guest.example, x@evil.example",
        "hana@guest.example x@evil.example",
        "hana@guest.example\r\nRCPT TO:<x@evil.example>",
        "hana@guest.example\n",
        "<hana@guest.example>",
        "Hana <hana@guest.example>",
        "hana@guest@example",
        "花@guest.example",
        "ha\u202ena@guest.example",
        "hana@" + "a" * 70 + ".example",
        "=?utf-8?q?x?=@guest.example",
    ],
)
def test_f8_only_one_bare_address_is_sent_to(sink: MailSink, mail: Mail, to: str) -> None:
    with pytest.raises(Rejected) as refused:
        mail.send(message(to=to))
    assert refused.value.code == "bad_address"
    assert sink.received == []


def test_a_domain_in_japanese_is_written_in_ascii(sink: MailSink, mail: Mail) -> None:
    mail.send(message(to="hana@日本.example"))
    assert sink.kept[0].rcpt_to == ("hana@xn--wgv71a.example",)


@pytest.mark.parametrize(
    "what", ["drop_at_connect", "drop_at_mail", "drop_at_rcpt", "drop_at_data"]
)
def test_cut_before_the_text_is_unreachable(sink: MailSink, mail: Mail, what: str) -> None:
    sink.drop(what)
    with pytest.raises(Unreachable):
        mail.send(message())
    assert sink.received == []
    mail.send(message())
    assert len(sink.kept) == 1


NOT_KEPT = ("drop_in_text", "stall_in_text")


@pytest.mark.parametrize("what", ["keep_then_drop", "keep_then_stall", *NOT_KEPT])
def test_f2_cut_after_the_text_began_is_unknown(sink: MailSink, what: str) -> None:
    sink.drop(what)
    with pytest.raises(Unknown):
        adapter(sink, read_seconds=1).send(message(text="long\n" * 50_000))
    # The server may be slower to keep it than we are to give up.
    kept = what not in NOT_KEPT
    assert eventually(lambda: len(sink.kept) == kept, 30)


def test_silence_before_the_text_is_unreachable(sink: MailSink) -> None:
    sink.drop("stall_at_mail")
    with pytest.raises(Unreachable):
        adapter(sink, read_seconds=1).send(message())
    assert sink.received == []


def test_a_lost_goodbye_changes_nothing(sink: MailSink, mail: Mail) -> None:
    sink.drop("drop_at_quit")
    mail.send(message())
    assert len(sink.kept) == 1


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("code", ["421", "450", "451", "452"])
def test_f10_a_refusal_for_now(sink: MailSink, mail: Mail, stage: str, code: str) -> None:
    sink.answer(stage, f"{code} try later")
    with pytest.raises(Unreachable) as later:
        mail.send(message())
    assert later.value.code == code
    assert sink.kept == []


@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("code", ["550", "552", "554"])
def test_f10_a_refusal_for_good(sink: MailSink, mail: Mail, stage: str, code: str) -> None:
    sink.answer(stage, f"{code} no")
    with pytest.raises(Rejected) as refused:
        mail.send(message())
    assert refused.value.code == code
    assert sink.kept == []


def test_f10_one_persons_refusal_is_not_anothers(sink: MailSink, mail: Mail) -> None:
    sink.answer("RCPT", "450 later", only="staff@")
    mail.send(message())
    with pytest.raises(Unreachable):
        mail.send(message(to="staff@monban.example"))
    assert [got.rcpt_to for got in sink.kept] == [(GUEST,)]


def test_a_closed_port_is_unreachable(sink: MailSink, mail: Mail) -> None:
    sink.stop()
    with pytest.raises(Unreachable):
        mail.send(message())
    sink.start()
    mail.send(message())
    assert len(sink.kept) == 1


def test_a_host_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        SmtpMail("smtp://no-such-host.invalid", sender=OURS).send(message())


def test_nothing_blocks_longer_than_its_time(sink: MailSink) -> None:
    sink.slow(8)
    began = time.monotonic()
    with pytest.raises(Unknown):
        adapter(sink, read_seconds=1).send(message())
    assert time.monotonic() - began < 3


def test_no_mail_leaves_while_a_transaction_is_open(sink: MailSink, mail: Mail) -> None:
    transaction_began()
    try:
        with pytest.raises(TransactionOpenError):
            mail.send(message())
    finally:
        transaction_ended()
    assert sink.received == []


# Logging in and TLS


def known(_: object, __: object, ___: object, ____: str, given: Any) -> AuthResult:
    right = isinstance(given, LoginPassword) and given.password == b"p@ss:w/rd"
    return AuthResult(success=right, handled=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def server_tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def trusting(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate[0]))


def test_starttls_and_login(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    with MailSink(tls_context=server_tls, authenticator=known, auth_required=True) as sink:
        login = "monban:p%40ss%3Aw%2Frd@"
        adapter(sink, "smtp+starttls", login, tls=trusting).send(message())
        assert len(sink.kept) == 1


def test_a_wrong_password_is_not_the_messages_fault(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    with MailSink(tls_context=server_tls, authenticator=known) as sink:
        with pytest.raises(Unreachable) as refused:
            adapter(sink, "smtp+starttls", "monban:secret-word@", tls=trusting).send(message())
        assert refused.value.code == "535"
        assert "secret-word" not in "".join(traceback.format_exception(refused.value)[-1:])
        assert refused.value.__context__ is None


def test_no_login_where_one_is_required(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    with MailSink(tls_context=server_tls, authenticator=known, auth_required=True) as sink:
        with pytest.raises(Unreachable) as refused:
            adapter(sink, "smtp+starttls", tls=trusting).send(message())
        assert refused.value.code == "530"


def test_starttls_never_falls_back_to_clear_text(sink: MailSink) -> None:
    with pytest.raises(Unreachable):
        adapter(sink, "smtp+starttls").send(message())
    assert sink.received == []


def test_tls_from_the_first_byte(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    with MailSink(tls=server_tls) as sink:
        adapter(sink, "smtps", tls=trusting).send(message())
        assert len(sink.kept) == 1
        with pytest.raises(Unreachable):  # a certificate that nobody vouches for
            adapter(sink, "smtps").send(message())
        assert len(sink.received) == 1


@pytest.mark.parametrize(
    ("url", "scheme", "port", "user", "password"),
    [
        ("smtp://mail.example", "smtp", 25, "", ""),
        ("smtps://mail.example", "smtps", 465, "", ""),
        ("smtp+starttls://u:p@mail.example", "smtp+starttls", 587, "u", "p"),
        ("smtp://u%40x:p%3A%2F@mail.example:2525", "smtp", 2525, "u@x", "p:/"),
    ],
)
def test_forms_of_the_url(url: str, scheme: str, port: int, user: str, password: str) -> None:
    server = SmtpServer.at(url)
    assert server == SmtpServer(scheme, "mail.example", port, user, password)
    assert not password or password not in repr(server).split("user")[1]


@pytest.mark.parametrize("url", ["", "mail.example", "http://u:word@mail.example", "smtp://"])
def test_a_wrong_url_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ValueError) as wrong:
        SmtpMail(url, sender=OURS)
    assert "word" not in str(wrong.value)


def test_every_error_is_one_of_three(sink: MailSink, mail: Mail) -> None:
    sink.answer("DATA", "250-not\r\n999 a reply")
    with pytest.raises(EdgeError):
        mail.send(message())
