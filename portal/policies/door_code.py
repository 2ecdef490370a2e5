"""What a guest may be told of the door: the code itself only while it certainly opens it."""

from datetime import datetime
from typing import Literal

Face = Literal[
    "check_in",  # not checked in yet
    "preparing",  # ordered, the lock has not confirmed it
    "shown",
    "early",
    "over",
    "missing",
    "refused",
    "leaving",  # the lock has been asked to remove it
    "gone",
    "none",
]

_OTHERWISE: dict[str | None, Face] = {
    "requested": "preparing",
    "missing": "missing",
    "failed": "refused",
    "revoking": "leaving",
    "revoked": "gone",
    None: "none",
}


def face(
    stay: str,
    key: str | None,
    starts_at: datetime | None,
    ends_at: datetime | None,
    now: datetime,
) -> Face:
    """By the state of the stay, the state and the window of its newest key."""
    if stay in ("reserved", "no_show"):
        return "check_in"
    if stay != "admitted" and key in (None, "failed"):
        return "none"
    if stay != "admitted":
        return "gone" if key == "revoked" else "leaving"
    if key != "issued":
        return _OTHERWISE[key]
    if starts_at is None or ends_at is None or now < starts_at:
        return "early"
    return "shown" if now < ends_at else "over"
