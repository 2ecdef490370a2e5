"""A refund: one row per refund at the provider. A refund that succeeded can still fail later
(the bank sends it back), so only `failed` is terminal; see docs/adr/0004."""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "asked",
    "unknown",
    "pending",
    "succeeded",
    "failed",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    asked: Exits
    unknown: Exits
    pending: Exits
    succeeded: Exits
    failed: Exits


TABLE: Table = {
    "asked": {
        "accepted": "pending",
        "provider_succeeded": "succeeded",
        "provider_refused": "failed",
        "answer_lost": "unknown",
    },
    "unknown": {
        "accepted": "pending",
        "provider_succeeded": "succeeded",
        "provider_refused": "failed",
        "nothing_sent": "asked",
    },
    "pending": {
        "provider_succeeded": "succeeded",
        "provider_failed": "failed",
    },
    "succeeded": {
        "provider_failed": "failed",
    },
    "failed": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("refund", initial="asked", table=TABLE)
