"""Make the mutants, learn what the tests reach, try, count. Words choose files by their paths."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict

from sandbox.mutation import making
from sandbox.mutation.notes import Mutant, Notes, Result
from sandbox.process import ROOT

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "var", "__pycache__", ".*_cache")
PROCESSES = 2


def main() -> int:
    order = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    order.add_argument("words", nargs="*", help="only files whose path holds one of these")
    order.add_argument("--again", action="store_true", help="also what was tried before")
    order.add_argument("--survivors", action="store_true", help="also what survived before")
    order.add_argument("--show", action="store_true", help="only count and show what survived")
    asked = order.parse_args()

    notes = Notes(ROOT / "var" / "mutants")
    files = making.chosen_files(asked.words)
    mutants = [mutant for path in files for mutant in making.mutants_of(path, notes.switchable)]
    if not asked.show:
        before = {} if asked.again else standing(notes, mutants)
        waiting = [
            mutant
            for mutant in mutants
            if mutant.name not in before or (asked.survivors and not before[mutant.name].seen)
        ]
        print(f"mutants: {len(mutants)} in {len(files)} files, {len(waiting)} to try", flush=True)
        prepare(notes, waiting)
        notes.plan(unseen_by_types(notes, waiting))
        if notes.files_to_learn():
            together("learn", notes)
        together("try", notes)
    return report(standing(notes, mutants), mutants)


def standing(notes: Notes, mutants: list[Mutant]) -> dict[str, Result]:
    """What is known of these mutants, made from the text as it is."""
    known = notes.results()
    return {
        mutant.name: known[mutant.name]
        for mutant in mutants
        if mutant.name in known and known[mutant.name].made_from == mutant.made_from
    }


def prepare(notes: Notes, mutants: list[Mutant]) -> None:
    """A copy of the tree in which every mutant waits to be chosen."""
    notes.folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(notes.tree, ignore_errors=True)
    shutil.copytree(ROOT, notes.tree, ignore=LEFT_OUT, symlinks=True)
    for shared in (".venv", "node_modules"):
        if (ROOT / shared).exists():
            (notes.tree / shared).symlink_to(ROOT / shared)
    for path in making.chosen_files([]):
        text = making.switchable(path, notes.switchable)
        (notes.tree / path).write_text(text, encoding="utf-8")
    outside = {mutant.name for mutant in mutants if mutant.outside}
    for path in {mutant.path for mutant in mutants if mutant.outside}:
        for name, text in making.texts(path, outside):
            notes.keep_text(name, text)


def unseen_by_types(notes: Notes, mutants: list[Mutant]) -> list[Mutant]:
    """Those that mypy lets pass. The others could not be committed: `make check` is strict."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--output", "json", "--no-warn-unreachable"),
            *("--disable-error-code", "unused-ignore", "--cache-dir", "../mypy"),
            *making.chosen_files([]),
        ],
        cwd=notes.tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 1):
        raise SystemExit(f"mutants: mypy did not run\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    wrong: dict[str, set[int]] = defaultdict(set)
    for told in map(json.loads, run.stdout.splitlines()):
        if told["severity"] == "error":
            wrong[told["file"]].add(told["line"])
    caught = {
        name
        for path in {mutant.path for mutant in mutants}
        for name, lines in making.places(path, notes.switchable).items()
        if not wrong[path].isdisjoint(lines)
    }
    for mutant in mutants:
        if mutant.name in caught:
            notes.keep(Result.of(mutant, "types", "mypy --strict", 0, 0))
    return [mutant for mutant in mutants if mutant.name not in caught]


def together(what: str, notes: Notes) -> None:
    """In so many processes; each has servers of its own."""
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "sandbox.mutation.trying"),
                *(what, str(share), str(PROCESSES)),
            ],
            cwd=notes.tree,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        )
        for share in range(PROCESSES)
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise SystemExit(f"mutants: a process could not {what}")


def report(results: dict[str, Result], mutants: list[Mutant]) -> int:
    by_path: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_path[mutant.path].append(mutant)
    for path, its in by_path.items():
        alive = {m.name for m in its if m.name in results and not results[m.name].seen}
        for name, text in making.texts(path, alive):
            print(f"\n{name}  [{results[name].outcome} of {results[name].tests}]")
            print(making.change(path, text))
    print(f"\n{'':34}{'made':>6}{'types':>7}{'tests':>7}{'alive':>7}{'untried':>9}{'score':>9}")
    for path, its in by_path.items():
        line(path, its, results)
    line("all", mutants, results)
    return 0


def line(name: str, mutants: list[Mutant], results: dict[str, Result]) -> None:
    """The score is the tests' alone: what mypy refuses counts neither for them nor against."""
    known = [results[mutant.name] for mutant in mutants if mutant.name in results]
    types = sum(result.outcome == "types" for result in known)
    seen = sum(result.seen for result in known) - types
    alive = len(known) - seen - types
    score = f"{100 * seen / (seen + alive):.1f} %" if seen + alive else "-"
    untried = len(mutants) - len(known)
    print(f"{name:34}{len(mutants):6}{types:7}{seen:7}{alive:7}{untried:9}{score:>9}")


if __name__ == "__main__":
    sys.exit(main())
