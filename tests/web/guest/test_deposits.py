"""The deadline of a deposit on the guest's page, in both languages."""

from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from portal import clock, formats
from portal.db import SYSTEM
from portal.verbs import facilities, facts, stays
from tests.cast import Booked
from tests.web.audit import by_id, words
from tests.web.guest.test_guest_stay import buttons, paid_in_cash, read, text_of
from tests.web.shop import Shop


@pytest.fixture
def booked(shop: Shop) -> Booked:
    """In ten days, held for two."""
    with shop.cast.transaction(shop.cast.tokyo.id) as tx:
        facilities.hold_for_deposit(tx, SYSTEM, 48)
    begins = clock.now() + timedelta(days=10)
    return shop.cast.book(starts_at=begins, deposit_due=2000)


def until(shop: Shop, booked: Booked, lang: str) -> str:
    with shop.cast.transaction(booked.facility_id) as tx:
        deadline = tx.scalar("select deposit_by from stays where id = :id", id=booked.id)
    return formats.when(deadline, shop.cast.tokyo.zone, lang)


def test_it_says_until_when(shop: Shop, client: FlaskClient, booked: Booked, lang: str) -> None:
    when = until(shop, booked, lang)
    shown = text_of(read(client, booked.token, lang), "to-pay-first")
    if lang == "en":
        told = (
            f"Please pay the deposit of ¥2,000 by {when}. After that your booking ends by itself."
        )
    else:
        told = f"前金 ￥2,000 を {when} までにお支払いください。"
    assert told in shown


@pytest.mark.parametrize("why", ["paid", "lifted"])
def test_it_says_nothing_where_there_is_no_deadline(
    shop: Shop, client: FlaskClient, booked: Booked, why: str
) -> None:
    if why == "paid":
        paid_in_cash(shop, booked, 2000)
    else:
        with shop.cast.transaction(booked.facility_id) as tx:
            tx.run("update stays set deposit_by = null")
    page = read(client, booked.token)
    assert by_id(page, "to-pay-first") is None
    assert "by itself" not in text_of(page)
    assert buttons(page)[0] == (
        "Pay ¥4,000 by card" if why == "paid" else "Pay the ¥2,000 deposit by card"
    )


def test_past_the_deadline_it_may_still_be_paid_until_it_has_ended(
    shop: Shop, client: FlaskClient, booked: Booked, lang: str
) -> None:
    with shop.cast.transaction(booked.facility_id) as tx:
        tx.run("update stays set deposit_by = now() - interval '1 minute'")
    page = read(client, booked.token, lang)
    shown = text_of(page, "to-pay-first")
    assert ("ends at any moment" if lang == "en" else "まもなく取り消されます") in shown
    assert len([one for one in buttons(page) if "2,000" in one]) == 1


def test_it_says_why_the_booking_ended(
    shop: Shop, client: FlaskClient, booked: Booked, lang: str
) -> None:
    with shop.cast.transaction(booked.facility_id) as tx:
        held = facts.stay(tx, booked.id)
        assert held is not None
        stays.miss_deposit(tx, SYSTEM, held)
    page = read(client, booked.token, lang)
    when = until(shop, booked, lang)
    heading = by_id(page, "ended")
    assert heading is not None
    assert words(heading) == (
        "Your booking has ended" if lang == "en" else "ご予約は取り消されました"
    )
    assert when in text_of(page)
    assert buttons(page)[:1] != ["Pay ¥6,000 by card"]
