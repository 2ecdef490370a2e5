"""The table of field cases names every case, and only tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "field-cases.md"

CASES = {
    "A": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "B": (1, 2, 4, 5, 7, 8, 10, 11),
    "C": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "D": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "E": (1, 2, 4, 5, 7, 8, 10, 11),
    "F": (1, 2, 4, 5, 7, 8, 10, 11),
    "G": (1, 2, 4, 5, 7, 8, 10, 11, 13),
    "H": (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17),
    "I": (1, 2, 4, 5, 7, 8, 10, 11),
    "J": (1, 2, 4, 5, 7, 8),
    "K": (1, 2, 4, 5),
}
WAITING: set[str] = set()
"""Those of areas that do not exist yet. A case leaves this list when its area is built."""


def rows() -> dict[str, str]:
    """What the table says holds each case."""
    lines = re.findall(r"^\| ([A-K]\d+) \| [^|]+ \| (.+) \|$", TABLE.read_text(), re.MULTILINE)
    assert len(lines) == len({case for case, _ in lines}), "a case has two rows"
    return dict(lines)


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def named(cell: str) -> list[tuple[str, str]]:
    """(file, test) of a cell: `tests/a.py`: `test_x`, `test_y`; `tests/b.py`: …"""
    return [
        (path, test)
        for path, tests in re.findall(r"`(tests/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", cell)
        for test in re.findall(r"`(\w+)`", tests)
    ]


def test_every_case_has_its_row() -> None:
    assert list(rows()) == [f"{kind}{number}" for kind in CASES for number in CASES[kind]]


def test_only_what_belongs_to_a_later_area_waits() -> None:
    assert {case for case, cell in rows().items() if cell.startswith("waits for")} == WAITING


@pytest.mark.parametrize("case", sorted(set(rows()) - WAITING))
def test_the_tests_of_a_case_exist_and_bear_its_name(case: str) -> None:
    held = named(rows()[case])
    assert held, f"nothing is said to hold {case}"
    for path, test in held:
        assert test in names_in(path), f"{path} has no {test}"
        assert test.startswith(f"test_{case.lower()}_")


def test_the_table_names_every_test_that_bears_a_case() -> None:
    listed = {test for cell in rows().values() for _, test in named(cell)}
    there = {
        test
        for path in (ROOT / "tests").rglob("test_*.py")
        for test in names_in(str(path.relative_to(ROOT)))
        if re.match(r"test_[a-k]\d+_", test)
    }
    assert there - listed == set()
