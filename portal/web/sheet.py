"""Tables as CSV that a spreadsheet opens and does not execute."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

from flask import Response, stream_with_context

from portal.db import Row, Tx
from portal.web import answer

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

BOM = "\ufeff"
"""Without it Excel reads UTF-8 as the machine's own code page."""

IN_A_BATCH = 1000

Rows = Iterable[Sequence[Any]]

Read = Callable[[Tx, datetime, datetime, tuple[datetime, int], int], Sequence[Row]]
"""Lines in [start, end) by `at` and `id`: at most so many after the one that is named."""


def download(name: str, headings: Sequence[str], batches: Iterable[Rows]) -> Response:
    """Sent batch by batch, as they come."""
    sent = Response(
        stream_with_context(_written(headings, batches)), content_type="text/csv; charset=utf-8"
    )
    sent.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return sent


def batches(
    read: Read, start: datetime, end: datetime, cells: Callable[[Row], Sequence[Any]]
) -> Iterator[Rows]:
    """Each its own short transaction: a slow reader holds nothing open."""
    after = (start, 0)
    while True:
        with answer.reading() as tx:
            lines = read(tx, start, end, after, IN_A_BATCH)
        yield [cells(line) for line in lines]
        if len(lines) < IN_A_BATCH:
            return
        after = (lines[-1].at, lines[-1].id)


def _written(headings: Sequence[str], batches: Iterable[Rows]) -> Iterator[str]:
    yield BOM + _lines([headings])
    yield from map(_lines, batches)


def _lines(rows: Rows) -> str:
    written = StringIO()
    csv.writer(written).writerows([safe(cell) for cell in row] for row in rows)
    return written.getvalue()


def safe(cell: Any) -> Any:
    """An apostrophe before what would be a formula: the spreadsheet then shows it as it is. Only a
    text can be one."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
