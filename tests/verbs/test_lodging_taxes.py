"""Lodging tax on accounts: a line of its own, with every change and end of a stay."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask

from portal.db import SYSTEM, transaction
from portal.outcome import Applied, Code, Noop, Refused
from portal.policies.lodging_tax import Band
from portal.verbs import cash, documents, lodging_taxes, stay_changes, stays
from portal.verbs.documents import Folio
from sandbox.watch import statements
from tests.cast import Booked, Cast
from tests.verbs.test_tax import lines

TOKYO = (Band(10_000, 14_999, 100), Band(15_000, None, 200))
BEGINS = datetime(2027, 3, 1, 6, tzinfo=UTC)
"""Three in the afternoon in Tokyo."""
NIGHT = timedelta(hours=19)
DAY = timedelta(days=1)


@pytest.fixture
def taxed(cast: Cast, inside: Flask) -> Cast:
    """Tokyo's table, for Tokyo alone."""
    assert cast.tokyo.id != cast.osaka.id
    write(cast, date(2002, 10, 1), TOKYO)
    return cast


def write(cast: Cast, day: date, bands: Any) -> Any:
    with transaction(cast.tokyo.id) as tx:
        return lodging_taxes.write_table(tx, SYSTEM, day, bands, uuid4())


def book(cast: Cast, price: int, ends_at: datetime = BEGINS + NIGHT, **more: Any) -> Booked:
    more = {"plan": "night", **more}
    return cast.book(price=price, starts_at=BEGINS, ends_at=ends_at, **more)


def change(stay: Booked, seen: int, ends_at: datetime, price: int) -> None:
    with transaction(stay.facility_id) as tx:
        said = stay_changes.change_times(tx, SYSTEM, stay.id, seen, BEGINS, ends_at, price)
        assert isinstance(said, Applied), said


def balance(stay: Booked) -> int:
    return sum(amount for _, amount, _, _ in lines(stay))


def test_it_is_a_line_of_its_own_without_consumption_tax(taxed: Cast) -> None:
    assert lines(book(taxed, 16_500)) == [
        ("charge", 16_500, "", 10),
        ("charge", 200, "lodging_tax", 0),
    ]


@pytest.mark.parametrize("plan", ["nap", None])
def test_day_use_is_not_taxed(taxed: Cast, plan: str | None) -> None:
    assert lines(book(taxed, 20_000, plan=plan)) == [("charge", 20_000, "", 10)]


def test_another_houses_table_taxes_nobody_here(taxed: Cast) -> None:
    with transaction(taxed.osaka.id) as tx:
        tx.run("update plans set kind = 'lodging'")
    stay = taxed.book(taxed.osaka, plan="visit", price=20_000)
    assert [line[2] for line in lines(stay)] == [""]


def test_a_longer_stay_is_taxed_for_its_nights(taxed: Cast) -> None:
    stay = book(taxed, 11_000)
    change(stay, 1, BEGINS + DAY + NIGHT, 11_000)
    assert lines(stay)[2:] == [
        ("charge", 11_000, "", 10),
        ("charge", 100, "lodging_tax", 0),
    ]
    change(stay, 2, BEGINS + NIGHT, -11_000)
    assert lines(stay)[4:] == [
        ("charge_reversed", -11_000, "", 10),
        ("charge_reversed", -100, "lodging_tax", 0),
    ]
    assert balance(stay) == 11_100


def test_a_price_alone_moves_the_tax(taxed: Cast) -> None:
    stay = book(taxed, 11_000)
    change(stay, 1, BEGINS + NIGHT, 5500)
    assert lines(stay)[-1] == ("charge", 100, "lodging_tax", 0)
    change(stay, 2, BEGINS + NIGHT, -10_000)
    assert lines(stay)[-1] == ("charge_reversed", -200, "lodging_tax", 0)
    assert balance(stay) == 6500


def test_each_night_has_its_own_days_table(taxed: Cast) -> None:
    write(taxed, date(2027, 3, 2), (Band(0, None, 350),))
    assert lines(book(taxed, 33_000, BEGINS + 2 * DAY + NIGHT))[1][1] == 100 + 2 * 350


def test_a_table_that_is_replaced_taxes_nobody_any_more(taxed: Cast) -> None:
    before = book(taxed, 16_500)
    write(taxed, date(2002, 10, 1), (Band(0, None, 0),))
    assert len(lines(book(taxed, 16_500, space="A02"))) == 1
    assert len(lines(before)) == 2, "what is booked stays"


def test_a_cancellation_takes_it_back(taxed: Cast) -> None:
    stay = book(taxed, 16_500)
    with transaction(stay.facility_id) as tx:
        stays.cancel(tx, SYSTEM, stay.id, 1, fee=3000)
    assert lines(stay)[2:] == [
        ("charge_reversed", -16_500, "", 10),
        ("charge_reversed", -200, "lodging_tax", 0),
        ("fee", 3000, "", 0),
    ]


def test_what_was_paid_too_much_goes_back(taxed: Cast) -> None:
    stay = book(taxed, 33_000, BEGINS + DAY + NIGHT)
    with transaction(stay.facility_id) as tx:
        cash.take(tx, SYSTEM, stay.id, 33_400, uuid4())
    change(stay, 1, BEGINS + NIGHT, -16_500)
    assert balance(stay) == -16_700


def test_a_receipt_names_it_apart(taxed: Cast) -> None:
    stay = book(taxed, 16_500)
    with transaction(stay.facility_id) as tx:
        cash.take(tx, SYSTEM, stay.id, 16_700, uuid4())
        documents.issue(tx, SYSTEM, Folio(stay_id=stay.id), "", uuid4())
        stated = tx.scalar("select stated from documents")
    assert stated["parts"] == [
        {"item": "", "rate": 10, "amount": 16_500},
        {"item": "lodging_tax", "rate": 0, "amount": 200},
    ]
    assert stated["totals"] == [
        {"rate": 10, "amount": 16_500, "tax": 1500},
        {"rate": 0, "amount": 200, "tax": 0},
    ]


@pytest.mark.parametrize(
    ("bands", "code"),
    [
        ([], Code.LODGING_TAX_EMPTY),
        ([Band(100, 99, 1)], Code.LODGING_TAX_ORDER),
        ([Band(0, 100, 1), Band(50, None, 1)], Code.LODGING_TAX_OVERLAP),
        ([Band(0, 100, 1), Band(200, None, 1)], Code.LODGING_TAX_GAP),
        ([Band(0, 100, 1)], Code.LODGING_TAX_GAP),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(
    cast: Cast, inside: Flask, bands: list[Band], code: Code
) -> None:
    said = write(cast, date(2027, 1, 1), bands)
    assert isinstance(said, Refused)
    assert said.code == code
    with transaction(cast.tokyo.id) as tx:
        assert tx.scalar("select count(*) from lodging_tax_tables") == 0


def test_h1_one_form_is_one_table(cast: Cast, inside: Flask) -> None:
    with transaction(cast.tokyo.id) as tx:
        key = uuid4()
        assert isinstance(
            lodging_taxes.write_table(tx, SYSTEM, date(2027, 1, 1), TOKYO, key), Applied
        )
        assert isinstance(lodging_taxes.write_table(tx, SYSTEM, date(2027, 1, 1), TOKYO, key), Noop)


def test_a_house_without_a_table_pays_no_statement_for_it(cast: Cast, inside: Flask) -> None:
    assert (cast.tokyo.plans, cast.sato.houses) != ({}, ())
    with statements() as without:
        book(cast, 16_500)
    write(cast, date(2002, 10, 1), TOKYO)
    with statements() as with_one:
        book(cast, 16_500, space="A02")
    assert len(with_one) == len(without) + 2
