"""The work was done and its answer is lost: nothing is doubled, and asking again settles it.

At PostgreSQL a proxy carries the COMMIT and cuts before the answer; at the providers the stand-ins
do what they were asked and drop the reply. Whoever was asked then asks again as in life: the person
presses the same form, the provider delivers the event once more, the worker looks at its rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit
from uuid import UUID, uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import OperationalError

from portal import clock, config
from portal.db import Tx, transaction
from portal.edges.payments.port import ProviderEvent
from portal.jobs import drain, house
from portal.jobs.house import House
from portal.outcome import Applied, Code, Outcome, Refused
from portal.verbs import bookings, cash, payments, refunds, stays
from portal.verbs.bookings import NewStay
from portal.verbs.guests import NewGuest
from portal.web import factory
from sandbox.mail import MailSink
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn
from tests.endurance.ground import Ground, records_equal_transitions
from tests.endurance.proxy import Proxy
from tests.figures import Figure
from tests.outside import codes_on_locks, deliver, settle_locks
from tests.outside import events as told_events
from tests.web.test_hooks_stripe import header

pytestmark = pytest.mark.proof

PRICE = 6000
LOTS = 1_000_000
SHARE = 100
"""Of so many, `make test` runs one."""


@pytest.fixture(scope="module")
def proxy(database: dict[str, str], folder: Path) -> Iterator[Proxy]:
    upstream = parse_qs(urlsplit(database["DATABASE_URL"]).query)["host"][0]
    with Proxy(folder / "lossy", Path(upstream)) as made:
        yield made


@pytest.fixture(scope="module")
def through(proxy: Proxy, settings: dict[str, str]) -> Flask:
    """The portal, to whom PostgreSQL is behind the proxy."""
    parts = urlsplit(settings["DATABASE_URL"])
    url = urlunsplit(parts._replace(query=urlencode({"host": str(proxy.folder)})))
    made = factory.create_app(config.from_environment({**settings, "DATABASE_URL": url}))
    made.config["TESTING"] = True
    return made


@dataclass
class Line:
    """Everything of a portal whose answers can be lost."""

    ground: Ground
    proxy: Proxy
    app: Flask
    house: House
    stripe: StandIn
    seam: Running
    mail: MailSink
    line: Running

    def __post_init__(self) -> None:
        self.owner, self.cast = self.ground.owner, self.ground.cast
        self.actor = self.cast.sato.actor
        self.where = self.cast.tokyo.id
        self.doubtful = 0

    def lost_at(self, part: str, call: Callable[[], Any]) -> None:
        """The commit of `part` happens; whoever waits for it hears that the line is cut. A worker
        may bear that itself, and go on."""
        with self.proxy.losing(part):
            try:
                call()
            except OperationalError:
                self.doubtful += 1

    def press(self, verb: Callable[[Tx], Outcome]) -> Outcome:
        with self.app.app_context(), transaction(self.where) as tx:
            return verb(tx)

    def deliver(self, event: ProviderEvent) -> tuple[int, str]:
        """At the portal's own door, as the provider does."""
        said = self.app.test_client().post(
            "/webhooks/stripe", data=event.raw, headers={"Stripe-Signature": header(event.raw)}
        )
        return said.status_code, said.get_data(as_text=True)

    def work(self, kind: Any) -> int:
        return drain.drain(kind)

    def later(self) -> None:
        """Every lease and every pause is over."""
        for table in ("webhook_events", "outbox", "lock_commands", "refunds"):
            self.owner.run(
                f"update {table} set claimed_at = claimed_at - interval '1 hour'"
                " where claimed_at is not null"
            )
        self.owner.make_due()

    def count(self, sql: str) -> int:
        return int(self.owner.one(f"select count(*) from {sql}"))

    def paid(self) -> Any:
        """A stay paid at the provider; its event."""
        self.ground.paid_there(self.stripe, price=LOTS)
        told = told_events(self.ground.worker)
        return next(one for one in told if one.type == "payment_intent.succeeded")

    def admitted(self) -> UUID:
        stay = self.cast.book(price=0).id
        assert isinstance(self.press(lambda tx: stays.admit(tx, self.actor, stay, 1)), Applied)
        return stay

    def commands(self) -> list[tuple[Any, ...]]:
        return self.owner.rows(
            "select kind, done_at is not null, dead_at is not null from lock_commands order by no"
        )


Once = Callable[[], None]

# PostgreSQL's answer ------------------------------------------------------------------------------


def booking(line: Line) -> Once:
    def once() -> None:
        now = clock.now()
        form = NewStay(
            form_key=uuid4(),
            guest=NewGuest(**line.cast.hanako),
            space_id=line.cast.tokyo.spaces["A01"],
            plan_id=None,
            starts_at=now,
            ends_at=now + timedelta(hours=19),
            price=PRICE,
        )
        press = lambda tx: bookings.create(tx, line.actor, form)  # noqa: E731
        line.lost_at("insert into stays", lambda: line.press(press))
        assert line.press(press).code == Code.STAY_ALREADY_CREATED
        assert line.count("stays") == line.count("ledger_lines") == line.count("outbox") == 1

    return once


def cash_taken(line: Line) -> Once:
    stay = line.cast.book(price=PRICE).id

    def once() -> None:
        form = uuid4()
        press = lambda tx: cash.take(tx, line.actor, stay, PRICE // 3, form)  # noqa: E731
        line.lost_at("insert into ledger_lines", lambda: line.press(press))
        assert line.press(press).code == Code.CASH_ALREADY_BOOKED
        assert line.count("ledger_lines where kind = 'cash'") == 1

    return once


def event_received(line: Line) -> Once:
    """At the portal's own door: not answered well, so the provider delivers again."""
    event = line.paid()
    post = partial(line.deliver, event)

    def once() -> None:
        with line.proxy.losing("insert into webhook_events"):
            assert post()[0] == 503
        line.doubtful += 1
        assert post() == (200, "received")
        assert line.count("webhook_events") == 1

    return once


def event_applied(line: Line) -> Once:
    event = line.paid()
    post = partial(line.deliver, event)

    def once() -> None:
        assert post() == (200, "received")
        line.lost_at("insert into ledger_lines", lambda: line.work("inbox"))
        line.later()
        line.work("inbox")
        assert post() == (200, "duplicate")
        assert line.count("ledger_lines where kind = 'payment'") == 1
        assert line.count("outbox where event_type = 'payment_received'") == 1
        assert line.count("payments where state = 'succeeded'") == 1

    return once


def refund_asked(line: Line) -> Once:
    return _refund(line, "insert into refunds", at_provider=0)


def refund_settled(line: Line) -> Once:
    return _refund(line, "insert into ledger_lines", at_provider=1)


def _refund(line: Line, part: str, at_provider: int) -> Once:
    line.paid()
    deliver(line.ground.worker)
    payment = line.owner.one("select id from payments")
    desk = line.house.desk(line.where)

    def once() -> None:
        form, before = uuid4(), line.stripe.creates("refund")

        def press() -> Outcome:
            with line.app.app_context():
                return refunds.ask(desk, line.actor, payment, 10, form)

        line.lost_at(part, press)
        assert line.stripe.creates("refund") == before + at_provider
        assert press().code == Code.REFUND_ALREADY_ASKED
        line.later()
        line.work("refunds")
        assert line.stripe.creates("refund") == before + 1
        assert line.owner.rows("select state, amount from refunds") == [("succeeded", 10)]
        assert line.count("ledger_lines where kind = 'refund'") == 1

    return once


def lock_command_settled(line: Line) -> Once:
    line.admitted()

    def once() -> None:
        line.seam.reset()
        line.lost_at("update lock_commands set done_at", lambda: line.work("locks"))
        line.later()
        line.work("locks")
        assert line.commands() == [("set", True, False)]
        assert len(codes_on_locks(line.seam)) == 1
        assert line.seam.counts()["POST /access_codes/create"] == 1

    return once


def message_begun(line: Line) -> Once:
    return _message(line, "set sending_at = now()")


def message_sent(line: Line) -> Once:
    return _message(line, "insert into consumed_effects")


def _message(line: Line, part: str) -> Once:
    line.cast.book(price=0)

    def once() -> None:
        line.mail.forget()
        line.lost_at(part, lambda: line.work("outbox"))
        line.later()
        line.work("outbox")
        assert len(line.mail.received) == 1
        assert line.count("outbox where sent_at is not null") == line.count("outbox") == 1
        assert line.count("consumed_effects") == 1

    return once


# The providers' answers ---------------------------------------------------------------------------


def provider_payment_opened(line: Line) -> Once:
    stay = line.cast.book(price=PRICE).id
    desk = line.house.desk(line.where)

    def once() -> None:
        line.stripe.post("reset")
        line.stripe.fault("do_then_drop", "^/v1/payment_intents$")
        with line.app.app_context():
            said = payments.open_payment(desk, line.actor, stay, "balance")
            assert said == Refused(Code.PAYMENT_UNKNOWN)
            line.doubtful += 1
            again = payments.open_payment(desk, line.actor, stay, "balance")
        assert again.code == Code.PAYMENT_ATTEMPT_OPEN
        assert line.stripe.creates("payment_intent") == line.count("payments") == 1

    return once


def provider_refund(line: Line) -> Once:
    line.paid()
    deliver(line.ground.worker)
    payment = line.owner.one("select id from payments")
    desk = line.house.desk(line.where)

    def once() -> None:
        before = line.stripe.creates("refund")
        line.stripe.fault("do_then_drop", "^/v1/refunds$")
        with line.app.app_context():
            said = refunds.ask(desk, line.actor, payment, 10, uuid4())
        assert said == Refused(Code.REFUND_UNKNOWN)
        line.doubtful += 1
        line.later()
        line.work("refunds")
        assert line.stripe.creates("refund") == before + 1
        assert line.owner.rows("select state from refunds") == [("succeeded",)]
        assert line.count("ledger_lines where kind = 'refund'") == 1

    return once


def provider_code_set(line: Line) -> Once:
    line.admitted()

    def once() -> None:
        line.seam.reset()
        line.seam.fault("do_then_drop", "/access_codes/create")
        line.work("locks")
        assert line.count("lock_commands where unknown_at is not null") == 1
        line.doubtful += 1
        line.later()
        line.work("locks")
        assert line.commands() == [("set", True, False)]
        assert len(codes_on_locks(line.seam)) == 1
        assert line.seam.counts()["POST /access_codes/create"] == 1

    return once


def provider_code_removed(line: Line) -> Once:
    line.seam.control("settings", {"settle_seconds": 0.05})
    stay = line.admitted()
    gone = lambda: {row[0] for row in line.owner.rows("select state from entry_keys")}  # noqa: E731

    def once() -> None:
        line.seam.reset()
        line.seam.control("settings", {"settle_seconds": 0.02})
        assert settle_locks(line.house, line.owner, lambda: gone() == {"issued"}, 30)
        line.press(lambda tx: stays.depart(tx, line.actor, stay, 2))
        line.seam.fault("do_then_drop", "/access_codes/delete")
        line.work("locks")
        line.doubtful += 1
        line.later()
        assert settle_locks(line.house, line.owner, lambda: gone() == {"revoked"}, 30)
        assert eventually(lambda: codes_on_locks(line.seam) == [], 30)
        line.later()
        line.work("locks")
        assert all(done and not dead for _, done, dead in line.commands())

    return once


def provider_push(line: Line) -> Once:
    line.cast.book(guest={**line.cast.hanako, "line_user_id": "U" + "1" * 32}, price=0)

    def once() -> None:
        line.line.reset()
        line.line.fault("do_then_drop", "/message/push")
        line.work("outbox")
        line.doubtful += 1
        line.later()
        line.work("outbox")
        assert len(line.line.control("pushes")) == 1
        assert line.count("outbox where sent_at is not null") == line.count("outbox") == 1

    return once


KINDS: tuple[tuple[Callable[[Line], Once], int], ...] = (
    (booking, 250),
    (cash_taken, 250),
    (event_received, 250),
    (event_applied, 250),
    (refund_asked, 75),
    (refund_settled, 75),
    (lock_command_settled, 100),
    (message_begun, 100),
    (message_sent, 150),
    (provider_payment_opened, 100),
    (provider_refund, 150),
    (provider_code_set, 100),
    (provider_code_removed, 50),
    (provider_push, 100),
)
assert sum(times for _, times in KINDS) == 2000


@pytest.fixture
def lossy(
    ground: Ground,
    proxy: Proxy,
    through: Flask,
    worker: House,
    stripe: StandIn,
    seam: Running,
    mail: MailSink,
    line: Running,
) -> Line:
    behind = replace(worker, context=through.app_context)
    house.open_house(behind)
    return Line(ground, proxy, through, behind, stripe, seam, mail, line)


@pytest.mark.parametrize(("kind", "times"), KINDS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_lost_reply_doubles_nothing(
    kind: Callable[[Line], Once], times: int, lossy: Line, whole: bool, figure: Figure
) -> None:
    rounds = times if whole else -(-times // SHARE)
    once = kind(lossy)
    lossy.ground.snapshots.take()
    for _ in range(rounds):
        lossy.ground.snapshots.restore()
        once()
        records_equal_transitions(lossy.owner)
    figure("lost replies", lost=rounds, doubled=0, asked_again=lossy.doubtful)
