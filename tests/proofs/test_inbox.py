"""The eleven proofs of the webhook inbox, against real processes.

A crash is kill -9 of the process that applies an event, at the point named; a race is two
processes; a conflict is PostgreSQL's own 40001; a delivery is a signed POST. Each runs with a
worker, and again in inline mode, where the provider waits for the answer.
"""

import json

import pytest

from tests.proofs.scene import (
    BOOKING,
    CLAIM,
    COMPLETION,
    DUPLICATE,
    IN_FLIGHT,
    READING,
    RECEIPT,
    RECEIVED,
    WRITING,
    Answer,
    Mode,
    Scene,
    post,
    twin,
)

pytestmark = pytest.mark.proof

NOT_NOW = Answer(503, "not now", "10")


def lands_at_last(scene: Scene, mode: Mode) -> None:
    """A redelivery, whoever died before it, grants once; then nothing grants again."""
    assert mode.deliver(scene.event.raw) == RECEIVED
    mode.sweep()
    scene.granted_once()
    assert mode.deliver(scene.event.raw) == DUPLICATE
    mode.sweep()
    scene.granted_once()


# Crashes ----------------------------------------------------------------------------------------


def test_crash_after_receipt_is_retryable_when_stored(scene: Scene, mode: Mode) -> None:
    """The portal dies when the event is stored, before it has rung or answered."""
    portal = mode.portal()
    url = portal.serve()
    portal.stand(f"committed {RECEIPT}")
    answer = mode.posting(url, scene.event.raw)
    portal.stopped()
    portal.kill()
    assert answer.result().status == 0
    scene.nothing_applied()
    assert scene.inbox() == [("processing", None)]
    lands_at_last(scene, mode)


@pytest.mark.parametrize("point", [f"committed {CLAIM}", f"after {BOOKING}"])
def test_crash_after_receipt_is_retryable_when_claimed(
    scene: Scene, mode: Mode, point: str
) -> None:
    """Whoever applies it dies with the claim. The event is let in again once that is over."""
    mode.apply_until(scene.event.raw, point).kill()
    scene.nothing_applied()
    assert mode.deliver(scene.event.raw) == IN_FLIGHT
    mode.sweep()
    scene.nothing_applied()
    scene.expire_claims()
    lands_at_last(scene, mode)


def test_crash_after_receipt_is_retryable_without_a_redelivery(scene: Scene, mode: Mode) -> None:
    """The row alone brings it back: a sweep looks, and no delivery is needed."""
    mode.apply_until(scene.event.raw, f"committed {CLAIM}").kill()
    scene.expire_claims()
    scene.nursery.child().work("inbox")
    scene.granted_once()
    assert mode.deliver(scene.event.raw) == DUPLICATE


@pytest.mark.parametrize("point", [f"before {COMPLETION}", f"commit {COMPLETION}"])
def test_crash_before_commit_applies_nothing(scene: Scene, mode: Mode, point: str) -> None:
    """All is written and the commit alone is missing."""
    mode.apply_until(scene.event.raw, point).kill()
    scene.nothing_applied()
    scene.expire_claims()
    lands_at_last(scene, mode)
    scene.told_once()


def test_committed_retry_sends_once(scene: Scene, mode: Mode) -> None:
    """It is committed, and the process dies before anybody hears of it, or is rung."""
    mode.apply_until(scene.event.raw, f"committed {COMPLETION}").kill()
    scene.granted_once()
    assert mode.deliver(scene.event.raw) == DUPLICATE
    assert mode.deliver(twin(scene.event)) == RECEIVED
    mode.sweep()
    scene.granted_once()
    scene.told_once()


def test_committed_retry_sends_once_with_two_senders_at_once(scene: Scene, portal_url: str) -> None:
    """Both stand before their claim, are let go together, and the guest hears once."""
    post(portal_url, scene.event.raw)
    scene.nursery.child().work("inbox")
    scene.granted_once()
    senders = [scene.nursery.child() for _ in range(2)]
    for one in senders:
        one.stand("before from claim_outbox(")
        one.begin("outbox")
    for one in senders:
        one.stopped()
    for one in senders:
        one.go()
    for one in senders:
        one.done()
    scene.told_once()


def test_completion_is_recorded_with_the_grant(scene: Scene, mode: Mode) -> None:
    """Until the commit nobody sees either; after it one transaction has written both."""
    applying = mode.apply_until(scene.event.raw, f"commit {COMPLETION}")
    scene.nothing_applied()
    applying.finish()
    scene.granted_once()
    assert len(scene.written_by()) == 1


# Faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", [f"after {BOOKING}", f"after {WRITING}", f"after {COMPLETION}"])
def test_transaction_rolls_back_whole(scene: Scene, mode: Mode, point: str) -> None:
    """PostgreSQL ends the connection in mid-transaction: the process lives, its work is undone."""
    applying = mode.apply_until(scene.event.raw, point)
    cut = scene.owner.rows(
        "select pg_terminate_backend(pid, 30000) from pg_stat_activity"
        " where datname = current_database() and state = 'idle in transaction'"
    )
    assert cut == [(True,)]
    applying.finish(NOT_NOW)
    scene.nothing_applied()
    assert scene.owner.one("select claimed_at is null and attempts = 1 from webhook_events")
    assert "OperationalError" in scene.owner.one("select last_error from webhook_events")
    lands_at_last(scene, mode)


def conflict(scene: Scene) -> None:
    """Write to the folio that a stopped process has read in its snapshot."""
    scene.owner.run("update stays set deposit_due = deposit_due where id = %s", scene.stay.id)


def test_serialization_conflict_does_not_lose_the_renewal(scene: Scene, mode: Mode) -> None:
    """One 40001: it is tried again within its claim, and nobody outside notices."""
    applying = mode.apply_until(scene.event.raw, f"after {READING}")
    conflict(scene)
    applying.finish()
    assert applying.child.tell() == ["40001"]
    scene.granted_once()
    assert scene.owner.one("select attempts from webhook_events") == 1
    assert mode.deliver(scene.event.raw) == DUPLICATE
    scene.told_once()


def test_exhausted_retries_answer_5xx_and_the_redelivery_lands(scene: Scene, mode: Mode) -> None:
    """40001 three times: the claim is given back at once, and the next delivery is let in."""
    applying = mode.apply_until(scene.event.raw, f"after {READING}")
    conflict(scene)
    for _ in range(2):
        applying.next_stop()
        conflict(scene)
    applying.finish(NOT_NOW)
    assert applying.child.tell() == ["40001"] * 3
    scene.nothing_applied()
    assert scene.owner.row("select claimed_at, attempts from webhook_events") == (None, 1)
    lands_at_last(scene, mode)


# Races ------------------------------------------------------------------------------------------


def test_in_flight_claim_answers_retry_later(scene: Scene, mode: Mode) -> None:
    applying = mode.apply_until(scene.event.raw, f"after {BOOKING}")
    for _ in range(2):
        assert mode.deliver(scene.event.raw) == IN_FLIGHT
    scene.nothing_applied()
    applying.finish()
    scene.granted_once()
    assert mode.deliver(scene.event.raw) == DUPLICATE


def test_duplicate_of_completed_never_regrants(scene: Scene, mode: Mode) -> None:
    assert mode.deliver(scene.event.raw) == RECEIVED
    mode.sweep()
    scene.granted_once()
    for _ in range(3):
        assert mode.deliver(scene.event.raw) == DUPLICATE
        mode.sweep()
    for _ in range(2):
        assert mode.deliver(twin(scene.event)) == RECEIVED
        mode.sweep()
    scene.granted_once()
    assert scene.inbox() == [("completed", "applied"), *[("completed", "superseded")] * 2]
    scene.told_once()


def test_duplicate_of_completed_never_regrants_when_twins_race(scene: Scene, mode: Mode) -> None:
    """Two processes hold one event each about one fact, and are let go together."""
    racing = [
        mode.apply_until(raw, f"after {READING}") for raw in (scene.event.raw, twin(scene.event))
    ]
    for one in racing:
        one.child.go()
    for one in racing:
        one.finish()
    scene.granted_once()
    assert sorted(outcome for _, outcome in scene.inbox()) == ["applied", "superseded"]
    scene.told_once()


def test_zombie_worker_cannot_complete_what_another_has_claimed(scene: Scene, mode: Mode) -> None:
    """It outlived its claim, and another has taken over but done nothing yet. What the zombie has
    written is rolled back whole, and nobody is told that the event is in good hands."""
    zombie = mode.apply_until(scene.event.raw, f"committed {CLAIM}")
    scene.expire_claims()
    heir = mode.apply_until(scene.event.raw, f"committed {CLAIM}")
    zombie.finish(NOT_NOW)
    scene.nothing_applied()
    heir.finish()
    scene.granted_once()
    scene.told_once()


@pytest.mark.parametrize("point", [f"committed {CLAIM}", f"after {READING}"])
def test_zombie_worker_cannot_complete_what_another_has_completed(
    scene: Scene, mode: Mode, point: str
) -> None:
    zombie = mode.apply_until(scene.event.raw, point)
    scene.expire_claims()
    assert mode.deliver(scene.event.raw) == RECEIVED
    mode.sweep()
    scene.granted_once()
    zombie.finish(NOT_NOW)
    scene.granted_once()
    assert mode.deliver(scene.event.raw) == DUPLICATE
    scene.told_once()


def older(scene: Scene, status: str) -> bytes:
    """What the provider said of this payment a minute before its money came."""
    event = json.loads(scene.event.raw)
    event |= {"id": f"evt_older_{status}", "created": event["created"] - 60}
    event["type"] = {
        "processing": "payment_intent.processing",
        "requires_payment_method": "payment_intent.payment_failed",
        "requires_action": "payment_intent.requires_action",
    }[status]
    event["data"]["object"] |= {"status": status, "amount_received": 0}
    return json.dumps(event).encode()


def test_late_older_event_never_rewinds(scene: Scene, mode: Mode) -> None:
    assert mode.deliver(scene.event.raw) == RECEIVED
    mode.sweep()
    for status in ("processing", "requires_payment_method", "requires_action"):
        assert mode.deliver(older(scene, status)) == RECEIVED
        mode.sweep()
        scene.granted_once()
    assert [outcome for _, outcome in scene.inbox()] == ["applied", *["superseded"] * 3]
    scene.told_once()


def test_late_older_event_never_rewinds_what_overtook_it(scene: Scene, mode: Mode) -> None:
    """One process holds the older event while another applies the newer one."""
    late = mode.apply_until(older(scene, "processing"), f"after {READING}")
    assert mode.deliver(scene.event.raw) == RECEIVED
    mode.sweep()
    late.finish()
    assert late.child.tell() == ["40001"]
    scene.granted_once()
    assert [outcome for _, outcome in scene.inbox()] == ["superseded", "applied"]
    scene.told_once()
