"""What must be true when all is quiet: our books are the provider's, the lock's and the sinks'."""

from collections import Counter
from datetime import datetime
from typing import Any

from portal.jobs.reconcile import reconcile
from tests.chaos.scene import Scene

AT_PROVIDER = {
    "open": {"requires_payment_method", "requires_action", "requires_confirmation"},
    "processing": {"processing"},
    "succeeded": {"succeeded"},
    "refund_owed": {"succeeded"},
    "refunded": {"succeeded"},
    "canceled": {"canceled", None},
}
"""Our state of a payment → the provider's status of its one intent; None: it has none."""

RETURNED = {"succeeded": {"succeeded"}, "pending": {"pending"}, "failed": {"failed", None}}


def agrees(scene: Scene) -> None:
    """Both sides say the same of everything, and every effect happened once."""
    _payments(scene)
    _refunds(scene)
    _keys(scene)
    _words(scene)
    assert scene.owner.rows("select kind from lock_commands where done_at is null") == []
    assert scene.owner.rows("select type from webhook_events where state <> 'completed'") == []
    assert scene.owner.one("select count(*) from dead_letters") == 0
    told = reconcile(scene.worker.providers, settle=0.05)
    assert (told.open, told.unread, told.new) == (0, 0, {})
    assert scene.waiting_for_a_person().count == 0


def _objects(scene: Scene, kind: str) -> list[dict[str, Any]]:
    return list(scene.stripe.get("objects").get(kind, []))


def _payments(scene: Scene) -> None:
    theirs: dict[str, list[dict[str, Any]]] = {}
    for intent in _objects(scene, "payment_intent"):
        theirs.setdefault(intent["metadata"]["payment_id"], []).append(intent)
    ours = scene.owner.rows("select id::text, state, amount from payments")
    assert set(theirs) <= {payment for payment, _, _ in ours}
    for payment, state, amount in ours:
        intents = theirs.get(payment, [])
        assert len(intents) <= 1
        status = intents[0]["status"] if intents else None
        assert status in AT_PROVIDER[state], (state, status)
        booked = scene.owner.rows(
            "select amount from ledger_lines where payment_id = %s and kind in"
            " ('deposit', 'payment')",
            payment,
        )
        received = intents[0]["amount_received"] if intents else 0
        assert booked == ([(-received,)] if received else [])
        assert received in (0, amount)


def _refunds(scene: Scene) -> None:
    theirs: dict[str, list[dict[str, Any]]] = {}
    for refund in _objects(scene, "refund"):
        theirs.setdefault(refund["metadata"]["refund_id"], []).append(refund)
    ours = scene.owner.rows("select id::text, state, amount from refunds")
    assert set(theirs) <= {refund for refund, _, _ in ours}
    for refund, state, amount in ours:
        made = theirs.get(refund, [])
        assert len(made) <= 1
        assert (made[0]["status"] if made else None) in RETURNED[state]
        booked = scene.owner.rows(
            "select amount from ledger_lines where refund_id = %s and kind = 'refund'", refund
        )
        assert booked == ([(amount,)] if state == "succeeded" else [])
        assert not made or made[0]["amount"] == amount


def _keys(scene: Scene) -> None:
    codes = scene.seam.control("codes")
    ours = scene.owner.rows("select code_name, state, ends_at from entry_keys")
    assert {state for _, state, _ in ours} <= {"issued", "revoked"}
    issued = {name: ends for name, state, ends in ours if state == "issued"}
    assert Counter(code["name"] for code in codes) == Counter(issued.keys())
    for code in codes:
        assert code["status"] == "set"
        ends = issued[code["name"]].replace(microsecond=0)
        assert datetime.fromisoformat(code["ends_at"]) == ends


def _words(scene: Scene) -> None:
    """What we call sent has been received once; nothing waits; nothing else was received."""
    rows = scene.owner.rows("select id, channel, sent_at is not null, dropped_at from outbox")
    received = Counter([*scene.letters(), *scene.pushes()])
    assert set(received.values()) <= {1}
    assert set(received) <= {message for message, *_ in rows}
    for message, channel, sent, dropped in rows:
        if sent:
            assert received[message] == 1, channel
        else:
            assert dropped is not None, channel
    facts = [fact for (fact,) in scene.owner.rows("select dedupe_key from outbox")]
    assert len(facts) == len(set(facts))
