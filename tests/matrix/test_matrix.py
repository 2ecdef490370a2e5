"""The crash matrix: every act of the house, killed at every point of its run.

`make proofs` takes every point; `make test` takes some of each act, always the same.
"""

import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Iterator

import pytest

from portal import jobs, verbs
from portal.outcome import Outcome
from tests.matrix.act import Act
from tests.matrix.acts import ACTS
from tests.matrix.harness import PROPERTY, Clean, Count, Matrix, Verdict

pytestmark = pytest.mark.proof

NO_WORK = {
    "portal.jobs.house.open_house": "sets the house that a process works in",
    "portal.jobs.house.at_work": "the same, read",
    "portal.jobs.sweeps.scheduler": "names the periodic jobs to RQ; each of them is here",
}

REFUSES = {
    "portal.verbs.money_differences.only_a_person": "what nobody here can ask, it leaves alone",
}


def traced(matrix: Matrix, cleans: dict[str, Clean], act: Act) -> Clean:
    if act.name not in cleans:
        cleans[act.name] = matrix.clean(act)
    return cleans[act.name]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_it_is_done_once_wherever_it_is_killed(
    act: Act,
    matrix: Matrix,
    cleans: dict[str, Clean],
    whole: bool,
    record_property: Callable[[str, object], None],
) -> None:
    clean = traced(matrix, cleans, act)
    assert clean.wrong == []
    assert clean.after != clean.before, f"it does nothing: {clean.answer}"
    began = time.monotonic()
    tried = [matrix.kill(act, clean, at) for at in clean.share(act, whole)]
    record_property(PROPERTY, list(counted(tried, time.monotonic() - began)))
    broken = [f"{one.point}: {'; '.join(one.wrong)}" for one in tried if one.wrong]
    assert not broken, "\n".join(broken)


def counted(tried: list[Verdict], seconds: float) -> Count:
    return Count(
        points=len(tried),
        killed=sum(one.killed for one in tried),
        violated=sum(bool(one.wrong) for one in tried),
        doubts=sum(one.doubt for one in tried),
        milliseconds=round(1000 * seconds),
    )


def test_every_verb_and_every_job_is_in_the_matrix(
    matrix: Matrix, cleans: dict[str, Clean]
) -> None:
    """Read off the code itself: each public function of verbs and jobs was entered by an act's
    run, and each that answers an outcome has said Applied in one, but for those that never do."""
    runs = [traced(matrix, cleans, act) for act in ACTS]
    entered = {name for run in runs for name in run.entered}
    applied = {name for run in runs for name in run.applied}
    there = dict(public_functions())
    assert set(there) >= set(NO_WORK)
    assert set(there) - set(NO_WORK) - entered == set()
    asked = {name for name, function in there.items() if is_verb(function)}
    assert asked - applied == set(REFUSES)


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for package in (verbs, jobs):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, function in inspect.getmembers(module, inspect.isfunction):
                if function.__module__ == module.__name__ and not name.startswith("_"):
                    yield f"{module.__name__}.{name}", function


def is_verb(function: Callable[..., object]) -> bool:
    return inspect.get_annotations(function, eval_str=True).get("return") == Outcome
