"""What the search looks for."""

import unicodedata
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from portal.queries.stays import Cursor, names, phone_digits


@pytest.mark.parametrize(
    ("typed", "looked_for"),
    [
        ("090-1234-5678", ["9012345678"]),
        ("０９０１２３４５６７８", ["9012345678"]),
        ("+81 90-1234-5678", ["9012345678", "819012345678"]),
        ("+81 (0)90 1234 5678", ["9012345678", "8109012345678"]),
        ("090ー1234ー5678", ["9012345678"]),
        ("5678", ["5678"]),
        ("567", []),
        ("A01", []),
        ("タナカ", []),
        ("", []),
        ("----", []),
    ],
)
def test_a_number_is_looked_for_as_it_may_be_stored(typed: str, looked_for: list[str]) -> None:
    assert phone_digits(unicodedata.normalize("NFKC", typed)) == looked_for


@pytest.mark.parametrize(
    ("typed", "looked_for"),
    [
        ("tanaka", ["tanaka", "タナカ"]),
        ("タナカ", ["タナカ"]),
        ("A01", ["a01"]),
        ("%", ["%"]),
    ],
)
def test_romaji_is_looked_for_as_kana_too(typed: str, looked_for: list[str]) -> None:
    assert names(typed) == looked_for


def test_a_cursor_reads_what_it_wrote_and_nothing_else() -> None:
    cursor = Cursor(datetime(2026, 10, 10, 3, 4, 5, 678901, tzinfo=UTC), uuid4())
    assert Cursor.read(str(cursor)) == cursor
    for broken in (None, "", "x", "1.2", f"{'9' * 18}.{uuid4()}", "1." + "-" * 36, "1.\x00"):
        assert Cursor.read(broken) is None
