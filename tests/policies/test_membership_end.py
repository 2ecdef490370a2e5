"""Every cell of the table of reasons by states, written out once more (3-state-tables.md)."""

import itertools
from typing import Any, get_args

import pytest

from portal.machines import IllegalTransitionError
from portal.machines.membership import MACHINE, State
from portal.outcome import Code
from portal.policies.membership_end import TABLE, Calm, Denied, Ends, Reason, resolve

STATES = ("applying", "checkout", "active", "past_due", "scheduled_to_end", "ended")

CELLS: dict[str, tuple[str, ...]] = {
    "self_cancel": (
        "ended",
        "ended after abandon_checkout",
        "end_scheduled after set_end",
        "end_scheduled after set_end",
        "noop MEMBERSHIP_ALREADY_SCHEDULED",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "force_cancel": (
        "refused APPLICATION_UNDER_REVIEW",
        "refused CHECKOUT_IN_PROGRESS",
        "ended after end_now",
        "ended after end_now",
        "ended after end_now",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "application_rejected": (
        "ended",
        "refused CHECKOUT_IN_PROGRESS",
        "refused NOT_AN_APPLICATION",
        "refused NOT_AN_APPLICATION",
        "refused NOT_AN_APPLICATION",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "plan_retired": (
        "ended",
        "refused CHECKOUT_IN_PROGRESS",
        "end_scheduled after set_end",
        "end_scheduled after set_end",
        "noop MEMBERSHIP_ALREADY_SCHEDULED",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "checkout_expired": (
        "refused APPLICATION_UNDER_REVIEW",
        "ended after abandon_checkout",
        "noop MEMBERSHIP_STATE_CHANGED",
        "noop MEMBERSHIP_STATE_CHANGED",
        "noop MEMBERSHIP_STATE_CHANGED",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "provider_ended": (
        "never",
        "ended",
        "ended",
        "ended",
        "ended",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
    "end_reached": (
        "never",
        "ended after end_now",
        "ended after end_now",
        "ended after end_now",
        "ended after end_now",
        "noop MEMBERSHIP_ALREADY_ENDED",
    ),
}
EVERY = [
    (reason, state, told)
    for reason, row in CELLS.items()
    for state, told in zip(STATES, row, strict=True)
]


def said(reason: Reason, state: State) -> str:
    try:
        cell = resolve(reason, state)
    except IllegalTransitionError:
        return "never"
    match cell:
        case Ends(event, leg):
            return f"{event} after {leg}" if leg else event
        case Calm(code):
            return f"noop {code}"
        case Denied(code):
            return f"refused {code}"


@pytest.mark.parametrize(("reason", "state", "told"), EVERY)
def test_every_reason_in_every_state(reason: Reason, state: State, told: str) -> None:
    assert said(reason, state) == told


def test_every_reason_and_state_is_here() -> None:
    assert set(CELLS) == set(TABLE) == set(get_args(Reason))
    assert set(STATES) == set(get_args(State)) == set(MACHINE.table)


def test_an_end_moves_only_as_the_machine_does() -> None:
    rows: dict[str, Any] = dict(TABLE)
    for reason, state in itertools.product(rows, STATES):
        cell = rows[reason][state]
        if isinstance(cell, Ends):
            assert MACHINE.allows(state, cell.event)


def test_money_that_may_be_on_its_way_is_ended_by_nobody_else() -> None:
    """Out of a checkout leads only who cancels it at the provider first, or the provider's word."""
    rows: dict[str, Any] = dict(TABLE)
    for reason, row in rows.items():
        cell = row["checkout"]
        free = isinstance(cell, Ends) and cell.leg is None
        assert free == (reason == "provider_ended")
        assert cell in (
            Denied(Code.CHECKOUT_IN_PROGRESS),
            Ends("ended", "abandon_checkout"),
            Ends("ended", "end_now"),
            Ends("ended"),
        )
