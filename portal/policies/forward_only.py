"""Which of two words on one object of the provider's is the later one.

An event bears the second in which it was made, and two of one second cannot be ordered by it: then
only the object itself can tell (docs of Stripe, "Event ordering").
"""

from datetime import datetime
from typing import Literal

Order = Literal["later", "earlier", "undecided"]


def order(known: datetime | None, heard: datetime, *, known_was_read: bool) -> Order:
    """`known` is when what we hold was true: the time of an event, or that of a reading, which
    began after everything that it shows."""
    if known is None or heard > known:
        return "later"
    if heard < known:
        return "earlier"
    return "earlier" if known_was_read else "undecided"
