"""A door key. Only the lock controller's word makes it `issued` or `revoked`."""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "requested",
    "issued",
    "missing",
    "revoking",
    "failed",
    "revoked",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    requested: Exits
    issued: Exits
    missing: Exits
    revoking: Exits
    failed: Exits
    revoked: Exits


TABLE: Table = {
    "requested": {
        "set_on_lock": "issued",
        "lock_refused": "failed",
        "revoke_asked": "revoking",
    },
    "issued": {
        "revoke_asked": "revoking",
        "vanished_from_lock": "missing",
    },
    "missing": {
        "set_on_lock": "issued",
        "revoke_asked": "revoking",
    },
    "revoking": {
        "removed_from_lock": "revoked",
    },
    "failed": {},
    "revoked": {},
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("entry_key", initial="requested", table=TABLE)
