"""No tracked text file holds what a merge left behind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

MARKER = re.compile(rb"^(?:<{7}|>{7}|\|{7})(?:[ \t][^\n]*)?\r?$|^={7}\r?$", re.MULTILINE)
MIDDLE = b"=" * 7
UNDERLINES_HEADINGS = {".md", ".rst", ".txt"}


def problems(root: Path) -> list[str]:
    found = []
    for path in tracked(root):
        for number, marker in markers(path):
            found.append(f"{path.relative_to(root)}:{number}: merge-conflict marker {marker}")
    return found


def tracked(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    paths = [root / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def markers(path: Path) -> list[tuple[int, str]]:
    content = path.read_bytes()
    if b"\0" in content[:8000]:
        return []
    return [
        (content.count(b"\n", 0, match.start()) + 1, match.group()[:7].decode())
        for match in MARKER.finditer(content)
        if not (match.group().strip() == MIDDLE and path.suffix in UNDERLINES_HEADINGS)
    ]
