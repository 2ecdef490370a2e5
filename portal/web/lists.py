"""A list's place in its address: the cursor that is asked for, and the pages beside this one."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from flask import request, url_for

from portal.queries.keyset import Cursor, Id, Page
from portal.web import forms, people

LONGEST = timedelta(days=366)


def cursor(read: Callable[[str | None], Id | None] = people.uuid_of) -> Cursor:
    """As the address names it; one that names both goes on from the first."""
    after = read(request.args.get("after"))
    return Cursor(after, None if after else read(request.args.get("before")))


def number_of(text: str | None) -> int | None:
    """The id of a row that is numbered; None for what is none."""
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None


def day(name: str) -> date | None:
    """A day that the address asks for; None where it names none that can be."""
    try:
        asked = datetime.strptime(request.args.get(name, "").strip(), "%Y-%m-%d")
        return forms.in_reach(asked.date())
    except ValueError:
        return None


def days() -> tuple[date, date] | None:
    """The first and the last day that the address asks for; None where that is no year or less."""
    first, last = day("from"), day("to")
    if first is None or last is None or not timedelta(0) <= last - first <= LONGEST:
        return None
    return first, last


def neighbours(endpoint: str, asked: Mapping[str, str], page: Page) -> dict[str, str | None]:
    """`newer` and `older` for `ui.pager`; None where there is none."""
    return {
        "newer": _at(endpoint, asked, before=page.newer),
        "older": _at(endpoint, asked, after=page.older),
    }


def _at(endpoint: str, asked: Mapping[str, str], **named: Id | None) -> str | None:
    there = {name: str(value) for name, value in named.items() if value}
    query: dict[str, Any] = {name: value for name, value in asked.items() if value} | there
    return url_for(endpoint, **query) if there else None
