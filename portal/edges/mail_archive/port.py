"""What the portal asks of a mail archive: which messages it has. SMTP itself cannot be asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Taken:
    """Message-IDs, with their angle brackets; all of them that were taken at `since` or later."""

    message_ids: Collection[str]
    since: datetime


class MailArchive(Protocol):
    def taken_since(self, since: datetime) -> Taken:
        """In at most 50 pages of 100; a list cut there, or an archive that was emptied
        meanwhile, reaches less far back. Raises Unreachable."""
        ...
