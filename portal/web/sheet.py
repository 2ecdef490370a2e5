"""Tables as CSV that a spreadsheet opens and does not execute."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from flask import Response, stream_with_context

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

BOM = "\ufeff"
"""Without it Excel reads UTF-8 as the machine's own code page."""

Rows = Iterable[Sequence[Any]]


def download(name: str, headings: Sequence[str], batches: Iterable[Rows]) -> Response:
    """Sent batch by batch, as they come."""
    answer = Response(
        stream_with_context(_written(headings, batches)), content_type="text/csv; charset=utf-8"
    )
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


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
