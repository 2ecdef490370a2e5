"""Consumption tax within prices: one rounding for each rate of a document, and sums that hold."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.policies.tax import Part, is_registration, parts_of, stated, tax_within, totals

RATES = st.sampled_from([0, 3, 5, 8, 10])
PARTS = st.lists(
    st.builds(
        Part, st.sampled_from(["", "lodging_tax", "fee"]), RATES, st.integers(-10_000, 1_000_000)
    ),
    max_size=12,
)
PRICES = st.lists(
    st.builds(Part, st.sampled_from(["", "lodging_tax"]), RATES, st.integers(1, 100_000)),
    max_size=8,
)


@given(PARTS, st.randoms())
def test_totals_sum_up_in_any_order(parts: list[Part], chance: Random) -> None:
    found = totals(parts)
    assert sum(total.amount for total in found) == sum(part.amount for part in parts)
    chance.shuffle(parts)
    assert totals(parts) == found


@given(PRICES)
def test_one_rounding_for_each_rate_and_never_by_the_line(parts: list[Part]) -> None:
    for total in totals(parts):
        of_rate = [part.amount for part in parts if part.rate == total.rate]
        assert total.tax == sum(of_rate) * total.rate // (100 + total.rate)
        by_line = sum(tax_within(amount, total.rate) for amount in of_rate)
        assert 0 <= total.tax - by_line < max(1, len(of_rate))


def test_three_lines_of_99_yen_are_rounded_once() -> None:
    assert sum(tax_within(99, 10) for _ in range(3)) == 27
    assert totals([Part("", 10, 99)] * 3)[0].tax == 27
    assert totals([Part("", 10, 105)] * 3)[0].tax == 28
    assert sum(tax_within(105, 10) for _ in range(3)) == 27


@pytest.mark.parametrize(
    ("amount", "rate", "tax"), [(11_000, 10, 1000), (1080, 8, 80), (10, 10, 0), (500, 0, 0)]
)
def test_what_goes_back_contains_as_much_as_what_came(amount: int, rate: int, tax: int) -> None:
    assert tax_within(amount, rate) == tax
    assert tax_within(-amount, rate) == -tax


@given(PARTS)
def test_what_is_charged_in_the_end_is_the_sum_and_never_below_zero(charges: list[Part]) -> None:
    kept = parts_of(charges)
    assert sum(part.amount for part in kept) == max(0, sum(part.amount for part in charges))
    assert all(part.amount > 0 for part in kept)
    assert parts_of(reversed(charges)) == kept


@given(PRICES, st.lists(st.integers(0, 100), max_size=5), st.randoms())
def test_receipts_of_parts_add_up_to_the_whole(
    charges: list[Part], shares: list[int], chance: Random
) -> None:
    """However often a receipt is asked for meanwhile, all of them together state what is
    charged, and each its own money."""
    whole, came, before = sum(part.amount for part in charges), 0, []
    for reached in [*sorted(whole * share // 100 for share in shares), whole]:
        chance.shuffle(charges)
        now = stated(charges, reached, before)
        assert sum(part.amount for part in now) == reached - came
        came, before = reached, [*before, *now]
    assert parts_of(before) == parts_of(charges)


@given(PRICES, st.data())
def test_what_went_back_is_stated_below_zero(charges: list[Part], data: st.DataObject) -> None:
    whole = sum(part.amount for part in charges)
    receipt = stated(charges, whole)
    kept = data.draw(st.integers(0, whole))
    went_back = stated([*charges, Part("", 10, kept - whole)], kept, receipt)
    assert sum(part.amount for part in went_back) == kept - whole


def test_money_that_is_charged_for_nothing_is_not_stated() -> None:
    with pytest.raises(ValueError, match="charged for nothing"):
        stated([Part("", 10, 1000)], 1001)


def test_a_deposit_fills_the_price_before_the_lodging_tax() -> None:
    charges = [Part("lodging_tax", 0, 200), Part("", 10, 12_000)]
    deposit = stated(charges, 2000)
    assert deposit == [Part("", 10, 2000)]
    assert stated(charges, 12_200, deposit) == [Part("", 10, 10_000), Part("lodging_tax", 0, 200)]


@pytest.mark.parametrize("number", ["T7123456789012", "T7010705000725"])
def test_registration_numbers(number: str) -> None:
    assert is_registration(number)


@pytest.mark.parametrize(
    "number",
    ["", "T", "7123456789012", "T7123456789013", "T712345678901", "T71234567890121",
     "t7123456789012", "T０123456789012", "T7123456789021", " T7123456789012"],
)  # fmt: skip
def test_a_slip_in_a_registration_number_is_seen(number: str) -> None:
    assert not is_registration(number)
