"""The language of a page, and how money, days and names look in it."""

from datetime import date, datetime, time
from typing import Any

from flask import Flask, Response, g, has_request_context, request, session
from flask_babel import get_locale
from markupsafe import Markup, escape

from portal import clock, formats
from portal.money import Money
from portal.web import people

LOCALES = ("ja", "en")
DEFAULT = "ja"
MOST_RANGES = 50
LONGEST_HEADER = 1000

# Characters that turn the direction of the rest of a line; <bdi> holds them inside a name, and an
# attribute or a title, where no element can, goes without them.
TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])


def select_locale() -> str:
    """Staff: their own. Guests: what they chose here, else their preference, the browser's, the
    facility's. Then Japanese."""
    if not has_request_context():
        return DEFAULT
    visit = people.visit()
    if visit is None and not g.get("bare"):
        person = people.person()
        if person:
            return person.locale
    default = visit.facility.default_locale if visit else DEFAULT
    return (
        _known(session.get("lang"))
        or _known(visit.locale if visit else None)
        or from_header(request.headers.get("Accept-Language", ""))
        or default
    )


def remember_choice() -> None:
    """`?lang=en` on a page without a signed-in person: kept in the browser's session only."""
    wanted = _known(request.args.get("lang"))
    if wanted and session.get("lang") != wanted:
        session["lang"] = wanted


def _known(locale: object) -> str | None:
    return locale if isinstance(locale, str) and locale in LOCALES else None


def from_header(header: str) -> str | None:
    """RFC 4647 lookup: the best-ranked range whose language we speak; None leaves it to a default.

    A range matches by its primary subtag, so that `ja-JP` is Japanese at its own rank. `*` stands
    for what no other range names.
    """
    ranked = _ranges(header[:LONGEST_HEADER])
    named = {tag for tag, _ in ranked}
    for tag, quality in sorted(ranked, key=lambda pair: -pair[1]):
        if quality <= 0:
            return None if tag == "*" else _any_but(named) if _accepts_rest(ranked) else None
        if tag in LOCALES:
            return tag
        if tag == "*" and named & set(LOCALES):
            return _any_but(named)
    return None


def _accepts_rest(ranked: list[tuple[str, float]]) -> bool:
    return any(tag == "*" and quality > 0 for tag, quality in ranked)


def _any_but(named: set[str]) -> str | None:
    return next((locale for locale in LOCALES if locale not in named), None)


def _ranges(header: str) -> list[tuple[str, float]]:
    """[(primary subtag, quality)] in the order written; what cannot be read is left out."""
    found = []
    for part in header.split(",")[:MOST_RANGES]:
        tag, *parameters = (piece.strip() for piece in part.split(";"))
        quality = _quality(parameters)
        if tag and quality is not None:
            found.append((tag.split("-")[0].lower(), quality))
    return found


def _quality(parameters: list[str]) -> float | None:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() != "q":
            continue
        value = value.strip()
        if not value or not value.isascii() or not value.replace(".", "", 1).isdigit():
            return None
        return float(value) if float(value) <= 1 else None
    return 1.0


def language() -> str:
    """`ja` or `en`, as this page is written."""
    return str(get_locale() or DEFAULT)


def zone() -> str:
    house = people.facility()
    return house.time_zone if house else "UTC"


# What templates use ---------------------------------------------------------------------------


def money(amount: int | Money | None, currency: str | None = None) -> str:
    """￥12,000 or ¥12,000; whole smallest units in, no float on the way."""
    if amount is None:
        return ""
    if isinstance(amount, Money):
        return money(amount.amount, amount.currency)
    if currency is None:
        house = people.facility()
        currency = house.currency if house else "JPY"
    return formats.money(Money(amount, currency), language())


def when(instant: datetime | None) -> str:
    """Day and time of an instant on the facility's clocks."""
    if instant is None:
        return ""
    return formats.when(instant, zone(), language())


def until(instant: datetime | None) -> str:
    """The end of something on the facility's clocks: one at midnight is that of the day before."""
    return "" if instant is None else formats.until(instant, zone(), language())


def day(value: date | datetime | None) -> str:
    """A day with its weekday; of an instant, the facility's day."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        value = clock.local(value, zone()).date()
    return formats.day(value, language())


def month(value: date) -> str:
    """The calendar month of a day."""
    return formats.month(value, language())


def clock_time(value: datetime | time | None) -> str:
    """15:00, on the facility's clocks."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        value = clock.local(value, zone()).time()
    return formats.clock_time(value)


def iso(instant: datetime) -> str:
    """For <time datetime="…">."""
    return clock.local(instant, zone()).isoformat(timespec="seconds")


def person_name(name: str) -> Markup:
    """A name that cannot turn the line around it: H17."""
    return Markup('<bdi class="name">%s</bdi>') % escape(name)


def plain_name(name: str) -> str:
    """The same for a title or an attribute, where no element fits."""
    return name.translate(TURNING)


def headers(response: Response) -> Response:
    """What a cache must know of a page."""
    if response.mimetype == "text/html":
        response.headers["Content-Language"] = language()
        response.vary.update(["HX-Request", "Accept-Language", "Cookie"])
    return response


def init_app(app: Flask) -> None:
    app.jinja_env.filters.update(
        money=money,
        when=when,
        until=until,
        day=day,
        month=month,
        clock_time=clock_time,
        iso=iso,
        person_name=person_name,
        plain_name=plain_name,
    )
    app.context_processor(_words)
    app.after_request(headers)


def _words() -> dict[str, Any]:
    return {"language": language(), "locales": LOCALES}
