"""docs/states.md, written from the machines themselves: `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from portal.machines import MACHINES, Machine

PAGE = Path(__file__).parent.parent / "docs" / "states.md"

HEAD = """# State tables

Written by `make docs` from `portal/machines/`; a test compares the two, and another compares the
database's copy. A pair that is not listed is illegal, and a state never leads to itself.
"""


def page() -> str:
    return "\n".join([HEAD, *("\n".join(section(machine)) for machine in MACHINES)])


def section(machine: Machine) -> Iterator[str]:
    ends = ", ".join(sorted(machine.terminal))
    yield f"## {machine.name}\n"
    yield f"Begins as {machine.initial}; ends as {ends}.\n"
    yield "| from | event | to |"
    yield "| --- | --- | --- |"
    yield from (f"| {begun} | {event} | {to} |" for begun, event, to in machine.pairs())
    yield ""


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
