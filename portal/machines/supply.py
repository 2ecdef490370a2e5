"""Supply that a member offers, running beside an order.

There is no way from executing to cancelled: nobody pulls a card while it is being used.
"""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "offered",
    "matched",
    "executing",
    "execution_failed",
    "cancelled",
    "completed",
    "refunded",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    offered: Exits
    matched: Exits
    executing: Exits
    execution_failed: Exits
    cancelled: Exits
    completed: Exits
    refunded: Exits


TABLE: Table = {
    "offered": {
        "matched": "matched",
        "cancelled": "cancelled",
    },
    "matched": {
        "execution_started": "executing",
        "cancelled": "cancelled",
    },
    "executing": {
        "completed": "completed",
        "execution_failed": "execution_failed",
    },
    "execution_failed": {
        "money_returned": "refunded",
    },
    "cancelled": {},
    "completed": {},
    "refunded": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("supply", initial="offered", table=TABLE)
