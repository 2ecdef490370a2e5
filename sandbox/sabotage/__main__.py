"""Break, check, mend, in a copy of the tree. Exit 0 only if no break survives its checks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sandbox.process import ROOT
from sandbox.sabotage.breaks import BREAKS, Break

CAUGHT = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.M)
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "var", "__pycache__")
SECONDS = 600


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
            caught = tried(copy, one)
            survived += caught is None
            print(
                f"{'caught  ' if caught else 'SURVIVED'}  {one.name}  [{caught or '-'}]", flush=True
            )
    print(f"sabotage: {len(chosen)} breaks, {len(chosen) - survived} caught, {survived} survived")
    return 1 if survived else 0


def tried(tree: Path, one: Break) -> str | None:
    """The first check that turned red, or None. The file is as before afterwards."""
    file = tree / one.file
    whole = file.read_text(encoding="utf-8")
    if one.old not in whole:
        raise SystemExit(f"{one.name}: {one.file} no longer holds what it breaks")
    file.write_text(whole.replace(one.old, one.new, 1), encoding="utf-8")
    try:
        run = subprocess.run(
            [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-q", "-x", *one.checks],
            cwd=tree,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        file.write_text(whole, encoding="utf-8")
    if run.returncode == 0:
        return None
    found = CAUGHT.search(run.stdout)
    if run.returncode != 1 or found is None:
        raise SystemExit(f"{one.name}: its checks did not run\n{run.stdout[-2000:]}")
    return found.group(1)


if __name__ == "__main__":
    sys.exit(main())
