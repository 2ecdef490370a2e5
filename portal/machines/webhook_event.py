"""A webhook event. A claim, a takeover and a release move columns of the claim, not the state."""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "processing",
    "completed",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    processing: Exits
    completed: Exits


TABLE: Table = {
    "processing": {
        "completed": "completed",
    },
    "completed": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("webhook_event", initial="processing", table=TABLE)
