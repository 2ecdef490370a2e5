"""Field case J1: kill -9 in the middle of each kind of work; the rows bring it back."""

from pathlib import Path

import pytest

from portal import clock, doorbell
from portal.db import SYSTEM
from portal.outcome import Applied
from portal.queries import attention
from portal.verbs import messages, refunds_owed, stays
from sandbox import parts
from sandbox.seam.running import Running, eventually
from tests.outside import codes_on_locks, work
from tests.proofs.processes import PATIENCE
from tests.proofs.scene import PRICE, Scene, post

pytestmark = pytest.mark.proof

# What each kind of work calls, and so where it is killed.
CALLS = {"locks": "locks.create_code", "refunds": "payments.create_refund", "outbox": "line.push"}


def effects(scene: Scene, seam: Running, line: Running) -> tuple[int, int, int]:
    """Codes on the lock, refunds at the provider, messages that the guest has: of each how many."""
    return len(codes_on_locks(seam)), scene.stripe.creates("refund"), len(line.control("pushes"))


def work_for_everybody(scene: Scene, portal_url: str) -> None:
    """A key to set, a refund to send and a receipt to say, on LINE."""
    work(scene.worker, "outbox")  # what was said before is not of this case
    scene.owner.run("update guests set line_user_id = 'Uhanako'")
    post(portal_url, scene.event.raw)
    scene.nursery.child().work("inbox")
    with scene.cast.transaction(scene.stay.facility_id) as tx:
        admitted = stays.admit(tx, SYSTEM, scene.stay.id, 1)
        assert isinstance(admitted, Applied), admitted
        refunds_owed.owe(tx, SYSTEM, scene.payment, PRICE // 2, reason="surplus")


def leases_run_out(scene: Scene) -> None:
    for table in ("lock_commands", "refunds", "outbox"):
        scene.owner.run(f"update {table} set claimed_at = claimed_at - interval '301 seconds'")


def killed_at(scene: Scene, kind: str, point: str) -> None:
    doomed = scene.nursery.child()
    doomed.stand(point)
    doomed.begin(kind)
    doomed.stopped()
    doomed.kill()


@pytest.mark.parametrize(("when", "done"), [("call", 0), ("called", 1)])
def test_j1_killed_in_mid_job(
    scene: Scene,
    seam: Running,
    line: Running,
    place: dict[str, str],
    portal_url: str,
    folder: Path,
    when: str,
    done: int,
) -> None:
    """Three workers die before their external call, or after it; one is started again over an
    empty queue. No ring is left of the old work, so the sweeps find it."""
    work_for_everybody(scene, portal_url)
    for kind, call in CALLS.items():
        killed_at(scene, kind, f"{when} {call}")
    assert effects(scene, seam, line) == (done, done, done)
    leases_run_out(scene)
    doorbell.connection().flushall()

    def healed() -> bool:
        return bool(
            scene.owner.one(
                """
                select (select array_agg(state) from entry_keys) = '{issued}'
                   and (select array_agg(state) from refunds) = '{succeeded}'
                   and (select count(*) from outbox where sent_at is not null) = 4
                   and not exists (select 1 from outbox where sent_at is null)
                """
            )
        )

    again = parts.worker(place, log=folder / f"worker-{when}.log")
    try:
        assert eventually(healed, 2 * PATIENCE), again.last_lines()
    finally:
        again.kill()
    # Beside the receipt, the key and the refund were told of, since both had come true.
    assert effects(scene, seam, line) == (1, 1, 3)
    refunded = "select kind, amount from ledger_lines where refund_id is not null"
    assert scene.owner.rows(refunded) == [("refund", PRICE // 2)]


@pytest.mark.parametrize(
    ("point", "delivered", "unknown"),
    [
        ("committed claim_outbox", 0, False),
        ("call mail.send", 0, True),
        ("called mail.send", 1, True),
    ],
)
def test_j1_killed_in_mid_mail(
    scene: Scene, portal_url: str, point: str, delivered: int, unknown: bool
) -> None:
    """A mail has no retry key. One whose sender had not begun is sent by the next look; of one
    whose sender had, nobody can know, so it is never sent by itself: it waits for a person."""
    work(scene.worker, "outbox")
    post(portal_url, scene.event.raw)
    scene.nursery.child().work("inbox")
    said_before = len(scene.mail.kept)
    killed_at(scene, "outbox", point)
    assert len(scene.mail.kept) - said_before == delivered
    leases_run_out(scene)
    doorbell.connection().flushall()
    for _ in range(2):
        scene.nursery.child().work("outbox")
    heard = len(scene.mail.kept) - said_before
    assert heard == (delivered if unknown else 1)
    with scene.cast.transaction(scene.stay.facility_id) as tx:
        waiting = attention.look(tx, clock.now()).messages
        assert [row.state for row in waiting] == (["unknown"] if unknown else [])
        for row in waiting:
            decide = messages.drop if delivered else messages.resend
            assert isinstance(decide(tx, SYSTEM, row.id), Applied)
    scene.nursery.child().work("outbox")
    assert len(scene.mail.kept) - said_before == 1
