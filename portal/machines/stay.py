"""A stay. A walk-in is a stay whose source is `walk_in`.

Settlement is never stored: it is read from the ledger.
"""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "reserved",
    "no_show",
    "admitted",
    "cancelled",
    "departed",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    reserved: Exits
    no_show: Exits
    admitted: Exits
    cancelled: Exits
    departed: Exits


TABLE: Table = {
    "reserved": {
        "admitted": "admitted",
        "cancelled": "cancelled",
        "no_show": "no_show",
    },
    "no_show": {
        "reinstated": "reserved",
        "cancelled": "cancelled",
    },
    "admitted": {
        "departed": "departed",
    },
    "cancelled": {},
    "departed": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("stay", initial="reserved", table=TABLE)
