"""Lodging tax: for each night by its own day's table, whatever the tables and prices."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.policies.lodging_tax import Band, Table, due, fault, nights

ZONE = "Asia/Tokyo"
TOKYO = (Band(10_000, 14_999, 100), Band(15_000, None, 200))
OSAKA = (Band(5000, 14_999, 200), Band(15_000, 19_999, 400), Band(20_000, None, 500))
FIRST = date(2026, 12, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(400)]


def table(bands: tuple[Band, ...], day: date = date(2002, 10, 1)) -> Table:
    return Table(day, bands)


@pytest.mark.parametrize(
    ("price", "tax"),
    [(10_998, 0), (11_000, 100), (16_498, 100), (16_500, 200), (110_000, 200), (0, 0)],
)
def test_tokyo_by_the_price_without_consumption_tax(price: int, tax: int) -> None:
    """11,000 yen with 10 % are 10,000 without; as on a receipt, the tax is rounded down."""
    assert due([table(TOKYO)], DAYS[:1], price, 10) == tax


@pytest.mark.parametrize(("price", "tax"), [(5498, 0), (5500, 200), (16_500, 400), (22_000, 500)])
def test_another_city_is_other_rows(price: int, tax: int) -> None:
    assert due([table(OSAKA)], DAYS[:1], price, 10) == tax


def test_a_stay_over_a_change_takes_each_nights_own_table() -> None:
    changed = [table(TOKYO), table((Band(0, None, 300),), DAYS[2])]
    assert due(changed, DAYS[:5], 5 * 11_000, 10) == 2 * 100 + 3 * 300
    assert due(reversed(changed), DAYS[:5], 5 * 11_000, 10) == 2 * 100 + 3 * 300


def test_before_the_first_table_and_without_one_nothing_is_taxed() -> None:
    assert due([], DAYS[:3], 100_000, 10) == 0
    assert due([table(TOKYO, DAYS[1])], DAYS[:1], 100_000, 10) == 0
    assert due([table(TOKYO)], [], 100_000, 10) == 0


def test_each_person_has_a_share_of_the_price() -> None:
    assert due([table(TOKYO)], DAYS[:1], 22_000, 10, persons=2) == 200
    assert due([table(TOKYO)], DAYS[:1], 21_998, 10, persons=2) == 0


@given(
    st.integers(1, 60), st.integers(0, 3_000_000), st.sampled_from([0, 8, 10]), st.integers(1, 4)
)
def test_it_is_the_sum_of_its_nights_and_grows_with_the_price(
    many: int, price: int, rate: int, persons: int
) -> None:
    tables = [table(TOKYO), table(OSAKA, DAYS[20])]
    taken = due(tables, DAYS[:many], price, rate, persons)
    apart = sum(
        due(tables, [night], price // many if price % many == 0 else price, rate, persons)
        for night in DAYS[:many]
    )
    if price % many == 0 and rate == 0:
        assert taken == apart
    assert 0 <= taken <= due(tables, DAYS[:many], price + 100_000, rate, persons)
    assert taken % persons == 0


def test_e7_nights_are_the_houses_days() -> None:
    """15:30 in UTC is half past midnight in Tokyo: the one night that is charged is that day's."""
    late = datetime(2026, 12, 1, 15, 30, tzinfo=UTC)
    assert nights(late, late + timedelta(hours=8), ZONE) == [date(2026, 12, 2)]
    assert nights(late, late + timedelta(days=2), ZONE) == [date(2026, 12, 2), date(2026, 12, 3)]
    eve = datetime(2026, 12, 31, 6, tzinfo=UTC)
    assert nights(eve, eve + timedelta(hours=19), ZONE) == [date(2026, 12, 31)]


@pytest.mark.parametrize(
    ("bands", "wrong"),
    [
        (TOKYO, None),
        (tuple(reversed(OSAKA)), None),
        ((Band(0, None, 0),), None),
        ((), ("empty", 0)),
        ((Band(100, 99, 1),), ("order", 100)),
        ((Band(0, 100, 1), Band(100, None, 2)), ("overlap", 100)),
        ((Band(0, None, 1), Band(100, None, 2)), ("overlap", 100)),
        ((Band(0, 99, 1), Band(0, None, 2)), ("overlap", 0)),
        ((Band(0, 99, 1), Band(101, None, 2)), ("gap", 100)),
        ((Band(0, 99, 1),), ("end", 100)),
    ],
)
def test_what_is_wrong_with_a_table_is_named_with_its_price(
    bands: tuple[Band, ...], wrong: tuple[str, int] | None
) -> None:
    assert fault(bands) == wrong


BANDS = st.lists(
    st.builds(
        Band, st.integers(0, 300), st.one_of(st.none(), st.integers(0, 300)), st.integers(0, 500)
    ),
    max_size=5,
)


@given(BANDS, st.integers(0, 400))
def test_a_table_without_a_fault_says_one_thing_of_each_price(
    bands: list[Band], price: int
) -> None:
    if fault(bands) is not None:
        return
    said = [b for b in bands if b.least <= price and (b.most is None or price <= b.most)]
    assert len(said) == (0 if price < min(band.least for band in bands) else 1)
