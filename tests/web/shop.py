"""A house that takes cards: the portal on a port of its own, the card provider's stand-in behind.

The fixtures are imported by whoever needs them: guests' pages and the tests of webhooks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from flask import Flask
from werkzeug.serving import make_server

from portal import clock, config, seal
from portal.db import SYSTEM
from portal.edges.channels import channels
from portal.edges.providers import providers
from portal.jobs import drain, house
from portal.jobs.house import House
from portal.outcome import Outcome
from portal.verbs import keys, payment_answers, payments, stays
from portal.verbs.desk import Desk
from portal.web import factory
from sandbox import parts
from sandbox.stripe.testing import StandIn, running
from tests.cast import Booked, Cast

SECRET, OLD_SECRET = "whsec_monban_test", "whsec_before_rotation"


@pytest.fixture(scope="session")
def card_rail() -> Iterator[StandIn]:
    with running("--processing-seconds", "3600") as stand_in:
        yield stand_in


@pytest.fixture(scope="session")
def shop_app(settings: dict[str, str], card_rail: StandIn) -> Flask:
    """The portal at its public address, paying with the stand-in."""
    place = {
        "PUBLIC_URL": f"http://127.0.0.1:{parts.free_port()}",
        "STRIPE_API_BASE": card_rail.base,
        "SMTP_URL": "smtp://127.0.0.1:1",
        "STRIPE_WEBHOOK_SECRET": f"{SECRET},{OLD_SECRET}",
    }
    made = factory.create_app(config.from_environment({**settings, **place}))
    made.config["TESTING"] = True
    return made


@dataclass
class Shop:
    """The portal, its stand-in, its cast and its work."""

    app: Flask
    rail: StandIn
    cast: Cast
    desk_house: House

    @property
    def url(self) -> str:
        return self.desk_house.config.public_url

    def desk(self, facility_id: UUID) -> Desk:
        return self.desk_house.desk(facility_id)

    def open_payment(self, booked: Booked, part: payments.Part = "balance") -> UUID:
        with self.app.app_context():
            said = payments.open_payment(self.desk(booked.facility_id), SYSTEM, booked.id, part)
        assert said.status == "applied", said
        assert said.subject is not None  # type: ignore[union-attr]
        return said.subject  # type: ignore[union-attr]

    def tell(self, booked: Booked, payment_id: UUID, status: str, **more: Any) -> Outcome:
        """The provider's word, without its wire."""
        with self.app.app_context():
            desk = self.desk(booked.facility_id)
            with desk.transaction() as tx:
                intent_id = tx.scalar(
                    "select intent_id from payments where id = :id", id=payment_id
                )
            intent = desk.payments.retrieve_intent(intent_id)
            received = intent.amount if status == "succeeded" else 0
            word = type(intent)(
                **{name: getattr(intent, name) for name in type(intent).__slots__}
                | {"status": status, "amount_received": received}
                | more
            )
            with desk.transaction() as tx:
                return payment_answers.record_intent(tx, SYSTEM, payment_id, word)

    def take_in(self, booked: Booked) -> None:
        """Check in, past the gate: the stay must be paid."""
        with self.cast.transaction(booked.facility_id) as tx:
            seen = tx.scalar("select version from stays where id = :id", id=booked.id)
            said = stays.admit(tx, SYSTEM, booked.id, seen)
        assert said.status == "applied", said

    def key(self, booked: Booked) -> Any:
        with self.cast.transaction(booked.facility_id) as tx:
            return tx.row(
                "select * from entry_keys where stay_id = :id order by created_at desc limit 1",
                id=booked.id,
            )

    def pin(self, booked: Booked) -> str:
        return seal.unseal(self.key(booked).pin_sealed)

    def lock_says(self, booked: Booked, status: str | None, *errors: str) -> None:
        key_id = self.key(booked).id
        with self.cast.transaction(booked.facility_id) as tx:
            said = keys.observe(tx, key_id, status=status, errors=errors, code_id=f"ac_{key_id}")
        assert said.status == "applied", said

    def depart(self, booked: Booked) -> None:
        with self.cast.transaction(booked.facility_id) as tx:
            seen = tx.scalar("select version from stays where id = :id", id=booked.id)
            said = stays.depart(tx, SYSTEM, booked.id, seen)
        assert said.status == "applied", said

    def work(self, *kinds: Any) -> None:
        """What a worker would do now."""
        house.open_house(self.desk_house)
        for kind in kinds or ("inbox",):
            drain.drain(kind)

    def hear(self) -> None:
        """Every webhook that waits arrives, and is worked on."""
        self.rail.wait_delivered()
        self.work("inbox")

    def scalar(self, booked: Booked, sql: str, **params: Any) -> Any:
        with self.cast.transaction(booked.facility_id) as tx:
            return tx.scalar(sql, **params)


@pytest.fixture
def shop(app: Flask, shop_app: Flask, card_rail: StandIn) -> Iterator[Shop]:
    """An empty shop. `app` is asked for because it wipes."""
    card_rail.post("reset")
    card_rail.delete("webhooks/endpoints")
    settings = shop_app.extensions["monban.config"]
    made = House(settings, providers(settings), channels(settings), shop_app.app_context)
    yield Shop(shop_app, card_rail, Cast(shop_app), made)
    clock.set_source(None)


@pytest.fixture
def open_shop(shop: Shop) -> Iterator[Shop]:
    """The shop answers at its address, and the stand-in tells it of events."""
    port = int(shop.url.rpartition(":")[2])
    server = make_server("127.0.0.1", port, shop.app, threaded=True)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    shop.rail.post("webhooks/endpoints", url=f"{shop.url}/webhooks/stripe", secret=SECRET)
    try:
        yield shop
    finally:
        shop.rail.delete("webhooks/endpoints")
        server.shutdown()
        thread.join()
        server.server_close()
