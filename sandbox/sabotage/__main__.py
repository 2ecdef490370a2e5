"""Break, check, mend, in a copy of the tree. Exit 0 only if no break survives.

Each break meets the tests that speak of its promise, and then the proofs and the crash matrix; the
first check of each that turns red is named.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sandbox.process import ROOT
from sandbox.sabotage.breaks import BREAKS, Break

CAUGHT = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.M)
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "node_modules", "var", "build", "mutants", "__pycache__"
)
COMPLETE = "tests/matrix/test_matrix.py::test_every_verb_and_every_job_is_in_the_matrix"
PROOFS = ("tests/proofs", "tests/matrix", "-n", "3", "--dist", "load", "--deselect", COMPLETE)
"""Each process its own servers, so each act may run anywhere. That every act is there breaks with
none of these, and would run each act once more."""
NEAREST = {
    "refund": "refund or cancel",
    "payment": "payment or event or refund",
    "billing": "card or subscription",
    "member": "member or card or subscription",
    "subscription": "card or subscription",
    "outbox": "outbox or message or mail",
    "messages": "outbox or message or mail",
    "locks": "key or code or door or lock",
    "key": "key or code or door or lock",
    "inbox": "event or inbox",
    "events": "event or inbox",
    "hooks": "event or inbox",
    "ticket": "ticket or book",
    "quota": "visit",
    "day_close": "day_close",
    "move": "stays or refund",
    "stays": "stays",
}
"""By a word of the broken file: the acts and proofs that meet the break first."""
NONE_CHOSEN = 5
SECONDS = 3600
"""More than the checks of a break take beside other work: only what hangs comes to it."""


def main() -> int:
    """Words on the command line choose the breaks whose name holds one of them."""
    chosen = [one for one in BREAKS if not sys.argv[1:] or any(w in one.name for w in sys.argv[1:])]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="monban-sabotage-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
        for shared in (".venv", "node_modules"):
            (copy / shared).symlink_to(ROOT / shared)
        for one in chosen:
            by_tests, by_proofs = tried(copy, one)
            survived += not (by_tests or by_proofs)
            print(f"{'caught' if by_tests or by_proofs else 'SURVIVED':<8}  {one.name}")
            print(f"          tests:  {by_tests or '-'}\n          proofs: {by_proofs or '-'}")
            sys.stdout.flush()
    print(f"sabotage: {len(chosen)} breaks, {len(chosen) - survived} caught, {survived} survived")
    return 1 if survived else 0


def tried(tree: Path, one: Break) -> tuple[str | None, str | None]:
    """The first test and the first proof that turned red. The file is as before afterwards."""
    file = tree / one.file
    whole = file.read_text(encoding="utf-8")
    if one.old not in whole:
        raise SystemExit(f"{one.name}: {one.file} no longer holds what it breaks")
    file.write_text(whole.replace(one.old, one.new, 1), encoding="utf-8")
    try:
        return red(tree, one, one.checks), of_proofs(tree, one)
    finally:
        file.write_text(whole, encoding="utf-8")


def of_proofs(tree: Path, one: Break) -> str | None:
    """The first proof, or act of the matrix, that turned red: what is near the break is tried
    first, and everything only where that stays green."""
    words = [words for noun, words in NEAREST.items() if noun in one.file]
    near = red(tree, one, (*PROOFS, "-k", words[0])) if words else None
    return near or red(tree, one, PROOFS)


def red(tree: Path, one: Break, checks: tuple[str, ...]) -> str | None:
    """What turned red first, or None."""
    run = subprocess.run(
        [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-x", *checks],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if run.returncode in (0, NONE_CHOSEN):
        return None
    found = CAUGHT.search(run.stdout)
    if found is None:
        raise SystemExit(f"{one.name}: its checks did not run\n{run.stdout[-2000:]}")
    return found.group(1)


if __name__ == "__main__":
    sys.exit(main())
