"""What a merge leaves behind is found, and a heading's underline is left alone."""

import subprocess
from pathlib import Path

import pytest

from sandbox.checks.conflict_markers import problems

OURS, BASE, MIDDLE, THEIRS = "<" * 7, "|" * 7, "=" * 7, ">" * 7


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def commit(repository: Path, name: str, content: bytes) -> None:
    (repository / name).write_bytes(content)
    subprocess.run(["git", "add", name], cwd=repository, check=True)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_all_four_markers_are_found_with_their_lines(repository: Path, ending: str) -> None:
    lines = ["a", f"{OURS} HEAD", "b", f"{BASE} 1234", "c", MIDDLE, "d", f"{THEIRS} theirs", ""]
    commit(repository, "stays.py", ending.join(lines).encode())

    assert problems(repository) == [
        f"stays.py:2: merge-conflict marker {OURS}",
        f"stays.py:4: merge-conflict marker {BASE}",
        f"stays.py:6: merge-conflict marker {MIDDLE}",
        f"stays.py:8: merge-conflict marker {THEIRS}",
    ]


def test_a_markdown_heading_is_no_conflict_but_the_other_markers_are(repository: Path) -> None:
    commit(repository, "a.md", f"Title..\n{MIDDLE}\n\n{THEIRS} branch\n".encode())

    assert problems(repository) == [f"a.md:4: merge-conflict marker {THEIRS}"]


@pytest.mark.parametrize("text", [f"{OURS}<", f"x {OURS}", f"{MIDDLE}=", f"{THEIRS}>>> text"])
def test_longer_or_indented_rows_of_signs_are_text(repository: Path, text: str) -> None:
    commit(repository, "a.py", f"{text}\n".encode())

    assert problems(repository) == []


def test_files_that_are_not_tracked_or_not_text_do_not_count(repository: Path) -> None:
    (repository / "scratch.py").write_text(f"{OURS} HEAD\n")
    commit(repository, "image.png", b"\0\n" + OURS.encode() + b" HEAD\n")

    assert problems(repository) == []
