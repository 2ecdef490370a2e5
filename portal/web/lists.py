"""A list's place in its address: the cursor that is asked for, and the pages beside this one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from flask import request, url_for

from portal.queries.keyset import Cursor, Page
from portal.web import people


def cursor() -> Cursor:
    """As the address names it; one that names both goes on from the first."""
    after = people.uuid_of(request.args.get("after"))
    return Cursor(after, None if after else people.uuid_of(request.args.get("before")))


def neighbours(endpoint: str, asked: Mapping[str, str], page: Page) -> dict[str, str | None]:
    """`newer` and `older` for `ui.pager`; None where there is none."""
    return {
        "newer": _at(endpoint, asked, before=page.newer),
        "older": _at(endpoint, asked, after=page.older),
    }


def _at(endpoint: str, asked: Mapping[str, str], **named: UUID | None) -> str | None:
    there = {name: str(value) for name, value in named.items() if value}
    query: dict[str, Any] = {name: value for name, value in asked.items() if value} | there
    return url_for(endpoint, **query) if there else None
