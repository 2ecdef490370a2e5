"""What a guest who comes back from the card form is told: by our own books, and by nothing else.

Patience is the only thing that time decides. An open payment's decline may be that of an earlier
card, while the word on the last one is still on its way; so it is believed only after a moment.
"""

from datetime import timedelta
from typing import Literal

Face = Literal[
    "nothing", "holding", "slow", "declined", "set_aside", "paid", "given_up", "returned"
]

BELIEVE_DECLINE_AFTER = timedelta(seconds=4)
SLOW_AFTER = timedelta(seconds=60)

_SETTLED: dict[str, Face] = {
    "succeeded": "paid",
    "canceled": "given_up",
    "refund_owed": "returned",
    "refunded": "returned",
}


def face(
    state: str | None, decline_code: str | None, waited: timedelta, *, set_aside: bool = False
) -> Face:
    """By the state of the newest payment, and for how long the guest has been waiting. `set_aside`:
    the bank keeps the amount ready, and it is not taken."""
    if state is None:
        return "nothing"
    if state in _SETTLED:
        return _SETTLED[state]
    if state == "open" and set_aside:
        return "set_aside"
    if state == "open" and decline_code is not None and waited >= BELIEVE_DECLINE_AFTER:
        return "declined"
    return "slow" if waited >= SLOW_AFTER else "holding"


def is_waiting(seen: Face) -> bool:
    return seen in ("holding", "slow")
