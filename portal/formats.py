"""How money, days and times look in a language, on the facility's clocks: one place for the page
and for the message, so that they cannot differ."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from babel import dates, numbers

from portal import clock
from portal.money import EXPONENTS, Money

DAY = {"ja": "y年M月d日(E)", "en": "EEE d MMM y"}


def money(value: Money, locale: str) -> str:
    """￥12,000 or ¥12,000; whole smallest units in, no float on the way."""
    exact = Decimal(value.amount).scaleb(-EXPONENTS[value.currency])
    return str(numbers.format_currency(exact, value.currency, locale=locale))


@lru_cache(maxsize=1024)
def day(value: date, locale: str) -> str:
    """A day with its weekday. A house's pages and letters name the same few days all day long."""
    return str(dates.format_date(value, DAY[locale], locale=locale))


@lru_cache(maxsize=8)
def weekdays(locale: str, width: Literal["abbreviated", "wide"]) -> tuple[str, ...]:
    """Their names, Monday first."""
    names = dates.get_day_names(width, locale=locale)
    return tuple(str(names[day]) for day in range(7))


def month(value: date, locale: str) -> str:
    """The calendar month of a day."""
    return str(dates.format_skeleton("yMMMM", value, locale=locale))


def clock_time(value: time) -> str:
    return value.strftime("%H:%M")


def when(instant: datetime, zone: str, locale: str) -> str:
    """Day and time of an instant on the facility's clocks."""
    local = clock.local(instant, zone)
    return f"{day(local.date(), locale)} {clock_time(local.time())}"


def until(instant: datetime, zone: str, locale: str) -> str:
    """An end, as people name it: one at midnight is that of the day before."""
    local = clock.local(instant, zone)
    if local.time() == time(0):
        return day(clock.local_day(instant - timedelta(microseconds=1), zone), locale)
    return when(instant, zone, locale)
