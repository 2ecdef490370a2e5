"""What the processes of a run tell one another and the next run: files under `var/mutants`."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mutmut.configuration import config
from mutmut.utils.file_utils import walk_source_files

OUTSIDE = "::"
"""Between a module and the number of a mutant outside of its functions."""


@dataclass(frozen=True)
class Mutant:
    path: str
    name: str
    """`portal.move.x_move__mutmut_3`, or `portal.move::3` outside of functions."""
    made_from: str
    """The digest of the original text: of the function, or of the whole module."""
    lines: tuple[int, int] = (0, 0)
    """Of the statement that it changes, in the file where all mutants wait."""

    @property
    def outside(self) -> bool:
        return OUTSIDE in self.name

    @property
    def function(self) -> str:
        """What a test must reach to see it: `portal.move.x_move`, or the module."""
        return self.name.partition("__mutmut_" if not self.outside else OUTSIDE)[0]


@dataclass(frozen=True)
class Result:
    name: str
    made_from: str
    outcome: str
    by: str
    """The test that saw it."""
    tests: int
    seconds: float

    @classmethod
    def of(cls, mutant: Mutant, outcome: str, by: str, tests: int, seconds: float) -> Result:
        return cls(mutant.name, mutant.made_from, outcome, by, tests, round(seconds, 2))

    @property
    def seen(self) -> bool:
        return self.outcome in ("killed", "timeout", "types")


@dataclass
class Learned:
    """Of one test without any mutant: what it cost, and the lines that it reached by file."""

    seconds: float
    reached: dict[str, list[int]]

    def reaches(self, mutant: Mutant) -> bool:
        first, last = mutant.lines
        return any(first <= line <= last for line in self.reached.get(mutant.path, ()))


class Notes:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.switchable = folder / "switchable"

    # Which mutants -----------------------------------------------------------------------------

    def plan(self, mutants: Iterable[Mutant]) -> None:
        self._write("plan.json", [asdict(mutant) for mutant in mutants])

    def to_try(self) -> list[Mutant]:
        rows = self._read("plan.json", [])
        return [Mutant(**{**row, "lines": tuple(row["lines"])}) for row in rows]

    def text(self, mutant: Mutant) -> str:
        return (self.folder / "texts" / f"{mutant.name}.py").read_text(encoding="utf-8")

    def keep_text(self, name: str, text: str) -> None:
        file = self.folder / "texts" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    # What became of them -----------------------------------------------------------------------

    def keep(self, result: Result) -> None:
        with (self.folder / "results.jsonl").open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps(asdict(result)) + "\n")

    def results(self) -> dict[str, Result]:
        """By name, the newest of each."""
        file = self.folder / "results.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return {row["name"]: Result(**row) for row in map(json.loads, lines)}

    # What the tests reach ----------------------------------------------------------------------

    def files_to_learn(self) -> list[str]:
        """Test files that are not known as they are now, with the portal as it is now."""
        known = self._read("learned.json", {})
        return [
            file for file in self.test_files() if known.get(file, {}).get("as") != self._as(file)
        ]

    def keep_learned(self, files: list[str], told: dict[str, Learned], outer: list[str]) -> None:
        by_file: dict[str, dict[str, Any]] = {file: {} for file in files}
        for test, learned in told.items():
            by_file.setdefault(test.partition("::")[0], {})[test] = asdict(learned)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read("learned.json", {})
            for file, tests in by_file.items():
                known[file] = {"as": self._as(file), "tests": tests}
            self._write("learned.json", known)
            self._write("outer.json", outer)

    def learned(self) -> dict[str, Learned]:
        known = self._read("learned.json", {})
        return {
            test: Learned(**of)
            for file in self.test_files()
            for test, of in known[file]["tests"].items()
        }

    def mutated_files(self) -> list[str]:
        return sorted(str(path) for path in walk_source_files() if config().should_mutate(path))

    def test_files(self) -> list[str]:
        chosen = [self.tree / path for path in config().pytest_add_cli_args_test_selection]
        files = [file for path in chosen for file in sorted(path.rglob("test_*.py"))]
        return [str(file.relative_to(self.tree)) for file in files]

    def outer(self) -> list[str]:
        """Modules of others that the tests import."""
        found: list[str] = self._read("outer.json", [])
        return found

    def _as(self, file: str) -> str:
        helpers = sorted((self.tree / "tests").glob("*.py"))
        portal = sorted((self.tree / "portal").rglob("*.py"))
        digest = hashlib.sha256()
        for one in (*helpers, *portal, self.tree / file):
            digest.update(one.read_bytes())
        return digest.hexdigest()

    def _read(self, name: str, otherwise: Any) -> Any:
        file = self.folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else otherwise

    def _write(self, name: str, what: Any) -> None:
        (self.folder / name).write_text(json.dumps(what, indent=1), encoding="utf-8")
