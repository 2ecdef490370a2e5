"""From the provider's word on a subscription to our states."""

import itertools
from datetime import UTC, datetime
from typing import cast, get_args

import pytest

from portal.edges.billing.port import OVER as OVER_AT_THE_EDGE
from portal.edges.billing.port import SubscriptionStatus
from portal.machines.membership import MACHINE, State
from portal.policies.membership_progress import OVER, Word, events, is_over

LATER = datetime(2026, 12, 31, tzinfo=UTC)
STATES: tuple[State, ...] = get_args(State)
STATUSES: tuple[str, ...] = get_args(SubscriptionStatus)
EVERY = list(itertools.product(STATES, STATUSES, (None, LATER)))


@pytest.mark.parametrize(
    ("state", "status", "ends_at", "told"),
    [
        ("checkout", "incomplete", None, ()),
        ("checkout", "active", None, ("first_payment_landed",)),
        ("checkout", "trialing", None, ("first_payment_landed",)),
        ("checkout", "active", LATER, ("first_payment_landed", "end_scheduled")),
        ("checkout", "past_due", None, ("first_payment_landed", "payment_overdue")),
        ("checkout", "incomplete_expired", None, ()),
        ("active", "active", None, ()),
        ("active", "past_due", None, ("payment_overdue",)),
        ("active", "unpaid", None, ("payment_overdue",)),
        ("active", "active", LATER, ("end_scheduled",)),
        ("active", "past_due", LATER, ("end_scheduled",)),
        ("active", "incomplete", None, ()),
        ("past_due", "active", None, ("payment_recovered",)),
        ("past_due", "past_due", None, ()),
        ("past_due", "past_due", LATER, ("end_scheduled",)),
        ("scheduled_to_end", "active", LATER, ()),
        ("scheduled_to_end", "active", None, ("resumed",)),
        ("scheduled_to_end", "past_due", None, ("resumed", "payment_overdue")),
        ("applying", "active", None, ()),
        ("ended", "active", None, ()),
        ("ended", "past_due", LATER, ()),
    ],
)
def test_what_follows(
    state: State, status: str, ends_at: datetime | None, told: tuple[str, ...]
) -> None:
    assert events(state, Word(status, ends_at)) == told


@pytest.mark.parametrize(("state", "status", "ends_at"), EVERY)
def test_each_event_is_legal_and_the_word_is_then_settled(
    state: State, status: str, ends_at: datetime | None
) -> None:
    """Whatever is said in whatever state: the path exists, and said again it moves nothing more."""
    word, now = Word(status, ends_at), state
    for event in events(state, word):
        now = cast("State", MACHINE.target(now, event))
    assert events(now, word) == ()


@pytest.mark.parametrize(("state", "status", "ends_at"), EVERY)
def test_what_is_over_ends_and_moves_no_other_way(
    state: State, status: str, ends_at: datetime | None
) -> None:
    word = Word(status, ends_at)
    over = status in OVER
    assert not (over and events(state, word))
    assert is_over(state, word) == (over and state not in ("applying", "ended"))


def test_over_means_the_same_at_the_edge() -> None:
    assert set(OVER) == set(OVER_AT_THE_EDGE)
