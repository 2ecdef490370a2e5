"""`make simulate`: live a month, say what happened in it, and fail if anything differs."""

from __future__ import annotations

import argparse
import sys
import time

from sandbox.simulation.ground import opened
from sandbox.simulation.month import live
from sandbox.simulation.verdict import differences


def main() -> int:
    asked = argparse.ArgumentParser(prog="make simulate")
    asked.add_argument("--members", type=int, default=500)
    asked.add_argument("--days", type=int, default=34)
    asked.add_argument("--seed", type=int, default=20261130)
    wanted = asked.parse_args()
    print(f"simulation: seed {wanted.seed}, {wanted.members} members, {wanted.days} days")
    began = time.monotonic()
    with opened() as ground:
        month = live(ground, wanted.seed, wanted.members, wanted.days)
        found = differences(ground)
        for name, often in sorted(month.acts.items()):
            print(f"  {often:>6}  {name}")
        for name, often in sorted(month.faults.items()):
            print(f"  {often:>6}  fault: {name}")
        states = ground.rows("select state, count(*) from memberships group by state order by 1")
        print("  " + ", ".join(f"{many} {state}" for state, many in states))
        periods = ground.one("select count(*) from membership_periods")
        print(f"  {periods} periods granted, in {time.monotonic() - began:.0f} s")
        subjects = sum(many for _, many in states)
    for one in found:
        print(f"  DIFFERS: {one}")
    faults = sum(month.faults.values())
    print(f"simulation: {subjects} subjects, {faults} faults, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
