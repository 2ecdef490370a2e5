"""`make check`: every check, one after the other; all of their complaints, then one verdict."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox.checks import conflict_markers, local_database, migrations, templates, translations

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

TOOLS = {
    "lint": ["ruff", "check", "--quiet"],
    "format": ["ruff", "format", "--check"],
    "types": ["mypy"],
    "layers": ["lint-imports"],
}
OURS: dict[str, Callable[[Path], list[str]]] = {
    "templates": templates.problems,
    "translations": translations.problems,
    "migrations": migrations.problems,
    "conflict markers": conflict_markers.problems,
    "local database": local_database.problems,
}


def main() -> int:
    failed = [name for name, complaint in complaints() if complaint]
    if failed:
        print(f"\ncheck: {', '.join(failed)} failed", file=sys.stderr)
        return 1
    return 0


def complaints() -> Iterator[tuple[str, str]]:
    for name, look in [
        *((n, tool(argv)) for n, argv in TOOLS.items()),
        *((n, own(look)) for n, look in OURS.items()),
    ]:
        began = time.monotonic()
        complaint = look()
        verdict = "failed" if complaint else "ok"
        print(f"check: {name:<18} {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
        if complaint:
            print(complaint, flush=True)
        yield name, complaint


def tool(argv: list[str]) -> Callable[[], str]:
    def run() -> str:
        command = [str(BIN / argv[0]), *argv[1:]]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        return (said or f"{argv[0]} ended with {done.returncode}") if done.returncode else ""

    return run


def own(look: Callable[[Path], list[str]]) -> Callable[[], str]:
    return lambda: "\n".join(look(ROOT))


if __name__ == "__main__":
    sys.exit(main())
