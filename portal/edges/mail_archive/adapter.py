"""A mail server that tells what it holds by HTTP, as MailDev does: GET /api/email."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from portal.edges.errors import Unreachable
from portal.edges.mail_archive.port import Taken
from portal.fence import require_no_transaction

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
PAGE = 100
MOST_PAGES = 50
CLOCK_MARGIN = timedelta(seconds=5)
"""Its clock beside ours."""


class HttpMailArchive:
    """Implements `MailArchive`. Opens no connection by itself."""

    def __init__(
        self,
        url: str,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._where = f"{url.rstrip('/')}/api/email"
        self._timeouts = (connect_seconds, read_seconds)

    def taken_since(self, since: datetime) -> Taken:
        """Whole from the oldest mail that it still holds: what it forgot it cannot deny."""
        require_no_transaction("mail_archive.taken_since")
        found: list[str] = []
        oldest = datetime.now(UTC)
        for message_id, taken_at in self._newest_first():
            found.append(message_id)
            oldest = taken_at
            if oldest < since - CLOCK_MARGIN:
                return Taken(found, since)
        return Taken(found, oldest + CLOCK_MARGIN)

    def _newest_first(self) -> Iterator[tuple[str, datetime]]:
        for page in range(MOST_PAGES):
            rows = self._page(page * PAGE)
            for row in rows:
                yield _read(row)
            if len(rows) < PAGE:
                return

    def _page(self, skip: int) -> list[Any]:
        query = {"sort": "desc", "skip": str(skip), "limit": str(PAGE)}
        try:
            with requests.Session() as session:
                session.trust_env = False  # a proxy would be asked for what is in the house
                answer = session.get(self._where, params=query, timeout=self._timeouts)
            answer.raise_for_status()
            rows = answer.json()
        except (requests.RequestException, ValueError) as fault:
            problem = Unreachable("the mail archive does not tell", code=type(fault).__name__)
        else:
            if isinstance(rows, list):
                return rows
            problem = Unreachable("the mail archive's answer is not a list", code="unreadable")
        raise problem


def _read(row: Any) -> tuple[str, datetime]:
    """A mail without an id is somebody else's; its time still says how far the list reaches."""
    try:
        taken_at = datetime.fromisoformat(row["time"])
        message_id = row["headers"].get("message-id")
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Unreachable("a mail in the archive is not readable", code="unreadable") from None
    if taken_at.tzinfo is None:
        raise Unreachable("a mail's time in the archive has no zone", code="unreadable")
    return str(message_id or ""), taken_at.astimezone(UTC)
