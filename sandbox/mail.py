"""Mail in tests: a real SMTP server that records and misbehaves, and MailDev's inbox to read.

`sandbox.parts.maildev()` starts MailDev itself; `MailDevInbox(part.url)` reads what came.
"""

from __future__ import annotations

import asyncio
import email
import json
import ssl
import time
import urllib.request
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

STAGES = ("MAIL", "RCPT", "DATA")
DROPS = {
    "drop_at_connect": "the connection is cut instead of a greeting",
    "drop_at_mail": "cut when the sender is named",
    "stall_at_mail": "silent for `seconds` when the sender is named, then cut",
    "drop_at_rcpt": "cut when the receiver is named",
    "drop_at_data": "cut when DATA is said, before the text",
    "drop_in_text": "cut while the text comes in; it is not kept",
    "stall_in_text": "the text is read and not kept; silent for `seconds`, then cut",
    "keep_then_drop": "the message is kept, the connection is cut instead of the answer",
    "keep_then_stall": "the message is kept, the answer comes after `seconds`",
    "drop_at_quit": "answered well, cut at QUIT",
}


@dataclass(frozen=True)
class Received:
    """One complete DATA. `reply` is what we answered, empty where the connection was cut."""

    mail_from: str
    rcpt_to: tuple[str, ...]
    data: bytes
    reply: str

    @property
    def message(self) -> EmailMessage:
        parsed = email.message_from_bytes(self.data, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed


@dataclass
class Order:
    """What to do wrong, `times` more messages. `what` is one of DROPS or a stage's reply."""

    what: str
    stage: str
    reply: str
    times: int
    seconds: float
    only: str


class MailSink:
    """`with MailSink() as sink:` and then `sink.url`.

    `received` holds every complete DATA, refused ones too; `kept` those that a person would get.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, **options: Any) -> None:
        self.received: list[Received] = []
        self.kept: list[Received] = []
        self.orders: list[Order] = []
        self._tls, self._options, self._port = tls, options, 0
        self._controller: Controller | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Listen; after a stop, on the same port again."""
        self._controller = _OnLoopback(self, self._port, self._tls, self._options)
        self._controller.start()
        self._port = self._controller.port
        return self

    def stop(self) -> None:
        """From here on connections are refused."""
        if self._controller is not None:
            self._controller.stop(no_assert=True)
        self._controller = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def forget(self) -> None:
        self.received.clear()
        self.kept.clear()
        self.orders.clear()

    def lose(self, message_id: str) -> None:
        """A mail that was taken over is gone."""
        self.kept = [one for one in self.kept if one.message["Message-ID"] != message_id]

    def drop(self, what: str, *, times: int = 1, seconds: float = 5, only: str = "") -> None:
        """Break off as DROPS says, for the next `times` (receivers that contain `only`)."""
        assert what in DROPS, f"one of {sorted(DROPS)}"
        self.orders.append(Order(what, "", "", times, seconds, only))

    def answer(self, stage: str, reply: str, *, times: int = 1, only: str = "") -> None:
        """Answer MAIL, RCPT or DATA (after the text) with `reply`: "450 try later"."""
        assert stage in STAGES, f"one of {STAGES}"
        self.orders.append(Order("answer", stage, reply, times, 0, only))

    def slow(self, seconds: float, *, times: int = 1) -> None:
        """Take `seconds` before the answer to the text, and then say yes."""
        self.orders.append(Order("slow", "DATA", "", times, seconds, ""))

    def take(self, what: str, *, stage: str = "", to: str = "") -> Order | None:
        for order in self.orders:
            fits = order.what == what and order.stage == stage and order.only in to
            if fits and order.times > 0:
                order.times -= 1
                return order
        return None


class _OnLoopback(Controller):
    def __init__(
        self, sink: MailSink, port: int, tls: ssl.SSLContext | None, options: dict[str, Any]
    ) -> None:
        self.sink = sink
        super().__init__(
            _Handler(sink), hostname="127.0.0.1", port=port, ssl_context=tls, **options
        )

    def factory(self) -> SMTP:
        return _Server(self.sink, self.handler, **self.SMTP_kwargs)

    def _trigger_server(self) -> None:
        """The base class connects once to see that it works: to the port it really got."""
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


class _Server(SMTP):
    def __init__(self, sink: MailSink, handler: Any, **options: Any) -> None:
        self.sink = sink
        super().__init__(handler, **options)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.sink.take("drop_at_connect"):
            transport.abort()

    def cut(self) -> None:
        transport: Any = self.transport
        transport.abort()

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        if self.sink.take("drop_at_data"):
            self.cut()
        elif self.sink.take("drop_in_text"):
            await self.push("354 go on")
            await self._reader.read(1)
            self.cut()
        else:
            await super().smtp_DATA(arg)

    async def smtp_QUIT(self, arg: str) -> None:  # noqa: N802
        if self.sink.take("drop_at_quit"):
            self.cut()
        else:
            await super().smtp_QUIT(arg)


class _Handler:
    """Runs in the sink's own thread and loop."""

    def __init__(self, sink: MailSink) -> None:
        self.sink = sink

    async def handle_MAIL(  # noqa: N802
        self, server: _Server, _: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.sink.take("drop_at_mail"):
            server.cut()
        if order := self.sink.take("stall_at_mail"):
            await asyncio.sleep(order.seconds)
            server.cut()
        if order := self.sink.take("answer", stage="MAIL"):
            return order.reply
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: _Server, _: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.sink.take("drop_at_rcpt", to=address):
            server.cut()
        if order := self.sink.take("answer", stage="RCPT", to=address):
            return order.reply
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: _Server, _: Session, envelope: Envelope) -> str:  # noqa: N802
        to = " ".join(envelope.rcpt_tos)
        if order := self.sink.take("answer", stage="DATA", to=to):
            self._record(envelope, order.reply, kept=False)
            return order.reply
        if order := self.sink.take("stall_in_text", to=to):
            await asyncio.sleep(order.seconds)
            server.cut()
            return "451 nothing was kept"
        if order := self.sink.take("slow", stage="DATA"):
            await asyncio.sleep(order.seconds)
        if order := self.sink.take("keep_then_stall", to=to):
            self._record(envelope, "", kept=True)
            await asyncio.sleep(order.seconds)
            return "250 OK"
        if self.sink.take("keep_then_drop", to=to):
            self._record(envelope, "", kept=True)
            server.cut()
            return "250 OK"
        self._record(envelope, "250 OK", kept=True)
        return "250 OK"

    def _record(self, envelope: Envelope, reply: str, *, kept: bool) -> None:
        content = envelope.content
        data = content.encode() if isinstance(content, str) else bytes(content or b"")
        received = Received(envelope.mail_from or "", tuple(envelope.rcpt_tos), data, reply)
        self.sink.received.append(received)
        if kept:
            self.sink.kept.append(received)


class MailDevInbox:
    """MailDev's REST API (version 3: under /api) as the walkthrough needs it."""

    def __init__(self, url: str) -> None:
        self.api = url.rstrip("/") + "/api"
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def all(self) -> list[dict[str, Any]]:
        """Oldest first: subject, text, html, headers, from and to as lists of addresses."""
        with self._open(f"{self.api}/email", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def to(self, address: str) -> list[dict[str, Any]]:
        return [
            mail for mail in self.all() if address in [person["address"] for person in mail["to"]]
        ]

    def wait_for(self, address: str, subject: str = "", seconds: float = 10) -> dict[str, Any]:
        """The newest mail to this address whose subject contains `subject`."""
        end = time.monotonic() + seconds
        while True:
            found = [mail for mail in self.to(address) if subject in mail.get("subject", "")]
            if found:
                return found[-1]
            if time.monotonic() > end:
                raise TimeoutError(f"no mail to {address} about {subject!r} in {seconds} s")
            time.sleep(0.1)

    def remove(self, mail_id: str) -> None:
        """One mail is lost; `mail_id` is MailDev's own."""
        request = urllib.request.Request(f"{self.api}/email/{mail_id}", method="DELETE")
        self._open(request, timeout=10).close()

    def clear(self) -> None:
        request = urllib.request.Request(f"{self.api}/email/all", method="DELETE")
        self._open(request, timeout=10).close()
