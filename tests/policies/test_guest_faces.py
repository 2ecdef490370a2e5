"""What a guest is told of door and payment: total, and never more than is true."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.machines import entry_key, payment, stay
from portal.policies import door_code, payment_face, pricing

NOW = datetime(2026, 11, 10, 6, 0, tzinfo=UTC)
MOMENTS = st.none() | st.integers(-100, 100).map(lambda minutes: NOW + timedelta(minutes=minutes))


@given(
    st.sampled_from(get_args(stay.State)),
    st.none() | st.sampled_from(get_args(entry_key.State)),
    MOMENTS,
    MOMENTS,
)
def test_the_code_is_shown_only_while_it_certainly_opens_the_door(
    state: str, key: str | None, begins: datetime | None, ends: datetime | None
) -> None:
    face = door_code.face(state, key, begins, ends, NOW)
    assert face in get_args(door_code.Face)
    certain = begins is not None and ends is not None and begins <= NOW < ends
    assert (face == "shown") == (state == "admitted" and key == "issued" and certain)


@given(
    st.none() | st.sampled_from(get_args(payment.State)),
    st.none() | st.just("insufficient_funds"),
    st.integers(0, 10_000),
)
def test_a_payment_is_paid_only_when_the_books_say_so(
    state: str | None, declined: str | None, seconds: int
) -> None:
    face = payment_face.face(state, declined, timedelta(seconds=seconds))
    assert face in get_args(payment_face.Face)
    assert (face == "paid") == (state == "succeeded")
    assert payment_face.is_waiting(face) == (
        state in ("open", "processing", "unknown") and face != "declined"
    )


@pytest.mark.parametrize("state", get_args(payment.State))
def test_an_amount_that_is_only_set_aside_is_not_paid(state: str) -> None:
    """And not waited for: nothing comes of it by itself."""
    face = payment_face.face(state, None, timedelta(hours=1), set_aside=True)
    assert (face == "set_aside") == (state == "open")
    assert face != "set_aside" or not payment_face.is_waiting(face)


@pytest.mark.parametrize(
    ("seconds", "declined", "face"),
    [
        (0, None, "holding"),
        (59, None, "holding"),
        (60, None, "slow"),
        (3, "expired_card", "holding"),
        (4, "expired_card", "declined"),
        (600, "expired_card", "declined"),
    ],
)
def test_patience(seconds: int, declined: str | None, face: str) -> None:
    assert payment_face.face("open", declined, timedelta(seconds=seconds)) == face


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(-10_000, 10_000))
def test_the_deposit_asks_for_no_more_than_is_owed(deposit: int, charged: int, owed: int) -> None:
    balance = min(owed, charged)
    asked = pricing.deposit_open(deposit, charged, balance)
    assert 0 <= asked <= max(0, balance)
    assert asked <= deposit or asked == 0


AGO, LATER = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("of", "key", "face"),
    [
        ("reserved", None, "check_in"),
        ("reserved", "issued", "check_in"),
        ("no_show", None, "check_in"),
        ("admitted", None, "none"),
        ("admitted", "requested", "preparing"),
        ("admitted", "issued", "shown"),
        ("admitted", "missing", "missing"),
        ("admitted", "failed", "refused"),
        ("admitted", "revoking", "leaving"),
        ("admitted", "revoked", "gone"),
        *(
            (over, key, face)
            for over in ("departed", "cancelled")
            for key, face in (
                (None, "none"),
                ("failed", "none"),
                ("requested", "leaving"),
                ("issued", "leaving"),
                ("missing", "leaving"),
                ("revoking", "leaving"),
                ("revoked", "gone"),
            )
        ),
    ],
)
def test_the_door_by_stay_and_key(of: str, key: str | None, face: str) -> None:
    assert door_code.face(of, key, AGO, LATER, NOW) == face


@pytest.mark.parametrize(
    ("begins", "ends", "face"),
    [
        (None, LATER, "early"),
        (AGO, None, "early"),
        (LATER, LATER, "early"),
        (NOW, LATER, "shown"),
        (AGO, NOW, "over"),
        (AGO, AGO, "over"),
    ],
)
def test_the_code_from_its_first_to_before_its_last_instant(
    begins: datetime | None, ends: datetime | None, face: str
) -> None:
    assert door_code.face("admitted", "issued", begins, ends, NOW) == face


@pytest.mark.parametrize(
    ("state", "face"),
    [
        (None, "nothing"),
        ("open", "declined"),
        ("processing", "slow"),
        ("unknown", "slow"),
        ("succeeded", "paid"),
        ("canceled", "given_up"),
        ("refund_owed", "returned"),
        ("refunded", "returned"),
    ],
)
def test_the_payment_by_its_state(state: str | None, face: str) -> None:
    hour = timedelta(hours=1)
    assert payment_face.face(state, "card_declined", hour) == face
    assert payment_face.is_waiting("holding")
    assert payment_face.is_waiting("slow")
    assert not payment_face.is_waiting("declined")


@pytest.mark.parametrize(
    ("due", "charged", "balance", "asked"),
    [
        (2000, 6000, 6000, 2000),  # nothing came yet
        (2000, 6000, 5500, 1500),  # 500 came
        (2000, 6000, 4000, 0),  # the deposit came
        (2000, 6000, 1000, 0),
        (6000, 6000, 6000, 6000),
        (2000, 1000, 1000, 1000),  # a price that fell below its deposit
        (0, 6000, 6000, 0),
        (2000, 0, 0, 0),
    ],
)
def test_the_deposit_that_is_open(due: int, charged: int, balance: int, asked: int) -> None:
    assert pricing.deposit_open(due, charged, balance) == asked
