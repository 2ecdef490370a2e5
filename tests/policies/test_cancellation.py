"""What a cancellation costs: total, monotone where the steps are, and exact to the yen."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.money import LARGEST
from portal.policies.cancellation import (
    EARLIEST,
    MOST_STEPS,
    Step,
    begins,
    consequence,
    in_order,
    schedule,
    sound,
)

ARRIVAL = datetime(2026, 11, 10, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
THREE = [Step(72, 30, True), Step(24, 50, False), Step(0, 100, False)]

hours = st.integers(0, EARLIEST)
percents = st.integers(0, 100)
prices = st.integers(0, LARGEST)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))
steps = st.lists(
    st.builds(Step, hours, percents, st.booleans()),
    max_size=MOST_STEPS,
    unique_by=lambda step: step.hours_before,
)


@given(steps, prices, instants, instants)
def test_it_answers_at_every_time_and_the_sum_is_the_price(
    agreed: list[Step], price: int, arrival: datetime, now: datetime
) -> None:
    told = consequence(agreed, price, arrival, now)
    assert told.fee + told.refund == price
    assert 0 <= told.fee <= price
    percent = told.step.fee_percent if told.step else 0
    assert told.fee * 100 <= price * percent < (told.fee + 1) * 100, "one floor, of the fee"
    assert told.step is None or begins(told.step, arrival) <= now
    assert told.until is None or now < told.until


@given(steps, prices, instants, instants, instants)
def test_where_the_steps_rise_waiting_is_never_cheaper(
    agreed: list[Step], price: int, arrival: datetime, one: datetime, other: datetime
) -> None:
    fees = sorted(step.fee_percent for step in agreed)
    rising = [
        Step(step.hours_before, fee, step.returns_quota)
        for step, fee in zip(in_order(agreed), fees, strict=True)
    ]
    early, late = sorted((one, other))
    assert consequence(rising, price, arrival, early).fee <= (
        consequence(rising, price, arrival, late).fee
    )


@given(steps, prices, instants, instants)
def test_the_schedule_says_at_each_time_what_is_charged_then(
    agreed: list[Step], price: int, arrival: datetime, now: datetime
) -> None:
    told = schedule(agreed, price, arrival)
    if not agreed:
        assert told == []
        return
    current = [what for at, what in told if at is None or at <= now][-1]
    assert current == consequence(agreed, price, arrival, now)


@pytest.mark.parametrize(
    ("before", "fee", "returns", "until"),
    [
        (timedelta(hours=72, microseconds=1), 0, True, 72),
        (72 * HOUR, 2999, True, 24),
        (timedelta(hours=24, microseconds=1), 2999, True, 24),
        (24 * HOUR, 4999, False, 0),
        (timedelta(microseconds=1), 4999, False, 0),
        (timedelta(0), 9999, False, None),
        (-1000 * HOUR, 9999, False, None),
    ],
)
def test_a_step_begins_at_its_very_instant(
    before: timedelta, fee: int, returns: bool, until: int | None
) -> None:
    told = consequence(THREE, 9999, ARRIVAL, ARRIVAL - before)
    assert (told.fee, told.refund, told.returns_quota) == (fee, 9999 - fee, returns)
    assert told.until == (None if until is None else ARRIVAL - until * HOUR)


def test_without_steps_nothing_is_kept() -> None:
    told = consequence([], 5000, ARRIVAL, ARRIVAL + HOUR)
    assert (told.step, told.fee, told.refund, told.returns_quota) == (None, 0, 5000, True)


def test_a_price_below_zero_is_a_fault() -> None:
    with pytest.raises(ValueError, match="below zero"):
        consequence(THREE, -1, ARRIVAL, ARRIVAL)


@pytest.mark.parametrize(
    "unsound",
    [
        [],
        [Step(24, 50, False), Step(24, 60, False)],
        [Step(24, 101, False)],
        [Step(24, -1, False)],
        [Step(-1, 50, False)],
        [Step(EARLIEST + 1, 50, False)],
        [Step(hour, 50, False) for hour in range(MOST_STEPS + 1)],
    ],
)
def test_what_nobody_can_agree_to(unsound: list[Step]) -> None:
    assert sound(THREE)
    assert not sound(unsound)
