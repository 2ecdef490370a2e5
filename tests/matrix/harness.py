"""One act, killed at one point: died, started anew, swept, delivered again, and looked at.

The measure is the act's own clean run, which was delivered again as often: what stands in our
books and at the far side in the end must be the same, wherever it was killed. What must hold of
any house, killed or not, is in `outside.wrong`.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from sandbox.seam.running import eventually
from tests.matrix import outside
from tests.matrix.act import Act
from tests.matrix.outside import Picture
from tests.matrix.stage import PATIENCE, Given, Stage, StuckError
from tests.proofs.processes import Child

SHARE = 48
"""Of every so many points one is tried in each run of the tests; the whole takes all."""


PROPERTY = "crash matrix"
"""Under this name each test tells its `Count`."""


class Count(NamedTuple):
    points: int
    killed: int
    violated: int
    doubts: int
    milliseconds: int


class Process(Child):
    """The process that acts, or the one that heals after it."""

    def __init__(self, path: Path, mode: str, given: Given) -> None:
        super().__init__(path, mode)
        self.given = given

    def begin_work(self, what: str, *, fatal: int | None = None, look: bool = False) -> None:
        given = pickle.dumps(self.given).hex()
        self._send({"do": what, "given": given, "fatal": fatal, "look": look})

    def does(self, what: str, **more: object) -> str:
        self.given |= more
        self.begin_work(what)
        return str(self.expect("did")["answer"])


@dataclass
class Clean:
    """What an act does when nobody kills it."""

    answer: str
    points: list[str]
    entered: set[str]
    applied: set[str]
    before: Picture
    after: Picture
    """What stands here before the act, and right after it."""
    end: Picture
    """Both sides in the end."""
    wrong: list[str]

    def share(self, act: Act, whole: bool) -> Sequence[int]:
        """The points to kill it at: each, or some of each act, the same in every run."""
        if whole:
            return range(len(self.points))
        first = crc32(act.name.encode()) % min(SHARE, len(self.points))
        return range(first, len(self.points), SHARE)

    @property
    def is_one_transaction(self) -> bool:
        """Until its commit nothing of it is anywhere."""
        calls = [one for one in self.points if one.startswith("call ") and "doorbell" not in one]
        return not calls and sum(one.startswith("commit ") for one in self.points) == 1


@dataclass
class Verdict:
    """`doubt`: a process died while it handed over an e-mail, so that nobody can know whether it
    arrived; it was shown to a person, and that person asked the guest."""

    point: str
    killed: bool = False
    doubt: bool = False
    wrong: list[str] = field(default_factory=list)


class Matrix:
    def __init__(self, stage: Stage, forks: Path) -> None:
        self.stage, self.forks = stage, forks

    def clean(self, act: Act) -> Clean:
        """The run that is traced."""
        given = self._set_the_scene(act)
        before = outside.standing(self.stage.owner)
        process = Process(self.forks, act.mode, given)
        process.begin_work(f"run {act.name}", look=True)
        told = process.expect("did")
        process.close()
        after = outside.standing(self.stage.owner)
        verdict = Verdict("")
        self._heal(act, given, verdict)
        return Clean(
            told["answer"],
            told["points"],
            set(told["entered"]),
            set(told["applied"]),
            before,
            after,
            self._picture(),
            verdict.wrong + outside.wrong(*self._sides()),
        )

    def kill(self, act: Act, clean: Clean, at: int) -> Verdict:
        """Killed at the point `at` of its clean run."""
        verdict = Verdict(clean.points[at])
        given = self._set_the_scene(act)
        process = Process(self.forks, act.mode, given)
        process.begin_work(f"run {act.name}", fatal=at)
        self._bury(process, verdict)
        committed = any(one.startswith("committed ") for one in clean.points[: at + 1])
        if not committed and (left := _other(clean.before, outside.standing(self.stage.owner))):
            verdict.wrong.append(f"nothing is committed, and yet: {left}")
        heard = self._heal(act, given, verdict)
        if clean.is_one_transaction and not committed and heard[0] != clean.answer:
            verdict.wrong.append(f"pressed again it says {heard[0]}, and not {clean.answer}")
        verdict.wrong += outside.wrong(*self._sides())
        if other := _other(clean.end, self._picture()):
            verdict.wrong.append(f"it did not come to the same: {other}")
        return verdict

    def _set_the_scene(self, act: Act) -> Given:
        self.stage.clear()
        return act.scene(self.stage)

    def _bury(self, process: Process, verdict: Verdict) -> None:
        """It died where it should, and the database has noticed."""
        told = process.last_words()
        verdict.killed = told.get("said") == "dies"
        if not verdict.killed or told["point"] != verdict.point:
            verdict.wrong.append(f"the run is not the one that was traced: {told}")
        process.close()
        pid = process.pid
        if not eventually(lambda: outside.is_over(self.stage.owner, pid), PATIENCE):
            verdict.wrong.append("its connection outlives it")

    def _heal(self, act: Act, given: Given, verdict: Verdict) -> list[str]:
        """A new process sweeps; the act is delivered again twice, and its twin; people decide what
        waits for them; the books are compared. Returns what the deliveries heard."""
        process = Process(self.forks, act.mode, given)
        heard: list[str] = []
        try:
            self._sweep(process)
            heard += [process.does(f"run {act.name}") for _ in range(2)]
            if act.twin is not None:
                heard.append(process.does(f"twin {act.name}"))
            self._sweep(process)
            verdict.doubt = self._decide(process)
            if self._decide_differences(process) or verdict.doubt:
                self._sweep(process)
            if told := process.does("compare"):
                verdict.wrong.append(f"the books differ: {told}")
        except StuckError as fault:
            verdict.wrong.append(str(fault))
        finally:
            process.close()
        verdict.wrong += [one for one in heard if one.startswith("raised")]
        return heard or [""]

    def _sweep(self, process: Process) -> None:
        """Until quiet; then what the provider says that we never heard, until quiet."""
        self.stage.quiet(lambda: process.does("round"))
        if process.does("catch_up") != "0":
            self.stage.quiet(lambda: process.does("round"))

    def _decide(self, process: Process) -> bool:
        """A person asks the guest about each e-mail that may or may not have arrived."""
        owner = self.stage.owner
        doubtful = owner.rows("select id from outbox where unknown_at is not null")
        has = set(outside.heard(self.stage.line, self.stage.mail))
        for (message,) in doubtful:
            process.does("drop" if str(message) in has else "resend", message=message)
        return bool(doubtful)

    def _decide_differences(self, process: Process) -> bool:
        """A person resolves each difference that is shown."""
        found = self.stage.owner.rows("select id from divergences where healed_at is null")
        for (row,) in found:
            process.does("resolve", divergence=row)
        return bool(found)

    def _picture(self) -> Picture:
        owner, *far = self._sides()
        return outside.books(owner) + outside.far_side(owner, *far)

    def _sides(self) -> tuple:  # type: ignore[type-arg]
        stage = self.stage
        return stage.owner, stage.stripe, stage.seam, stage.line, stage.mail


def _other(wanted: Picture, got: Picture) -> str:
    """'' for the same; else what is too much and what is missing."""
    parts = [f"+{often} {what}" for what, often in (got - wanted).items()]
    parts += [f"-{often} {what}" for what, often in (wanted - got).items()]
    return "; ".join(parts)
