"""One page of a list, latest first: found by the row that the page before ended at. No count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from portal.db import Row

SIZE = 25
Id = UUID | int


@dataclass(frozen=True, slots=True)
class Cursor:
    """At most one of the two, each the id of a row of the list."""

    after: Id | None = None
    before: Id | None = None

    @property
    def direction(self) -> str:
        return "asc" if self.before else "desc"

    def condition(
        self, table: str, row: str, *, at: str = "created_at"
    ) -> tuple[str, dict[str, Any]]:
        """Which rows lie beyond it. The cursor's own row tells where it stands; a stranger's row
        stands nowhere. `row` is the table's name in the statement, `at` the column of its time."""
        if not (cursor := self.after or self.before):
            return "true", {}
        sign = "<" if self.after else ">"
        there = f"((select {at} from {table} where id = :cursor), :cursor)"
        return f"({row}.{at}, {row}.id) {sign} {there}", {"cursor": cursor}


BEGINNING = Cursor()


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[Row]
    newer: Id | None
    older: Id | None


def cut(found: Sequence[Row], cursor: Cursor, size: int) -> Page:
    """Of one row more than a page: it says whether the list goes on, and is not shown."""
    backwards, more = cursor.before is not None, len(found) > size
    rows = found[-size:] if backwards else found[:size]
    if not rows:
        return Page([], None, None)
    has_newer = more if backwards else cursor.after is not None
    has_older = backwards or more
    return Page(rows, rows[0].id if has_newer else None, rows[-1].id if has_older else None)
