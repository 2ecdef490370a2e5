"""Which rate of consumption tax each line of an account contains."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from flask import Flask
from sqlalchemy.exc import ProgrammingError

from portal import clock
from portal.db import transaction
from portal.outcome import Applied
from portal.verbs import cash, stay_changes, stays
from tests.cast import Booked, Cast
from tests.outside import Owner


def lines(stay: Booked) -> list[tuple[Any, ...]]:
    with transaction(stay.facility_id) as tx:
        found = tx.rows(
            "select kind, amount, item, tax_rate from ledger_lines where stay_id = :id order by id",
            id=stay.id,
        )
    return [tuple(row) for row in found]


def classed(cast: Cast, tax_class: str, plan: str = "night") -> None:
    with transaction(cast.tokyo.id) as tx:
        tx.run("update plans set tax_class = :c where code = :p", c=tax_class, p=plan)


@pytest.mark.parametrize(("tax_class", "rate"), [("standard", 10), ("reduced", 8), ("untaxed", 0)])
def test_a_charge_has_the_rate_of_its_plan(
    cast: Cast, inside: Flask, tax_class: str, rate: int
) -> None:
    assert cast.tokyo
    classed(cast, tax_class)
    assert lines(cast.book(plan="night")) == [("charge", 6000, "", rate)]


def test_without_a_plan_it_is_the_standard_rate(cast: Cast, inside: Flask) -> None:
    assert lines(cast.book()) == [("charge", 6000, "", 10)]


def test_the_rate_is_that_of_the_day_of_the_stay(cast: Cast, inside: Flask, owner: Owner) -> None:
    """The facility's day: 15:30 in UTC is the next day in Tokyo."""
    eve = datetime(2026, 12, 31, 14, 30, tzinfo=UTC)
    owner.run("insert into consumption_tax_rates values ('standard', %s, 12)", date(2027, 1, 1))
    try:
        before = cast.book(starts_at=eve)
        after = cast.book(space="A02", starts_at=eve + timedelta(hours=1))
        assert (lines(before)[0][3], lines(after)[0][3]) == (10, 12)
    finally:
        owner.run("delete from consumption_tax_rates where percent = 12")


def test_a_cancellation_takes_each_rate_back_and_its_fee_is_out_of_scope(
    cast: Cast, inside: Flask
) -> None:
    assert cast.tokyo
    stay = cast.book(plan="night", starts_at=clock.now() + timedelta(days=2))
    with transaction(stay.facility_id) as tx:
        tx.run("update stays set tax_class = 'reduced'")
        row = tx.row("select starts_at, ends_at from stays where id = :id", id=stay.id)
        assert row is not None
        longer = stay_changes.change_times(
            tx, cast.sato.actor, stay.id, 1, row.starts_at, row.ends_at + timedelta(days=1), 1000
        )
        assert isinstance(longer, Applied), longer
    with transaction(stay.facility_id) as tx:
        said = stays.cancel(tx, cast.sato.actor, stay.id, 2, fee=3000)
        assert isinstance(said, Applied), said
    assert lines(stay)[2:] == [
        ("charge_reversed", -6000, "", 10),
        ("charge_reversed", -1000, "", 8),
        ("fee", 3000, "", 0),
    ]


def test_money_has_no_rate(cast: Cast, inside: Flask) -> None:
    stay = cast.book()
    with transaction(stay.facility_id) as tx:
        cash.take(tx, cast.sato.actor, stay.id, 6000, uuid4())
    assert lines(stay)[1] == ("cash", -6000, "", None)


def test_the_house_cannot_change_the_law(cast: Cast, inside: Flask) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), transaction(None) as tx:
        tx.run("update consumption_tax_rates set percent = 0")
