"""Clocks that are wrong. Leases, due times and deadlines are set and compared in the database's
time alone, so a machine whose clock is hours off neither takes a claim early nor keeps it long.

Read off the source first: no statement compares such a column with a time that we bring along, and
wherever our own clock is reckoned with, the reason is named here. Then real workers whose
clocks are six hours ahead and six hours behind do the work of the house.
"""

import ast
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from portal import clock
from portal.jobs import catch_up
from portal.outcome import Applied, Code, Refused
from portal.verbs import payment_answers, payments
from sandbox.process import start
from sandbox.stripe.testing import StandIn
from tests.endurance.due import KINDS, WAITING, Work, claim
from tests.endurance.ground import Ground
from tests.figures import Figure
from tests.outside import events as told_events
from tests.outside import receive, work
from tests.proofs.processes import Nursery

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parent.parent.parent
HOURS = timedelta(hours=6)

# Columns by which work is leased, put off or ended.
TIMED = (
    "claimed_at",
    "expires_at",
    "next_attempt_at",
    "next_poll_at",
    "next_read_at",
    "not_before",
    "sending_at",
    "unknown_at",
)

# The source ---------------------------------------------------------------------------------------


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "portal").rglob("*.py")):
        name = str(path.relative_to(ROOT / "portal"))
        if not name.startswith("demo/"):  # tells a story of other days
            yield name, path.read_text()


def sql_in(source: str) -> Iterator[str]:
    """Every piece of text, the fixed parts of f-strings included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())


BROUGHT = r"(?:cast\()?:\w+"
COLUMN = rf"(?:\w+\.)?(?:{'|'.join(TIMED)})\b"
AGAINST_OURS = re.compile(
    rf"{COLUMN}\s*(?:[<>]=?|=)\s*{BROUGHT}|{BROUGHT}\s*(?:[<>]=?|=)\s*{COLUMN}", re.I
)


def brought_along(sql: str) -> list[str]:
    return AGAINST_OURS.findall(sql)


def set_by_us(source: str) -> Iterator[tuple[int, str]]:
    """Values of such columns that are handed to a statement: only nothing may be."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value in TIMED
                if named and not (isinstance(value, ast.Constant) and value.value is None):
                    yield node.lineno, str(key.value)


def test_no_statement_brings_a_time_of_ours_to_a_lease_or_a_deadline() -> None:
    found = [(name, sql) for name, text in sources() for sql in sql_in(text) if brought_along(sql)]
    assert found == []
    given = [(name, *row) for name, text in sources() for row in set_by_us(text)]
    assert given == []


@pytest.mark.parametrize(
    "sql",
    [
        "where claimed_at < :now",
        "and (d.claimed_at is null or d.claimed_at <= cast(:limit as timestamptz))",
        "update outbox set next_attempt_at = :later where id = :id",
        "where :now >= e.next_attempt_at",
    ],
)
def test_the_reader_of_statements_knows_a_bad_one(sql: str) -> None:
    assert brought_along(sql)


def test_the_reader_of_values_knows_a_bad_one() -> None:
    assert [*set_by_us('{"next_read_at": clock.now() + PAUSE, "claimed_at": None}')] == [
        (1, "next_read_at")
    ]


OF_THE_STAY = "the hours of a stay, as its house lives them"
SPAN = "how far back two lists are compared; both are asked for the same span"

COMPARISONS = ("jobs/compare_", "jobs/reconcile")
RECKONED_BY_OUR_CLOCK = {
    ("verbs/message_differences.py", "_has"): SPAN,
    ("verbs/keys.py", "reissue"): OF_THE_STAY,
    ("verbs/stay_changes.py", "_impossible"): OF_THE_STAY,
    ("verbs/blocklist.py", "add"): "the last day of an entry, as its house lives it",
    ("verbs/stays.py", "cancel_as_agreed"): OF_THE_STAY,
    ("verbs/stays.py", "mark_no_show"): OF_THE_STAY,
    ("verbs/stays.py", "reinstate"): OF_THE_STAY,
}


def reckons(function: ast.FunctionDef) -> bool:
    """It adds to, takes from or compares what our own clock says. A time that is only written
    down, or handed to a rule about a stay's hours, is nobody's lease."""
    ours = {"clock.now()", "datetime.now(UTC)", "time.time()"}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in ours:
            ours |= {ast.unparse(target) for target in node.targets}
    reckoning = [one for one in ast.walk(function) if isinstance(one, ast.BinOp | ast.Compare)]
    return any(ast.unparse(part) in ours for one in reckoning for part in ast.iter_child_nodes(one))


def test_only_the_hours_of_a_stay_are_reckoned_by_our_own_clock() -> None:
    below = [(name, text) for name, text in sources() if not name.startswith(("web/", "edges/"))]
    found = {
        (name, node.name)
        for name, text in below
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and reckons(node) and not name.startswith(COMPARISONS)
    }
    assert found - set(RECKONED_BY_OUR_CLOCK) == set()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if clock.now() < row.created_at + LANDED: return", True),
        ("began = clock.now()\n    return began - PAUSE", True),
        ("tx.run(sql, at=clock.now())", False),
    ],
)
def test_the_reader_of_functions_tells_reckoning_from_writing(body: str, expected: bool) -> None:
    (function,) = ast.parse(f"def some():\n    {body}").body
    assert isinstance(function, ast.FunctionDef)
    assert reckons(function) is expected


# Leases, to the second ----------------------------------------------------------------------------


def test_a_lease_holds_until_its_last_second_and_not_after(due: Work) -> None:
    """In one transaction the database's time stands still, so the boundary can be asked exactly."""
    for kind in KINDS:
        for left, taken in ((1, 0), (0, 0), (-1, 1)):
            with due.ground.cast.transaction(due.ground.cast.tokyo.id) as tx:
                tx.run(
                    f"update {kind.table} set claim_token = :token,"
                    f" claimed_at = now() - :lease + make_interval(secs => :left)"
                    f" where {WAITING[kind.table]}",
                    token=uuid4(),
                    lease=kind.lease,
                    left=left,
                )
                assert claim(tx, kind) == taken, (kind, left)


# Workers whose clock is wrong ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def skewed(place: dict[str, str], folder: Path) -> Iterator[Path]:
    path = folder / "skewed.sock"
    made = start(
        "skewed children",
        [sys.executable, "-m", "tests.endurance.skewed", str(path)],
        log=folder / "skewed.log",
        env=place,
        ready=lambda part: "ready" in part.said(),
    ).wait()
    yield path
    made.kill()


@pytest.mark.parametrize("ahead", [HOURS, -HOURS], ids=["six hours ahead", "six hours behind"])
def test_a_worker_whose_clock_is_wrong_takes_no_lease_early_and_leaves_none_too_long(
    ahead: timedelta, due: Work, skewed: Path, figure: Figure
) -> None:
    children = Nursery(skewed)
    child = children.child(f"queued {int(ahead.total_seconds())}")
    try:
        token = due.held_by_another(timedelta(seconds=30))
        assert sum(child.work(kind.ring) for kind in KINDS) == 0
        assert due.still_held(token) == [1, 1, 1, 1]
        due.held_by_another(timedelta(seconds=-1))
        for kind in KINDS:
            child.work(kind.ring)
        child.work("outbox")  # what the refund and the payment have said meanwhile
        due.done_once()
    finally:
        children.close()
    figure("clock jumps", leases=len(KINDS), stolen_early=0, kept_long=0, hours=str(6))


@pytest.mark.parametrize("ahead", [HOURS, -HOURS], ids=["six hours ahead", "six hours behind"])
def test_a_pause_is_as_long_by_a_clock_that_is_wrong(
    ahead: timedelta, ground: Ground, stripe: StandIn, skewed: Path
) -> None:
    """Its event speaks of a payment that is not here yet: put off for seconds, not for hours."""
    ground.paid_there(stripe)
    receive(*told_events(ground.worker))
    ground.owner.run("delete from transitions where machine = 'payment'; delete from payments")
    children = Nursery(skewed)
    try:
        children.child(f"queued {int(ahead.total_seconds())}").work("inbox")
    finally:
        children.close()
    (pause,) = ground.owner.row(
        "select max(next_attempt_at - now()) from webhook_events where state = 'processing'"
    )
    assert timedelta(seconds=-30) < pause <= timedelta(seconds=2)


@pytest.mark.parametrize("ahead", [HOURS, -HOURS], ids=["six hours ahead", "six hours behind"])
def test_a_new_payment_is_asked_after_in_two_minutes(
    ahead: timedelta, ground: Ground, stripe: StandIn
) -> None:
    stay = ground.cast.book()
    clock.set_source(lambda: datetime.now(UTC) + ahead)
    ground.opened(stay)
    waits = ground.owner.one("select next_read_at - now() from payments")
    assert timedelta(seconds=90) < waits <= timedelta(seconds=120)


def test_what_never_arrived_is_caught_up_with_after_a_look_by_a_clock_ahead(
    ground: Ground, stripe: StandIn
) -> None:
    """The checkpoint is the provider's own time: nothing that comes later is passed over."""
    ground.paid_there(stripe, space="A01")
    clock.set_source(lambda: datetime.now(UTC) + HOURS)
    assert catch_up.fetch_missed(ground.worker) > 0
    ground.paid_there(stripe, space="A02")
    clock.set_source(None)
    assert catch_up.fetch_missed(ground.worker) > 0
    work(ground.worker, "inbox")
    assert ground.owner.rows("select distinct state from payments") == [("succeeded",)]


def test_money_under_way_is_not_given_up_by_a_clock_ahead(ground: Ground, stripe: StandIn) -> None:
    """The answer was lost a moment ago and nothing is found yet: that proves nothing, and six
    hours more on our own clock do not make it a proof."""
    stay = ground.cast.book()
    stripe.fault("error_500_before", "^/v1/payment_intents$")
    desk = ground.worker.desk(stay.facility_id)
    actor = ground.cast.sato.actor
    assert payments.open_payment(desk, actor, stay.id, "balance") == Refused(Code.PAYMENT_UNKNOWN)
    payment = ground.owner.one("select id from payments")
    clock.set_source(lambda: datetime.now(UTC) + HOURS)
    said = payment_answers.resolve(desk, actor, payment)
    assert said == Refused(Code.PAYMENT_STILL_UNKNOWN)
    ground.owner.run("update payments set created_at = created_at - interval '3 minutes'")
    clock.set_source(lambda: datetime.now(UTC) - HOURS)
    assert isinstance(payment_answers.resolve(desk, actor, payment), Applied)
