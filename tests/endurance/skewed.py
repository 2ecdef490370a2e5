"""Children whose own clock is wrong: `python -m tests.endurance.skewed SOCKET`.

They are the children of `tests.proofs.child` and do the same; the mode that a child is asked for
may be followed by the seconds that its clock is ahead, as in `queued -7200`. Only the clock of
the portal is moved, in this process: the database, the providers and the proof keep theirs.
"""

import sys
from datetime import UTC, datetime, timedelta

from flask import Flask

from portal import clock
from tests.proofs import child


class Skewed(dict[str, Flask]):
    def __getitem__(self, wanted: str) -> Flask:
        mode, _, seconds = wanted.partition(" ")
        ahead = timedelta(seconds=int(seconds or 0))
        clock.set_source(lambda: datetime.now(UTC) + ahead)
        return super().__getitem__(mode)


def main(path: str) -> None:
    load = child.load
    child.load = lambda: Skewed(load())
    child.main(path)


if __name__ == "__main__":
    main(sys.argv[1])
