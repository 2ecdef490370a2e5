"""A membership, from application to end.

`checkout` is an approved application whose first payment is open.
"""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "applying",
    "checkout",
    "active",
    "past_due",
    "scheduled_to_end",
    "ended",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    applying: Exits
    checkout: Exits
    active: Exits
    past_due: Exits
    scheduled_to_end: Exits
    ended: Exits


TABLE: Table = {
    "applying": {
        "approved_for_checkout": "checkout",
        "approved_for_desk_billing": "active",
        "ended": "ended",
    },
    "checkout": {
        "first_payment_landed": "active",
        "ended": "ended",
    },
    "active": {
        "payment_overdue": "past_due",
        "end_scheduled": "scheduled_to_end",
        "ended": "ended",
    },
    "past_due": {
        "payment_recovered": "active",
        "end_scheduled": "scheduled_to_end",
        "ended": "ended",
    },
    "scheduled_to_end": {
        "resumed": "active",
        "ended": "ended",
    },
    "ended": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("membership", initial="applying", table=TABLE)
