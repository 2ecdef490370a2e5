"""An order. Before payment there is only a cart.

A stuck order goes through `failed` on its way to a refund: the trail says that we claimed it.
"""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "paid",
    "queued",
    "fulfilling",
    "failed",
    "refunded",
    "fulfilled",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    paid: Exits
    queued: Exits
    fulfilling: Exits
    failed: Exits
    refunded: Exits
    fulfilled: Exits


TABLE: Table = {
    "paid": {
        "claimed": "fulfilling",
        "parked": "queued",
        "money_returned": "refunded",
    },
    "queued": {
        "claimed": "fulfilling",
        "money_returned": "refunded",
    },
    "fulfilling": {
        "fulfilled": "fulfilled",
        "fulfilment_failed": "failed",
    },
    "failed": {
        "money_returned": "refunded",
    },
    "refunded": {},
    "fulfilled": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("order", initial="paid", table=TABLE)
