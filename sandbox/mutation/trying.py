"""One of the processes that learn and try: opens the house, and forks for every mutant.

python -m sandbox.mutation.trying learn|try SHARE OF     in the copied tree
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from coverage import Coverage
from mutmut.mutation.trampoline import set_mutant_under_test

from sandbox.mutation.house import House, in_a_child
from sandbox.mutation.notes import Learned, Mutant, Notes, Result

PYTEST = ["-q", "--tb=no", "--assert=plain", "--no-header", "--no-summary"]
PYTEST += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler"]

LONGEST = 30
"""Seconds of tests, of the processor's time as learned: who outlives them has survived."""

LONGEST_ANEW = 4
"""The same of a module that is imported anew, each time with a session of its own."""

OURS = ("portal", "tests", "sandbox", "app", "worker", "migrations", "__main__")


# Learning ---------------------------------------------------------------------------------------


class Learner:
    """Runs every test once, unmutated, and notes the lines it reached and what it cost."""

    def __init__(self, files: list[str]) -> None:
        self.files = {str(Path(file).resolve()): file for file in files}
        self.coverage = Coverage(data_file=None, include=list(self.files))
        self.told: dict[str, Learned] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.began = time.process_time()
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.told[nodeid] = Learned(time.process_time() - self.began, {})

    def finish(self) -> dict[str, Learned]:
        self.coverage.stop()
        data = self.coverage.get_data()
        for absolute, file in self.files.items():
            for line, tests in data.contexts_by_lineno(absolute).items():
                for test in tests:
                    if test in self.told:
                        self.told[test].reached.setdefault(file, []).append(line)
        for failed in self.failed:
            print(f"mutants: fails without any mutant, and is left out: {failed}", flush=True)
        return {test: of for test, of in self.told.items() if test not in self.failed}


def learn(notes: Notes, house: House, files: list[str]) -> int:
    def act() -> int:
        learner = Learner(notes.mutated_files())
        learner.coverage.start()
        pytest.main([*PYTEST, *files], plugins=[house, learner])
        outer = [name for name in sys.modules if name.partition(".")[0] not in OURS]
        notes.keep_learned(files, learner.finish(), outer)
        return 0

    return in_a_child(act)


# Mutants within functions: chosen by name, everything imported ----------------------------------


class Between:
    """Stands for the next test: what is of the session stays up."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[Any]:
        return [self._session]


class Trier:
    """Instead of running the tests once: for every mutant those that reach it, in a fork."""

    def __init__(self, notes: Notes, house: House, mutants: list[Mutant]) -> None:
        self.notes, self.house = notes, house
        self.by_function: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in mutants:
            self.by_function[mutant.function].append(mutant)
        self.app: Any = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        made = yield
        if fixturedef.argname == "the_app":
            self.app = made
        return made

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.between: Any = Between(session)
        self.learned = self.notes.learned()
        items = {item.nodeid: item for item in session.items}
        self.items = {test: items[test] for test in self.learned}
        self._open_the_app()
        for mutants in self.by_function.values():
            self._try_all(mutants)
        return True

    def _open_the_app(self) -> None:
        """Once, here; and no connection may be shared with a fork."""
        using = [item for item in self.items.values() if "the_app" in item.fixturenames]
        shortest = min(using, key=lambda item: self.learned[item.nodeid].seconds)
        runtestprotocol(shortest, log=False, nextitem=self.between)
        from portal import doorbell
        from portal.db import db

        with self.app.app_context():
            for engine in db.engines.values():
                engine.dispose()
        doorbell.connection().connection_pool.disconnect()

    def _try_all(self, mutants: list[Mutant]) -> None:
        killers: Counter[str] = Counter()
        for mutant in mutants:
            # What saw its neighbours first, then the shortest.
            reaching = [test for test in self.items if self.learned[test].reaches(mutant)]
            reaching.sort(key=lambda test: (-killers[test], self.learned[test].seconds))
            tests = within(LONGEST, reaching, self.learned)
            began = time.monotonic()
            outcome, by = self._try(mutant, tests) if tests else ("no test", "")
            killers[by] += 1
            self.notes.keep(Result.of(mutant, outcome, by, len(tests), time.monotonic() - began))

    def _try(self, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
        reader, writer = os.pipe()

        def act() -> int:
            set_mutant_under_test(mutant.name)
            for test in tests:
                signal.setitimer(signal.ITIMER_REAL, 30 + 40 * self.learned[test].seconds)
                os.write(writer, f"{test}\n".encode())
                reports = runtestprotocol(self.items[test], log=False, nextitem=self.between)
                if any(report.failed for report in reports):
                    return 1
            return 0

        status = in_a_child(act)
        os.close(writer)
        with os.fdopen(reader) as told:
            last = told.read().splitlines()[-1]
        if status < 0:
            self.house.tidy_up()
            return "timeout", last
        return ("killed", last) if status else ("survived", "")


# Mutants outside of functions: a module's text, imported anew ----------------------------------


class Swap(MetaPathFinder):
    """Imports one module from another text than its file's."""

    def __init__(self, module: str, text: str) -> None:
        self.module, self.text = module, text

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        stem = Path(name.replace(".", "/"))
        file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
        text = self.text

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                return compile(text, str(file), "exec", dont_inherit=True)

        return spec_from_file_location(
            name,
            file,
            loader=Loader(name, str(file)),
            submodule_search_locations=[str(stem)] if stem.is_dir() else None,
        )


def try_outside(notes: Notes, house: House, mutants: list[Mutant]) -> None:
    if not mutants:
        return
    for name in notes.outer():
        with suppress(BaseException):
            importlib.import_module(name)
    by_module: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_module[mutant.function].append(mutant)
    learned = notes.learned()
    for module, its in by_module.items():
        tests = _tests_of(its[0], learned)
        if in_a_child(partial(_whole_session, house, tests, None)):
            raise SystemExit(f"the tests of {module} fail without any mutant")
        for mutant in its:
            swap = Swap(module, notes.text(mutant))
            began = time.monotonic()
            status = in_a_child(partial(_whole_session, house, tests, swap))
            outcome = "timeout" if status < 0 else "killed" if status else "survived"
            if status < 0:
                in_a_child(house.tidy_up)
            took = time.monotonic() - began
            notes.keep(Result.of(mutant, outcome, "", len(tests), took))


def _tests_of(mutant: Mutant, learned: dict[str, Learned]) -> list[str]:
    """Those that reach a function of the module, and those of its folder; the shortest first."""
    folder = f"tests/{mutant.function.split('.')[1]}/"
    found = [
        test for test, of in learned.items() if test.startswith(folder) or mutant.path in of.reached
    ]
    return within(LONGEST_ANEW, sorted(found, key=lambda test: learned[test].seconds), learned)


def _whole_session(house: House, tests: list[str], swap: Swap | None) -> int:
    if swap:
        sys.meta_path.insert(0, swap)
    signal.setitimer(signal.ITIMER_REAL, 120 + 10 * LONGEST_ANEW)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    return int(pytest.main([*PYTEST, "-x", *tests], plugins=[house]))


def within(seconds: float, tests: list[str], learned: dict[str, Learned]) -> list[str]:
    """As many of the tests, from the first, as fit into the time."""
    fitting, total = [], 0.0
    for test in tests:
        total += learned[test].seconds
        if total > seconds and fitting:
            break
        fitting.append(test)
    return fitting


def main() -> None:
    what, share, of = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    notes, house = Notes(Path("..")), House()
    try:
        if what == "learn":
            if files := notes.files_to_learn()[share::of]:
                learn(notes, house, files)
            return
        # Whole functions go to one process: its tests are ordered by what they saw before.
        functions: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in notes.to_try():
            functions[mutant.function].append(mutant)
        largest = sorted(functions.values(), key=len, reverse=True)
        mine = [mutant for group in largest[share::of] for mutant in group]
        inside = [mutant for mutant in mine if not mutant.outside]
        if inside and in_a_child(lambda: _try_inside(notes, house, inside)):
            raise SystemExit("mutants: the session that tries them failed")
        try_outside(notes, house, [mutant for mutant in mine if mutant.outside])
    finally:
        house.close()


def _try_inside(notes: Notes, house: House, mutants: list[Mutant]) -> int:
    trier = Trier(notes, house, mutants)
    return int(pytest.main([*PYTEST, *sorted(notes.test_files())], plugins=[house, trier]))


if __name__ == "__main__":
    main()
