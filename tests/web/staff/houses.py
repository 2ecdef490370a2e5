"""The desk's portal with the providers' stand-ins behind it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import config
from portal.db import SYSTEM
from portal.edges.channels import channels
from portal.edges.providers import providers
from portal.jobs import house
from portal.jobs.house import House
from portal.outcome import Applied
from portal.verbs import payment_answers, payments, stays
from portal.verbs.desk import Desk
from portal.web import factory
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast, HouseOf
from tests.outside import SEAM_KEY, pay
from tests.web.audit import audit, form_data, main_of, words


@pytest.fixture(scope="session")
def desk_app(settings: dict[str, str], stripe_process: StandIn, seam_process: Running) -> Flask:
    places = {
        "STRIPE_API_BASE": stripe_process.base,
        "SEAM_ENDPOINT": seam_process.url,
        "SEAM_API_KEY": SEAM_KEY,
        "SMTP_URL": "smtp://127.0.0.1:1",
    }
    made = factory.create_app(config.from_environment({**settings, **places}))
    made.config["TESTING"] = True
    return made


@dataclass
class FrontDesk:
    """The portal, its cast, and the far side's stand-ins."""

    app: Flask
    cast: Cast
    stripe: StandIn
    seam: Running
    house: House

    def desk(self, where: HouseOf | None = None) -> Desk:
        return self.house.desk((where or self.cast.tokyo).id)

    def work(self, *kinds: Any) -> None:
        """What a worker does on a ring."""
        from portal.jobs import drain

        house.open_house(self.house)
        for kind in kinds:
            drain.drain(kind)

    def opened(self, stay: Booked) -> UUID:
        """A card payment that nobody has paid yet."""
        with self.app.app_context():
            said = payments.open_payment(
                self.house.desk(stay.facility_id), SYSTEM, stay.id, "balance"
            )
        assert isinstance(said, Applied), said
        assert said.subject is not None
        return said.subject

    def paid(self, stay: Booked) -> UUID:
        """A card payment that the provider has confirmed."""
        payment_id = self.opened(stay)
        pay(
            self.stripe,
            self.scalar(stay, "select intent_id from payments where id = :id", payment_id),
        )
        with self.app.app_context():
            said = payment_answers.resolve(self.house.desk(stay.facility_id), SYSTEM, payment_id)
        assert isinstance(said, Applied), said
        return payment_id

    def admitted(self, stay: Booked) -> UUID:
        """Checked in; returns the key."""
        with self.cast.transaction(stay.facility_id) as tx:
            seen = tx.scalar("select version from stays where id = :id", id=stay.id)
            said = stays.admit(tx, self.cast.sato.actor, stay.id, seen)
            assert isinstance(said, Applied), said
            key_id: UUID = tx.scalar("select id from entry_keys where stay_id = :s", s=stay.id)
        return key_id

    def scalar(self, stay: Booked, sql: str, row_id: UUID) -> Any:
        with self.cast.transaction(stay.facility_id) as tx:
            return tx.scalar(sql, id=row_id)

    def at_provider(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stripe.get("objects").get(kind, [])
        return found


@pytest.fixture
def front(app: Flask, desk_app: Flask, stripe: StandIn, seam: Running) -> FrontDesk:
    """An empty house. `app` is asked for because it wipes."""
    settings = desk_app.extensions["monban.config"]
    made = House(settings, providers(settings), channels(settings), desk_app.app_context)
    return FrontDesk(desk_app, Cast(desk_app), stripe, seam, made)


def page(client: FlaskClient, url: str, lang: str | None = None) -> Any:
    """The audited page."""
    return audit(client.get(url), client, lang)


def shown(client: FlaskClient, url: str) -> str:
    """What a person reads in the page's main part."""
    return words(main_of(page(client, url)))


def send(
    client: FlaskClient, shown_at: str, action: str, *, htmx: bool = False, **typed: str
) -> TestResponse:
    """Send the form that stands on `shown_at`, as a browser with or without script would."""
    data = form_data(page(client, shown_at), action) | typed
    headers = {"HX-Request": "true", "HX-Current-URL": shown_at} if htmx else {}
    return client.post(action, data=data, headers=headers)


def notice(client: FlaskClient, response: TestResponse) -> str:
    """The code of what the page says has just happened, after a redirect too."""
    if response.status_code == 303:
        response = client.get(response.location)
    found = audit(response, client)
    codes = [element.get("data-code") for element in found.iter() if element.get("data-code")]
    assert len(codes) == 1, codes
    return str(codes[0])
