"""What the portal asks of LINE: one text to one person, at most once per retry key."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class Line(Protocol):
    def push(self, *, to: str, text: str, retry_key: UUID) -> None:
        """Returns when LINE has accepted this key, now or earlier.

        The same `retry_key` may be sent again after Unreachable and after Unknown: LINE carries
        it out once (for 24 hours). Rejected is for good: blocked, not a user, not our token.
        Unreachable `rate_limited` has `retry_after` in seconds where LINE told it.
        Text beyond LINE's limit is cut between two characters as people see them.
        """
        ...
