"""Instants as a busy desk reads them: without the year that everybody knows."""

from datetime import date, datetime

from babel import dates

from portal import clock
from portal.web.locale import clock_time, language, when, zone

DAY = {"ja": "M月d日(E)", "en": "EEE d MMM"}


def brief(instant: datetime | None, day: date | None = None) -> str:
    """ "15:00" on `day`, "Tue 1 Dec 15:00" in this year, else the whole date."""
    if instant is None:
        return ""
    local = clock.local(instant, zone())
    if local.date() == day:
        return clock_time(local.time())
    if local.year != clock.local(clock.now(), zone()).year:
        return when(instant)
    lang = language()
    return f"{dates.format_date(local.date(), DAY[lang], locale=lang)} {clock_time(local.time())}"
