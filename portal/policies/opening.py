"""Opening hours: one stretch of every day on a house's clocks, past midnight where it closes before
it opens."""

from datetime import datetime, time, timedelta

from portal import clock


def closed_until(
    opens: time | None, closes: time | None, zone: str, now: datetime
) -> datetime | None:
    """When it opens again; None while it is open, which it always is without hours."""
    if opens is None or closes is None:
        return None
    here = clock.local(now, zone)
    at = here.time()
    past_midnight = closes < opens
    if (at >= opens or at < closes) if past_midnight else (opens <= at < closes):
        return None
    day = here.date() if at < opens else here.date() + timedelta(days=1)
    return clock.instant_at(day, opens, zone)
