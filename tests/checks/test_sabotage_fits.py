"""`make sabotage` breaks the code as it is: a break that no longer fits it would break nothing."""

from pathlib import Path

import pytest

from sandbox.sabotage.breaks import BREAKS, Break


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.name)
def test_every_break_finds_what_it_breaks_and_who_must_see_it(one: Break) -> None:
    assert one.old in Path(one.file).read_text(encoding="utf-8")
    assert one.new != one.old
    assert one.checks
    assert all(Path(check.partition("::")[0]).exists() for check in one.checks)


@pytest.mark.parametrize(
    "one", [one for one in BREAKS if one.file.startswith("migrations/")], ids=lambda one: one.name
)
def test_no_later_migration_writes_anew_what_is_broken(one: Break) -> None:
    file = Path(one.file)
    newest_first = sorted(file.parent.glob("*.sql"), reverse=True)
    later = newest_first[: newest_first.index(file)]
    assert not [other for other in later if one.old in other.read_text(encoding="utf-8")]


def test_each_has_a_name_of_its_own() -> None:
    assert len({one.name for one in BREAKS}) == len(BREAKS) >= 20
