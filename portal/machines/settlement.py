"""The staged settlement of a deferred order (credit_line)."""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "awaiting_delivery",
    "window_open",
    "held",
    "delivery_failed",
    "settled",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    awaiting_delivery: Exits
    window_open: Exits
    held: Exits
    delivery_failed: Exits
    settled: Exits


TABLE: Table = {
    "awaiting_delivery": {
        "delivered": "window_open",
        "delivery_failed": "delivery_failed",
    },
    "window_open": {
        "window_closed": "settled",
        "disputed": "held",
    },
    "held": {
        "dispute_cleared": "window_open",
        "delivery_failed": "delivery_failed",
    },
    "delivery_failed": {},
    "settled": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("settlement", initial="awaiting_delivery", table=TABLE)
