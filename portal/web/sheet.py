"""Tables as CSV that a spreadsheet opens and does not execute."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from flask import Response

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""

BOM = "\ufeff"
"""Without it Excel reads UTF-8 as the machine's own code page."""


def download(name: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    written = StringIO()
    table = csv.writer(written)
    table.writerow(headings)
    table.writerows([safe(cell) for cell in row] for row in rows)
    answer = Response(f"{BOM}{written.getvalue()}", content_type="text/csv; charset=utf-8")
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def safe(cell: str) -> str:
    """An apostrophe before what would be a formula: the spreadsheet then shows it as it is."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell
