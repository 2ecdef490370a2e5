"""SMTP, step by step, because what a failure means depends on the step."""

from __future__ import annotations

import contextlib
import re
import smtplib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.mail.compose import BadAddressError, compose, deliverable
from portal.edges.mail.port import MailMessage
from portal.fence import require_no_transaction

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
# The server does not know us. That is our configuration, not this message.
ABOUT_LOGIN = {530, 534, 535, 538}


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where SMTP_URL points: smtp://, smtps:// or smtp+starttls://user:pass@host:port"""

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)

    @classmethod
    def at(cls, url: str) -> SmtpServer:
        """Raises ValueError, without the URL in it."""
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise ValueError("SMTP_URL is smtp://, smtps:// or smtp+starttls:// with a host")
        return cls(
            parts.scheme,
            parts.hostname,
            parts.port or PORTS[parts.scheme],
            unquote(parts.username or ""),
            unquote(parts.password or ""),
        )


class SmtpMail:
    """Implements `Mail`. One connection per message; safe to share between threads.

    `sender` is our own address, for the envelope and the From header.
    """

    def __init__(
        self,
        url: str,
        *,
        sender: str,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._server = SmtpServer.at(url)
        self._sender = deliverable(sender)
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._tls = tls or ssl.create_default_context()

    def send(self, message: MailMessage) -> None:
        require_no_transaction("mail.send")
        try:
            to = deliverable(message.to)
        except BadAddressError as error:
            raise Rejected(f"bad address: {error}", code="bad_address") from None
        body = compose(message, self._sender, datetime.now(UTC))
        if problem := _Attempt(self, to, body).problem():
            raise problem

    def connect(self) -> smtplib.SMTP:
        """A session that is ready for MAIL. What fails here has sent nothing."""
        server, hello = self._server, self._sender.rpartition("@")[2]
        session: smtplib.SMTP
        if server.scheme == "smtps":
            session = smtplib.SMTP_SSL(
                server.host,
                server.port,
                local_hostname=hello,
                timeout=self._connect_seconds,
                context=self._tls,
            )
        else:
            session = smtplib.SMTP(
                server.host, server.port, local_hostname=hello, timeout=self._connect_seconds
            )
        with _closed_on_error(session):
            self._open(session)
        return session

    def _open(self, session: smtplib.SMTP) -> None:
        if session.sock is not None:
            session.sock.settimeout(self._read_seconds)
        session.ehlo_or_helo_if_needed()
        if self._server.scheme == "smtp+starttls":
            session.starttls(context=self._tls)  # raises where it is not offered
            session.ehlo()
        if self._server.user:
            session.login(self._server.user, self._server.password)


class _Attempt:
    """One message, once. Remembers whether the text began to leave."""

    def __init__(self, mail: SmtpMail, to: str, body: bytes) -> None:
        self.mail, self.to, self.body = mail, to, body
        self.text_left = False

    def problem(self) -> EdgeError | None:
        """Send, and give back what went wrong, so that it is raised without the library's error:
        that one quotes the server, and servers quote addresses."""
        try:
            session = self.mail.connect()
        except smtplib.SMTPResponseException as refusal:
            return _not_now(refusal.smtp_code)
        except (OSError, UnicodeError, ValueError) as error:  # SMTPException is an OSError
            return Unreachable("no mail session", code=type(error).__name__)
        try:
            return self._hand_over(session)
        except (OSError, UnicodeError, ValueError) as error:
            return self._broken(error)
        finally:
            session.close()

    def _hand_over(self, session: smtplib.SMTP) -> EdgeError | None:
        size = [f"size={len(self.body)}"] if session.has_extn("size") else []
        steps: tuple[tuple[Callable[[], tuple[int, bytes]], set[int]], ...] = (
            (lambda: session.mail(self.mail._sender, size), {250}),
            (lambda: session.rcpt(self.to), {250, 251, 252}),
            (lambda: session.docmd("DATA"), {354}),
            (lambda: self._text(session), {250}),
        )
        for step, wanted in steps:
            code, _ = step()
            if code not in wanted:
                return _refused(code)
        _say_goodbye(session)
        return None

    def _text(self, session: smtplib.SMTP) -> tuple[int, bytes]:
        self.text_left = True
        # RFC 5321 4.5.2: a line that begins with a dot gets another one.
        session.send(re.sub(rb"(?m)^\.", b"..", self.body) + b".\r\n")
        return session.getreply()

    def _broken(self, error: Exception) -> EdgeError:
        kind = type(error).__name__
        if self.text_left:
            return Unknown("the connection broke after the text was sent", code=kind)
        return Unreachable("the connection broke before the text was sent", code=kind)


@contextlib.contextmanager
def _closed_on_error(session: smtplib.SMTP) -> Iterator[None]:
    try:
        yield
    except BaseException:
        session.close()
        raise


def _refused(code: int) -> EdgeError:
    """The server said no to this message, for now (4xx) or for good (5xx)."""
    if 500 <= code < 600 and code not in ABOUT_LOGIN:
        return Rejected(f"the mail server refused with {code}", code=str(code))
    return _not_now(code)


def _not_now(code: int) -> EdgeError:
    return Unreachable(f"the mail server answered {code}", code=str(code))


def _say_goodbye(session: smtplib.SMTP) -> None:
    """The message is delivered; whatever happens to the QUIT changes nothing about it."""
    with contextlib.suppress(OSError):
        if session.sock is not None:
            session.sock.settimeout(1)
        session.quit()
