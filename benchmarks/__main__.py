"""`make bench`: every measurement at both sizes, as a table and as build/bench.json."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import checkin, events, outbox, receive, stays_list
from benchmarks.ground import opened
from benchmarks.pair import Figure

MEASURES = {
    "events": events.measure,
    "outbox": outbox.measure,
    "checkin": checkin.measure,
    "list": stays_list.measure,
    "receive": receive.measure,
}
SIZES = {"10 thousand stays": 10_000, "1 million stays": 1_000_000}
RESULT = Path("build/bench.json")


def main(wanted: list[str]) -> None:
    """All measurements, or the ones named."""
    figures: list[Figure] = []
    for size, stays in SIZES.items():
        with opened(stays) as ground:
            for name in wanted or MEASURES:
                for figure in MEASURES[name](ground):
                    figures.append(replace(figure, name=f"{figure.name}, {size}"))
                    print(figures[-1].line(), flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({one.name: one.record() for one in figures}, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
