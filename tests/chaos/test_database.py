"""PostgreSQL goes away in the middle: at every statement, at every COMMIT, and as a whole.

Nobody sees a stack trace, nothing is half done, the same form or delivery sent again is carried
out once, and the pool heals by itself.
"""

import json
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from portal.jobs import drain
from portal.jobs.house import House
from portal.outcome import Applied
from portal.verbs import payments
from sandbox import parts
from sandbox.process import Part
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.chaos.wires import PATIENCE, Moment, Proxy, counted, cut, through
from tests.conftest import DATABASE, migrate
from tests.outside import Owner, events, pay, receive, recorded
from tests.web.audit import form_data
from tests.web.test_hooks_stripe import header

pytestmark = pytest.mark.proof

WORDS = "ただいまご利用いただけません"


def socket_of(server: Part) -> str:
    return parse_qs(urlsplit(server.url).query)["host"][0]


@pytest.fixture
def proxy(server: Part) -> Iterator[Proxy]:
    made = Proxy(socket_of(server))
    yield made
    made.close()


# A check-in, from the page -----------------------------------------------------------------------


class Counter:
    """A house of its own for each try, with one guest who may be checked in."""

    def __init__(self, app: Flask, owner: Owner, number: int) -> None:
        self.owner = owner
        cast = Cast(app)
        house = cast.open_house(f"house-{number}", "旅館", "Inn", spaces=("A01",))
        sato = cast.hire(f"sato-{number}@monban.example", "佐藤 健", [(house, "front_desk")])
        self.stay = cast.book(house, price=0, space="A01", actor=sato.actor)
        self.client = cast.signed_in(sato, house)
        self.action = f"/staff/stays/{self.stay.id}/check-in"
        shown = self.client.get(f"/staff/stays/{self.stay.id}")
        self.form = form_data(_parsed(shown, self.client), self.action)

    def check_in(self) -> TestResponse:
        return self.client.post(self.action, data=self.form)

    def done(self) -> bool:
        """All of it or nothing."""
        state = self.owner.one("select state from stays where id = %s", self.stay.id)
        traces = self.owner.row(
            """
            select (select count(*) from transitions where subject_id = %(s)s
                    and event = 'admitted'),
                   (select count(*) from entry_keys where stay_id = %(s)s),
                   (select count(*) from lock_commands c join entry_keys k on k.id = c.key_id
                    where k.stay_id = %(s)s)
            """.replace("%(s)s", f"'{self.stay.id}'")
        )
        assert traces == ((1, 1, 1) if state == "admitted" else (0, 0, 0))
        return bool(state == "admitted")


def _parsed(shown: TestResponse, client: FlaskClient) -> Any:
    from tests.web.audit import audit

    return audit(shown, client)


def says_come_again(answer: TestResponse) -> None:
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    said = answer.get_data(as_text=True)
    assert WORDS in said
    assert "Traceback" not in said
    assert "psycopg" not in said


def then_it_is_carried_out_once(counter: Counter, *, done: bool) -> None:
    assert counter.done() is done
    again = counter.check_in()
    assert again.status_code == 303
    told = counter.client.get(again.location).get_data(as_text=True)
    assert ("STAY_ALREADY_ADMITTED" if done else "STAY_ADMITTED") in told
    assert counter.done()


def test_a_check_in_is_cut_at_every_statement(app: Flask, owner: Owner) -> None:
    many = counted(Counter(app, owner, 0).check_in, app, owner)
    assert many > 5
    for number in range(many):
        counter = Counter(app, owner, number + 1)
        with cut(app, owner, number):
            says_come_again(counter.check_in())
        then_it_is_carried_out_once(counter, done=counter.done())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_check_in_is_cut_at_every_commit(
    app: Flask, owner: Owner, proxy: Proxy, when: Moment
) -> None:
    with through(proxy.host, app):
        proxy.cut(None)
        assert Counter(app, owner, 0).check_in().status_code == 303
        seen = 0
        for number in range(20):
            counter = Counter(app, owner, number + 1)
            proxy.cut(number, when)
            answer = counter.check_in()
            if answer.status_code == 303:
                break
            seen += 1
            says_come_again(answer)
            then_it_is_carried_out_once(counter, done=counter.done())
        assert seen >= 1


# A payment's event -------------------------------------------------------------------------------


class Paid:
    """A guest has paid; the provider's event of it waits in the inbox."""

    def __init__(self, cast: Cast, worker: House, owner: Owner, stripe: StandIn) -> None:
        self.worker, self.owner, self.stripe = worker, owner, stripe
        self.cast = cast

    def next(self, number: int) -> UUID:
        """The payment of another stay, its event received and not yet applied."""
        house = self.cast.open_house(f"house-{number}", "旅館", "Inn", spaces=("A01",))
        stay: Booked = self.cast.book(house, price=6000, space="A01")
        desk = self.worker.desk(stay.facility_id)
        said = payments.open_payment(desk, self.cast.sato.actor, stay.id, "balance")
        assert isinstance(said, Applied)
        assert said.subject is not None
        intent = self.owner.one("select intent_id from payments where id = %s", said.subject)
        pay(self.stripe, intent)
        receive(
            *[
                one
                for one in events(self.worker)
                if one.type == "payment_intent.succeeded"
                and one.payload["data"]["object"]["id"] == intent
            ]
        )
        return said.subject

    def applied(self, payment: UUID) -> bool:
        """All of it or nothing: the state, its record, the folio, the receipt, the completion."""
        traces = self.owner.row(
            f"""
            select (select count(*) from ledger_lines where payment_id = '{payment}'),
                   (select count(*) from outbox where payload ->> 'payment_id' = '{payment}'),
                   (select count(*) from webhook_events e where e.state = 'completed'
                    and convert_from(e.payload, 'UTF8') like '%%{payment}%%')
            """
        )
        told = recorded(self.owner, payment)[1:]
        succeeded = self.owner.one("select state from payments where id = %s", payment)
        whole = succeeded == "succeeded"
        assert traces == ((1, 1, 1) if whole else (0, 0, 0))
        assert told == ([("provider_succeeded", "open", "succeeded")] if whole else [])
        return whole

    def again(self) -> None:
        """The next sweep, after the lease of whoever was cut off."""
        self.owner.run(
            "update webhook_events set claimed_at = claimed_at - interval '61 seconds'"
            " where claimed_at is not null"
        )
        self.owner.make_due()
        drain.drain("inbox")


@pytest.fixture
def paid(cast: Cast, worker: House, owner: Owner, stripe: StandIn) -> Paid:
    return Paid(cast, worker, owner, stripe)


def drained() -> None:
    """A job whose claim cannot be made fails; the sweep asks again."""
    with suppress(OperationalError):
        drain.drain("inbox")


def test_an_event_is_cut_at_every_statement(app: Flask, paid: Paid, owner: Owner) -> None:
    first = paid.next(0)
    many = counted(drained, app, owner)
    assert paid.applied(first)
    assert many > 5
    for number in range(many):
        payment = paid.next(number + 1)
        with cut(app, owner, number):
            drained()
        paid.applied(payment)
        paid.again()
        assert paid.applied(payment)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_event_is_cut_at_every_commit(
    app: Flask, paid: Paid, owner: Owner, proxy: Proxy, when: Moment
) -> None:
    first = paid.next(0)
    with through(proxy.host, app):
        proxy.cut(None)
        drained()
        assert paid.applied(first)
        for number in range(proxy.commits):
            payment = paid.next(number + 1)
            proxy.cut(number, when)
            drained()
            paid.applied(payment)
            proxy.cut(None)
            paid.again()
            assert paid.applied(payment)


# A delivery --------------------------------------------------------------------------------------


def delivery(number: int) -> bytes:
    thing = {"id": f"obj_{number}", "object": "thing"}
    event = {
        "id": f"evt_chaos_{number}",
        "object": "event",
        "api_version": "2026-10-28.endive",
        "created": 1_790_000_000,
        "data": {"object": thing},
        "livemode": False,
        "type": "payment_intent.created",
    }
    return json.dumps(event).encode()


def test_a_delivery_is_cut_at_every_statement(app: Flask, owner: Owner) -> None:
    """503: the provider comes again, and is then received once."""
    client = app.test_client()

    def post(number: int) -> TestResponse:
        raw = delivery(number)
        return client.post("/webhooks/stripe", data=raw, headers={"Stripe-Signature": header(raw)})

    many = counted(lambda: post(0), app, owner)
    assert many >= 1
    for number in range(1, many + 1):
        with cut(app, owner, number - 1):
            answer = post(number)
        assert answer.status_code == 503
        assert "psycopg" not in answer.get_data(as_text=True)
        again = post(number)
        assert (again.status_code, again.get_data(as_text=True)) == (200, "received")
        stored = "select count(*) from webhook_events where event_id = %s"
        assert owner.one(stored, f"evt_chaos_{number}") == 1


# The server itself -------------------------------------------------------------------------------


class Server:
    """A PostgreSQL of its own that keeps what it has acknowledged, and can be ended at once."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._part = parts.postgres(data)
        parts.create_database(self._part.url, DATABASE)
        migrate(settings_of(self._part.url))
        self.host = socket_of(self._part)
        self.owner = Owner(settings_of(self._part.url)["DATABASE_OWNER_URL"])

    def end_at_once(self) -> None:
        """Immediate shutdown: no checkpoint, every session is cut."""
        self._part.process.send_signal(signal.SIGQUIT)
        self._part.process.wait(PATIENCE)

    def come_back(self) -> None:
        self._part = parts.postgres(self._data)
        self.owner = Owner(settings_of(self._part.url)["DATABASE_OWNER_URL"])

    def stop(self) -> None:
        self._part.kill()


def settings_of(url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": parts.with_database(url, DATABASE, "portal_app"),
        "DATABASE_OWNER_URL": parts.with_database(url, DATABASE),
    }


@pytest.fixture
def own_server(folder: Path) -> Iterator[Server]:
    made = Server(folder / "ended-at-once")
    yield made
    made.stop()


def test_the_server_is_ended_at_once_under_way(app: Flask, own_server: Server, whole: bool) -> None:
    """Whoever was told "done" finds it done; whoever was not sends the form again. Nothing is
    restarted on our side."""
    with through(own_server.host, app):
        for round_ in range(20 if whole else 2):
            counters = [
                Counter(app, own_server.owner, 100 * round_ + number) for number in range(12)
            ]
            started = threading.Barrier(4)

            def work(mine: Sequence[Counter], start: threading.Barrier) -> list[int]:
                start.wait(PATIENCE)
                return [counter.check_in().status_code for counter in mine]

            with ThreadPoolExecutor(3) as desks:
                asked = [desks.submit(work, counters[desk::3], started) for desk in range(3)]
                started.wait(PATIENCE)
                own_server.end_at_once()
                while_away(app, round_)
                answers = [one.result(PATIENCE) for one in asked]
            own_server.come_back()
            assert {code for row in answers for code in row} <= {303, 503}
            for desk, row in enumerate(answers):
                for counter, code in zip(counters[desk::3], row, strict=True):
                    counter.owner = own_server.owner
                    assert counter.done() or code == 503
                    then_it_is_carried_out_once(counter, done=counter.done())


def while_away(app: Flask, number: int) -> None:
    raw = delivery(1000 + number)
    hook = app.test_client().post(
        "/webhooks/stripe", data=raw, headers={"Stripe-Signature": header(raw)}
    )
    assert hook.status_code == 503
    assert app.test_client().get("/healthz").status_code in (200, 503)
