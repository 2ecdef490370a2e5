"""Which of two words on one object of the provider's is the later one.

Events and answers bear the second in which they were made, by the provider's own clock. Two of one
second cannot be ordered by it (docs of Stripe, "Event ordering"), and an answer shows what was true
a little before it was given. Then only the object itself can tell: it is read.
"""

from datetime import datetime, timedelta
from typing import Literal

Order = Literal["later", "earlier", "undecided"]

LATENCY = timedelta(seconds=30)
"""An answer may not show what happened this long before it was given: longer than any call takes.
"""


def order(known: datetime | None, heard: datetime) -> Order:
    """`known` is when what we hold was told."""
    if known is None or heard > known:
        return "later"
    return "earlier" if heard < known - LATENCY else "undecided"
