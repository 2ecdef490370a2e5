"""One line of history, whose released beginning never moves."""

from pathlib import Path

import pytest
from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory

from sandbox.checks.migrations import digest, problems, read_all


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "migrations" / "versions").mkdir(parents=True)
    migration(tmp_path, "0001", None)
    migration(tmp_path, "0002", "0001")
    release(tmp_path, "0001")
    return tmp_path


def migration(root: Path, revision: str, parent: str | None, name: str | None = None) -> None:
    path = root / "migrations" / "versions" / f"{name or revision}.py"
    path.write_text(
        f"revision: str = {revision!r}\ndown_revision = {parent!r}\nimport nothing_here\n"
    )


def release(root: Path, *revisions: str) -> None:
    known = {one.revision: one for one in read_all(root / "migrations" / "versions")}
    lines = [f"{name} {digest(known[name]) if name in known else 'gone'}\n" for name in revisions]
    (root / "migrations" / "released.txt").write_text(f"# oldest first\n{''.join(lines)}")


def test_a_straight_history_passes(root: Path) -> None:
    assert problems(root) == []


def test_what_was_given_out_is_not_changed(root: Path) -> None:
    """Nor the statements in SQL beside it."""
    release(root, "0001", "0002")
    assert problems(root) == []
    path = root / "migrations" / "versions" / "0001.py"
    path.write_text(f"{path.read_text()}# another word\n")
    (said,) = problems(root)
    assert said.startswith("released migration 0001 was changed; write a new one")
    release(root, "0001", "0002")
    (root / "migrations" / "sql").mkdir()
    (root / "migrations" / "sql" / "0002_more.sql").write_text("select 1;\n")
    (said,) = problems(root)
    assert said.startswith("released migration 0002 was changed")


def test_two_heads_are_told_by_name(root: Path) -> None:
    migration(root, "0003a", "0002")
    migration(root, "0003b", "0002")

    assert problems(root) == ["there must be one last migration, there are 2: 0003a, 0003b"]


def test_k2_one_id_claimed_twice_names_both_files(root: Path) -> None:
    migration(root, "0002", "0001", name="0002_other")

    assert problems(root) == [
        "revision 0002 is claimed by 0002.py and 0002_other.py; give the newer one another id"
    ]


def test_following_somebody_who_is_not_there(root: Path) -> None:
    migration(root, "0003", "0002x")

    assert "0003.py: follows 0002x, which does not exist" in problems(root)


def test_a_second_beginning(root: Path) -> None:
    migration(root, "0000", None)

    assert "there must be one first migration, there are 2: 0000, 0001" in problems(root)


def test_k2_a_doubled_id_fails_even_where_alembic_only_warns(root: Path) -> None:
    """Alembic keeps the last one that it read, says a word, and never runs the other."""
    for path in (root / "migrations" / "versions").glob("*.py"):
        path.write_text(path.read_text().replace("import nothing_here\n", ""))
    migration(root, "0002", "0001", name="0002_other")
    other = root / "migrations" / "versions" / "0002_other.py"
    other.write_text(other.read_text().replace("import nothing_here\n", ""))
    config = AlembicConfig()
    config.set_main_option("script_location", str(root / "migrations"))
    with pytest.warns(UserWarning, match="0002 is present more than once"):
        assert set(ScriptDirectory.from_config(config).get_heads()) == {"0002"}

    assert any("claimed by" in problem for problem in problems(root))


def test_k2_a_released_migration_that_was_renumbered(root: Path) -> None:
    release(root, "0001", "0002")
    (root / "migrations" / "versions" / "0002.py").unlink()
    migration(root, "0003", "0001")

    assert problems(root) == ["released migration 0002 is gone; databases out there stand on it"]


def test_k2_a_migration_slipped_in_under_released_ones(root: Path) -> None:
    release(root, "0001", "0002")
    migration(root, "0001b", "0001")
    migration(root, "0002", "0001b")

    assert "released migration 0002 no longer follows 0001" in problems(root)


def test_without_the_record_of_releases_nothing_could_be_compared(root: Path) -> None:
    (root / "migrations" / "released.txt").unlink()

    assert problems(root)[0].startswith("migrations/released.txt is missing")


def test_no_migration_at_all(tmp_path: Path) -> None:
    assert problems(tmp_path) == ["migrations/versions: there is no migration"]


def test_k2_our_own_history_holds_what_was_released() -> None:
    assert problems(Path(__file__).parent.parent.parent) == []
