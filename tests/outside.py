"""The far side of every verb and job: providers' stand-ins as processes, and a mail server.

Each is started once a session and emptied for each test. `House` holds the real adapters with the
real SDKs, as a worker has them, only less patient.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg
import pytest
from flask import Flask

from portal.config import Config
from portal.db import transaction
from portal.edges.billing.adapter import StripeBilling
from portal.edges.channels import Channels
from portal.edges.line.adapter import LineMessages
from portal.edges.locks.adapter import SeamLocks
from portal.edges.mail.adapter import SmtpMail
from portal.edges.payments.adapter import StripePayments
from portal.edges.payments.port import ProviderEvent
from portal.edges.providers import Providers
from portal.jobs import catch_up, drain, house
from portal.jobs.house import House
from sandbox.mail import MailSink
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn, client, running
from tests.conftest import psycopg_url

SEAM_KEY = "seam_apikey1_token"
STRIPE_KEY = "sk_test_monban"
LINE_TOKEN = "sandbox-line-token"
DOORS = (
    *(f"haneda-capsule-{code}" for code in ("a01", "a02", "a03", "b01")),
    *(f"umeda-sauna-{code}" for code in ("s01", "s02")),
)

T = TypeVar("T")


@pytest.fixture(scope="session")
def stripe_process() -> Iterator[StandIn]:
    with running() as stand_in:
        yield stand_in


@pytest.fixture(scope="session")
def seam_process() -> Iterator[Running]:
    doors = [argument for door in DOORS for argument in ("--device", f"{door}={door}")]
    with Running("sandbox.seam", *doors) as seam:
        yield seam


@pytest.fixture(scope="session")
def line_process() -> Iterator[Running]:
    with Running("sandbox.line") as line:
        yield line


@pytest.fixture(scope="session")
def mail_server() -> Iterator[MailSink]:
    with MailSink() as sink:
        yield sink


@pytest.fixture
def stripe(stripe_process: StandIn) -> StandIn:
    stripe_process.post("listening", open=True)
    stripe_process.post("reset")
    return stripe_process


@pytest.fixture
def seam(seam_process: Running) -> Running:
    seam_process.reset()
    seam_process.control("settings", {"settle_seconds": 0.05})
    return seam_process


@pytest.fixture
def line(line_process: Running) -> Running:
    line_process.reset()
    return line_process


@pytest.fixture
def mail(mail_server: MailSink) -> MailSink:
    mail_server.forget()
    return mail_server


@pytest.fixture
def worker(inside: Flask, configured: Config, request: pytest.FixtureRequest) -> House:
    """What a worker holds. A test names the stand-ins it needs (`stripe`, `seam`, `line`, `mail`);
    the others refuse every connection."""
    asked = set(request.fixturenames)

    def of(name: str) -> Any:
        return request.getfixturevalue(name) if name in asked else None

    stripe, seam, line, mail = of("stripe"), of("seam"), of("line"), of("mail")
    nowhere = "http://127.0.0.1:9"
    made = House(
        config=replace(configured, stripe_api_base=stripe.base if stripe else nowhere),
        providers=Providers(
            payments=StripePayments(
                STRIPE_KEY,
                api_base=stripe.base if stripe else nowhere,
                connect_seconds=1,
                read_seconds=2,
            ),
            billing=StripeBilling(
                STRIPE_KEY,
                api_base=stripe.base if stripe else nowhere,
                connect_seconds=1,
                read_seconds=2,
            ),
            locks=SeamLocks(
                SEAM_KEY, endpoint=seam.url if seam else nowhere, connect_seconds=1, read_seconds=1
            ),
        ),
        channels=Channels(
            mail=SmtpMail(
                mail.url if mail else "smtp://127.0.0.1:9",
                sender="monban@localhost.localdomain",
                connect_seconds=1,
                read_seconds=2,
            ),
            line=LineMessages(LINE_TOKEN, api_base=line.url, connect_seconds=1, read_seconds=1)
            if line
            else None,
        ),
        context=inside.app_context,
    )
    house.open_house(made)
    return made


@pytest.fixture(scope="module")
def place(
    settings: dict[str, str],
    stripe_process: StandIn,
    seam_process: Running,
    line_process: Running,
    mail_server: MailSink,
) -> dict[str, str]:
    """The environment of every process of the house."""
    return {
        **settings,
        "STRIPE_API_BASE": stripe_process.base,
        "SEAM_API_KEY": SEAM_KEY,
        "SEAM_ENDPOINT": seam_process.url,
        "LINE_CHANNEL_TOKEN": LINE_TOKEN,
        "LINE_API_BASE": line_process.url,
        "SMTP_URL": mail_server.url,
    }


def work(worker: House, *kinds: str) -> int:
    """Look for due work of each kind until there is none, as a worker does on a ring."""
    return sum(drain.drain(kind) for kind in kinds)  # type: ignore[arg-type]


# The database as its owner sees it --------------------------------------------------------------


class Owner:
    """Looks at every facility's rows, and moves due times: the tests' hand on the clock."""

    def __init__(self, url: str) -> None:
        self.wire = psycopg.connect(psycopg_url(url), autocommit=True)

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        return self.wire.execute(sql, params).fetchall()

    def row(self, sql: str, *params: Any) -> Any:
        return self.wire.execute(sql, params).fetchone()

    def one(self, sql: str, *params: Any) -> Any:
        found = self.row(sql, *params)
        return found[0] if found else None

    def run(self, sql: str, *params: Any) -> int:
        return self.wire.execute(sql, params).rowcount

    def make_due(self) -> None:
        """Whatever waits for a later attempt is due now."""
        self.run("update outbox set next_attempt_at = now(), not_before = now()")
        self.run("update lock_commands set next_attempt_at = now()")
        self.run("update refunds set next_attempt_at = now()")
        self.run("update webhook_events set next_attempt_at = now()")
        self.run("update payments set next_read_at = now() where next_read_at is not null")
        self.run("update entry_keys set next_poll_at = now()")
        self.run("update billing_legs set next_read_at = now() where settled_at is null")
        self.run(
            "update subscription_mirror set next_read_at = now() where next_read_at is not null"
        )
        self.run("update end_obligations set next_look_at = now()")


@pytest.fixture
def owner(app: Flask, database: dict[str, str]) -> Iterator[Owner]:
    hand = Owner(database["DATABASE_OWNER_URL"])
    yield hand
    hand.wire.close()


# The provider's events, without a network between -----------------------------------------------


def events(worker: House) -> list[ProviderEvent]:
    """Every event the stand-in has recorded, oldest first."""
    return list(worker.providers.payments.events_since(datetime(2020, 1, 1, tzinfo=UTC)))


def receive(*delivered: ProviderEvent) -> list[str]:
    """What the route does with each of them; returns what we then hold of it."""
    held: list[str] = []
    for one in delivered:
        with transaction(None) as tx:
            held.append(catch_up.put(tx, one))
    return held


def deliver(worker: House, *types: str) -> list[ProviderEvent]:
    """Deliver the stand-in's events (of these types) and apply them."""
    told = [one for one in events(worker) if not types or one.type in types]
    receive(*told)
    work(worker, "inbox")
    return told


def pay(stripe: StandIn, intent_id: str, card: str = "pm_card_visa") -> Any:
    """What the guest does on the page."""
    return client(stripe.base, STRIPE_KEY).payment_intents.confirm(
        intent_id, {"payment_method": card, "return_url": "https://example.com/back"}
    )


# Many at once, and how much of it ---------------------------------------------------------------


def at_once(app: Flask, *calls: Callable[[], T]) -> list[T | BaseException]:
    """Run every call in a thread of its own, released together. Faults are results too."""
    gate = threading.Barrier(len(calls))
    answers: list[T | BaseException] = [RuntimeError("never ran")] * len(calls)

    def run(place: int, call: Callable[[], T]) -> None:
        with app.app_context():
            gate.wait(10)
            try:
                answers[place] = call()
            except BaseException as fault:  # noqa: BLE001
                answers[place] = fault

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def codes_on_locks(seam: Running) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = seam.control("codes")
    return found


def settle_locks(
    worker: House, owner: Owner, look: Callable[[], Any], seconds: float = 5, *more: str
) -> Any:
    """Work and poll until `look` is true."""

    def step() -> Any:
        owner.run("update entry_keys set next_poll_at = now()")
        owner.run("update lock_commands set next_attempt_at = now()")
        work(worker, "locks", "keys", *more)
        return look()

    return eventually(step, seconds)


def recorded(owner: Owner, subject: Any) -> list[tuple[Any, ...]]:
    """(event, from, to) of every record of a row, in order."""
    return owner.rows(
        "select event, from_state, to_state from transitions where subject_id = %s order by id",
        subject,
    )
