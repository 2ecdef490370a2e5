"""Billing periods: calendar months and years keep the day of the anchor where they can."""

import calendar
from datetime import UTC, datetime, timedelta

from sandbox.stripe.world import Obj


def later(start: int, price: Obj, anchor: int, periods: int = 1) -> int:
    """The end of the period that begins at `start`, in seconds.

    A subscription anchored on the 31st ends on the last day of a shorter month and returns to
    the 31st after it, as Stripe's do.
    """
    interval = price["recurring"]["interval"]
    count = price["recurring"]["interval_count"] * periods
    begin = datetime.fromtimestamp(start, UTC)
    if interval in ("day", "week"):
        days = count * (7 if interval == "week" else 1)
        return int((begin + timedelta(days=days)).timestamp())
    months = count * (12 if interval == "year" else 1)
    return int(_add_months(begin, months, datetime.fromtimestamp(anchor, UTC).day).timestamp())


def _add_months(begin: datetime, months: int, day: int) -> datetime:
    year, month0 = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    last = calendar.monthrange(year, month0 + 1)[1]
    return begin.replace(year=year, month=month0 + 1, day=min(day, last))
