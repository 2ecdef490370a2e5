"""What tests of the desk's pages share: a page read and audited, its own forms sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import clock
from portal.verbs import cash, stays
from tests.cast import Booked, Cast
from tests.web.audit import audit, by_id, form_data, main_of, words

NOON = datetime(2026, 10, 10, 3, tzinfo=UTC)
"""12:00 in Tokyo."""

HTMX = {"HX-Request": "true"}


@contextmanager
def at(instant: datetime) -> Iterator[None]:
    """The portal's clock stands still here."""
    clock.set_source(lambda: instant)
    try:
        yield
    finally:
        clock.set_source(None)


def look(client: FlaskClient, url: str, lang: str | None = None, status: int = 200) -> Element:
    response = client.get(url)
    assert response.status_code == status, response.get_data(as_text=True)[:2000]
    return audit(response, client, lang)


def read(client: FlaskClient, response: TestResponse, status: int) -> Element:
    assert response.status_code == status, response.get_data(as_text=True)[:3000]
    return audit(response, client)


def press(client: FlaskClient, page: Element, action: str, **changes: Any) -> TestResponse:
    """Send the page's own form, with `changes`."""
    headers = changes.pop("headers", None)
    return client.post(action, data={**form_data(page, action), **changes}, headers=headers)


def has_form(page: Element, action: str) -> bool:
    return any(form.get("action") == action for form in page.iter("form"))


def text(page: Element) -> str:
    return words(main_of(page))


def code(page: Element) -> str | None:
    """The code of the page's first notice."""
    notices = by_id(page, "notices")
    assert notices is not None
    return next((e.get("data-code") for e in notices.iter() if e.get("data-code")), None)


def row(cast: Cast, stay: Booked) -> Any:
    with cast.transaction(stay.facility_id) as tx:
        return tx.row("select * from stays where id = :id", id=stay.id)


def pay(cast: Cast, stay: Booked, amount: int) -> None:
    from uuid import uuid4

    with cast.transaction(stay.facility_id) as tx:
        said = cash.take(tx, cast.sato.actor, stay.id, amount, uuid4())
    assert said.status == "applied", said


def admitted(cast: Cast, **wanted: Any) -> Booked:
    """A paid stay whose guest is in house."""
    stay = cast.book(**wanted)
    pay(cast, stay, wanted.get("price", 6000))
    with cast.transaction(stay.facility_id) as tx:
        said = stays.admit(tx, cast.sato.actor, stay.id, 1)
    assert said.status == "applied", said
    return stay


def count(cast: Cast, table: str, house: Any = None) -> int:
    with cast.transaction((house or cast.tokyo).id) as tx:
        return int(tx.scalar(f"select count(*) from {table}"))
