"""Messages sent, into a sink that swallows them and into a real mail server, beside a loop that
claims fifty and marks each."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg

from benchmarks.ground import Ground, arrivals, worker
from benchmarks.pair import Figure, Work, rates
from portal.edges.mail.adapter import SmtpMail
from portal.edges.mail.port import MailMessage
from portal.jobs import messages
from portal.jobs.house import House
from sandbox.mail import MailSink

MESSAGES = 300


class Swallowed:
    """Says yes at once."""

    def send(self, message: MailMessage) -> None:
        pass


def measure(ground: Ground) -> list[Figure]:
    with MailSink() as sink:
        smtp = SmtpMail(sink.url, sender="monban@localhost.localdomain")
        return [
            _compared(ground, "outbox messages, no-op sink", Swallowed()),
            _compared(ground, "outbox messages, SMTP sink", smtp),
        ]


def _compared(ground: Ground, name: str, mail: Any) -> Figure:
    def floor() -> Work:
        waiting(ground, MESSAGES)
        return lambda: _loop(ground.app_url, mail)

    return rates(ground, name, MESSAGES, lambda: sending(ground, mail), floor)


def sending(ground: Ground, mail: Any) -> Work:
    """One worker sends what waits, through this `mail`."""
    house = worker(ground, mail)
    waiting(ground, MESSAGES)
    return lambda: _dispatch(house)


def _dispatch(house: House) -> None:
    while messages.dispatch_due(house):
        pass


def waiting(ground: Ground, many: int) -> None:
    ground.owner.execute(
        """
        insert into outbox (facility_id, stay_id, dedupe_key, consumer_key, event_type, channel,
            recipient, locale, payload, priority)
        select %(house)s, stay, 'stay_created:' || stay, 'stay_created:' || stay, 'stay_created',
            'email', 'guest@example.com', 'ja', '{}', 2
        from unnest(%(stays)s) stay
        """,
        {"house": ground.house, "stays": arrivals(ground, many, paid=True)},
    )


_CLAIM = "select id, facility_id from claim_outbox(%(token)s, 50, interval '5 minutes')"
_SCOPE = "select set_config('app.facility_id', %(house)s, true)"
_BEGIN = """
    update outbox set sending_at = now() where id = %(id)s and claim_token = %(token)s
    returning recipient, payload
"""
_SENT = """
    with done as (
        update outbox set sent_at = now(), claimed_at = null, claim_token = null
        where id = %(id)s and claim_token = %(token)s and sent_at is null
        returning facility_id, consumer_key
    )
    insert into consumed_effects (facility_id, consumer_key) select * from done
    on conflict do nothing
"""


def _loop(url: str, mail: Any) -> None:
    """The same words for everybody: a letter of its own is what ours does beyond it."""
    token = uuid4()
    with psycopg.connect(url) as wire:
        while claimed := wire.execute(_CLAIM, {"token": token}).fetchall():
            wire.commit()
            for message_id, house in claimed:
                named = {"id": message_id, "token": token, "house": str(house)}
                with wire.transaction():
                    wire.execute(_SCOPE, named)
                    wire.execute(_BEGIN, named)
                mail.send(_WORDS)
                with wire.transaction():
                    wire.execute(_SCOPE, named)
                    wire.execute(_SENT, named)


_WORDS = MailMessage(
    to="guest@example.com",
    subject="予約を承りました",
    text="ご予約を承りました。",
    html=None,
    sender_name="計測",
    message_id="<bench@monban>",
    language="ja",
)
