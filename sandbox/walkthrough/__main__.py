"""Open an isolated house, walk through it, close it. Exit 0 only if every proof holds."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="monban-walkthrough-") as folder:
        # Read when the sandbox is imported: this house keeps its data apart from `make run`'s.
        os.environ["MONBAN_VAR"] = folder
        from sandbox.walkthrough import house, walk
        from sandbox.walkthrough.told import Teller

        with house.opened(Path(folder)) as open_house:
            teller = Teller()
            walk.through(open_house, teller)
            return teller.verdict()


if __name__ == "__main__":
    sys.exit(main())
