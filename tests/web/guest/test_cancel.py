"""A guest cancels: what it costs is told first, and holds only as it was told."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal import clock
from portal.verbs import cash
from tests.cast import Booked
from tests.web.audit import audit, form_data
from tests.web.guest.test_guest_stay import text_of
from tests.web.shop import Shop
from tests.web.staff.desk import HTMX, code

HOUR = timedelta(hours=1)


@pytest.fixture
def stay(shop: Shop) -> Booked:
    """For tomorrow, at 6,000 yen, of which half is kept by now."""
    shop.cast.policy((72, 50, True), (24, 80, False), (0, 100, False), plan="night")
    return shop.cast.book(plan="night", starts_at=clock.now() + 48 * HOUR)


def page_of(client: FlaskClient, stay: Booked, lang: str = "en", part: str = "/cancel") -> Any:
    return audit(client.get(f"/g/{stay.token}{part}?lang={lang}"), client, lang)


def state(shop: Shop, stay: Booked) -> str:
    return str(shop.scalar(stay, "select state from stays where id = :id", id=stay.id))


def fees(shop: Shop, stay: Booked) -> int | None:
    sql = "select sum(amount)::int from ledger_lines where kind = 'fee' and stay_id = :id"
    found: int | None = shop.scalar(stay, sql, id=stay.id)
    return found


def test_what_follows_is_told_and_then_done(
    shop: Shop, client: FlaskClient, stay: Booked, lang: str
) -> None:
    with shop.cast.transaction(stay.facility_id) as tx:
        cash.take(tx, shop.cast.sato.actor, stay.id, 6000, uuid4())
    home = page_of(client, stay, lang, "")
    cancel = f"/g/{stay.token}/cancel"
    assert cancel in [link.get("href") for link in home.iter("a")]
    page = page_of(client, stay, lang)
    said = text_of(page)
    assert "3,000" in said
    assert "4,800" in said, "the step after it"
    data = form_data(page, cancel)
    assert (data["fee"], data["returns"]) == ("3000", "1")
    done = client.post(cancel, data=data)
    assert (done.status_code, done.location) == (303, f"/g/{stay.token}")
    assert code(page_of(client, stay, lang, "")) == "STAY_CANCELLED"
    assert (state(shop, stay), fees(shop, stay)) == ("cancelled", 3000)
    client.post(cancel, data=data)
    assert code(page_of(client, stay, lang, "")) == "STAY_ALREADY_CANCELLED"
    assert fees(shop, stay) == 3000
    assert cancel not in [form.get("action") for form in page_of(client, stay, lang).iter("form")]


def test_h7_a_step_that_began_meanwhile_shows_its_figures(
    shop: Shop, client: FlaskClient, stay: Booked
) -> None:
    cancel = f"/g/{stay.token}/cancel"
    data = form_data(page_of(client, stay), cancel)
    soon = clock.now() + 30 * HOUR
    clock.set_source(lambda: soon)
    shown = client.post(cancel, data=data, headers=HTMX)
    assert shown.status_code == 422
    page = audit(shown, client)
    assert code(page) == "CANCELLATION_CHANGED"
    assert form_data(page, cancel)["fee"] == "4800"
    assert (state(shop, stay), fees(shop, stay)) == ("reserved", None)
    client.post(cancel, data=form_data(page, cancel))
    assert (state(shop, stay), fees(shop, stay)) == ("cancelled", 4800)


@pytest.mark.parametrize("crafted", [{"fee": ""}, {"fee": "-1"}, {"returns": "x"}, {"version": ""}])
def test_a_form_that_no_page_sent(
    shop: Shop, client: FlaskClient, stay: Booked, crafted: dict[str, str]
) -> None:
    cancel = f"/g/{stay.token}/cancel"
    data = form_data(page_of(client, stay), cancel) | crafted
    assert client.post(cancel, data=data).status_code == 400
    assert state(shop, stay) == "reserved"


def test_nobody_cancels_for_less(shop: Shop, client: FlaskClient, stay: Booked) -> None:
    cancel = f"/g/{stay.token}/cancel"
    data = form_data(page_of(client, stay), cancel) | {"fee": "0"}
    assert client.post(cancel, data=data).status_code == 422
    assert state(shop, stay) == "reserved"


def test_without_terms_the_page_says_whom_to_ask(
    shop: Shop, client: FlaskClient, lang: str
) -> None:
    stay = shop.cast.book(starts_at=clock.now() + 48 * HOUR)
    cancel = f"/g/{stay.token}/cancel"
    home = page_of(client, stay, lang, "")
    assert cancel not in [link.get("href") for link in home.iter("a")]
    page = page_of(client, stay, lang)
    assert [form for form in page.iter("form") if form.get("action") == cancel] == []
    assert any((link.get("href") or "").startswith("tel:") for link in page.iter("a"))


def test_from_arrival_on_the_page_sends_to_the_desk(
    shop: Shop, client: FlaskClient, stay: Booked, lang: str
) -> None:
    data = form_data(page_of(client, stay, lang), f"/g/{stay.token}/cancel")
    late = clock.now() + 49 * HOUR
    clock.set_source(lambda: late)
    shown = client.post(f"/g/{stay.token}/cancel", data=data)
    assert shown.status_code == 422
    assert code(audit(shown, client, lang)) == "CANCELLATION_TOO_LATE"
    assert state(shop, stay) == "reserved"
