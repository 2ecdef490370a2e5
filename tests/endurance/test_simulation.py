"""A small month of `make simulate`: whatever its faults, we and the provider end alike."""

import re
import subprocess
import sys

import pytest

from tests.figures import Figure

CLOSING = re.compile(r"^simulation: (\d+) subjects, (\d+) faults, (\d+) differences$", re.M)


@pytest.mark.proof
def test_after_a_month_of_faults_nothing_differs(whole: bool, figure: Figure) -> None:
    members, days = (500, 34) if whole else (6, 5)
    command = [sys.executable, "-m", "sandbox.simulation"]
    wanted = ["--members", str(members), "--days", str(days), "--seed", "7"]
    run = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    said = CLOSING.search(run.stdout)
    assert said is not None, run.stdout + run.stderr
    subjects, faults, differences = map(int, said.groups())
    figure("simulation", subjects=subjects, faults=faults, differences=differences)
    assert run.returncode == 0, run.stdout
    assert subjects >= members
    assert faults > 0
    assert differences == 0
