"""The door key's verbs. Only the controller's word, through `observe`, makes a key issued,
missing, failed or revoked."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal import clock, lock_commands, outbox, seal
from portal.db import SYSTEM, Actor, Row, Tx
from portal.machines.entry_key import MACHINE
from portal.machines.stay import MACHINE as STAY
from portal.models import EntryKey
from portal.move import create as create_row
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import key_observation
from portal.verbs import benefits, facts

PIN_TRIES = 8
"""How often a code may meet one in use on the same door before we call it a fault."""

DUPLICATES_BORNE = 3
"""How many codes in a row a device may call its own before a person has to look."""

LIVE = ("requested", "issued", "missing")


def order(tx: Tx, actor: Actor, stay: Row) -> UUID:
    """→ requested, for a stay being admitted (as `facts.stay` gives it). The worker sets it."""
    begins = min(clock.now(), stay.starts_at) - timedelta(minutes=stay.key_lead_minutes)
    ends = stay.ends_at + timedelta(minutes=stay.key_lag_minutes)
    for _ in range(PIN_TRIES):
        key_id = _create(tx, actor, stay, begins, ends)
        if key_id is not None:
            lock_commands.order(tx, "set", key_id)
            return key_id
    raise RuntimeError("no free code was found for the door")


def reissue(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """A new code for a guest in house, where the last one failed or vanished or leaked."""
    stay = facts.stay(tx, stay_id)
    if stay is None:
        return Refused(Code.NOT_FOUND)
    if stay.state != "admitted":
        return Refused(Code.STAY_NOT_IN_HOUSE)
    if stay.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, STAY, stay_id))
    if clock.now() >= stay.ends_at:
        return Refused(Code.STAY_WINDOW_OVER, {"ended_at": stay.ends_at})
    if benefits.taken_back(stay):
        return Refused(Code.MEMBERS_ONLY_PLAN)
    tx.run("update stays set version = version + 1 where id = :id", id=stay_id)
    revoke_all(tx, actor, stay_id, reason="reissued")
    return Applied(Code.KEY_ORDERED, to="requested", subject=order(tx, actor, stay))


def revoke_all(tx: Tx, actor: Actor, stay_id: UUID, *, reason: str) -> int:
    """requested, issued, missing → revoking, for every live key of the stay."""
    live = tx.rows(
        "select id, state from entry_keys where stay_id = :stay and state = any(:live)",
        stay=stay_id,
        live=list(LIVE),
    )
    for key in live:  # one or two: a stay has one live key a door
        if move(
            tx,
            MACHINE,
            key.id,
            event="revoke_asked",
            from_state=key.state,
            actor=actor,
            verb="revoke",
            reason=reason,
        ):
            lock_commands.order(tx, "remove", key.id)
    return len(live)


def retime(tx: Tx, actor: Actor, stay: Row, ends_at: datetime) -> bool:
    """The same code until another time; the lock is told, the guest hears of it once it agreed.
    True when the guest will."""
    ends = ends_at + timedelta(minutes=stay.key_lag_minutes)
    rows = tx.rows(
        """
        update entry_keys set ends_at = :ends, version = version + 1
        where stay_id = :stay and state = any(:live) and ends_at <> :ends
        returning id, version, state
        """,
        stay=stay.id,
        live=list(LIVE),
        ends=ends,
    )
    for key in rows:
        lock_commands.order(tx, "update", key.id, fact=str(key.version))
    return any(key.state == "issued" for key in rows)


def observe(
    tx: Tx,
    key_id: UUID,
    *,
    status: str | None,
    errors: tuple[str, ...] = (),
    code_id: str | None = None,
    consumer_key: str | None = None,
) -> Outcome:
    """Hear the controller's word on a code and move by it. `status` None: it has no such code."""
    key = tx.get(EntryKey, key_id, lock=True)
    if key is None:
        return Refused(Code.NOT_FOUND)
    event = key_observation.event_for(key.state, status, errors)
    code_id = code_id or key.provider_code_id
    seen = {
        "observed": ":".join((status or "gone", *errors)),
        "observed_at": clock.now(),
        "provider_code_id": code_id,
    }
    if event is None:
        _remember(tx, key_id, seen)
        return Noop(Code.KEY_NOT_CONFIRMED, subject=key_id)
    moved = move(
        tx,
        MACHINE,
        key_id,
        event=event,
        from_state=key.state,
        actor=LOCK,
        verb="observe",
        reason=str(seen["observed"]),
        also={**seen, **_dates(event, key), **_failure(event, errors, status)},
    )
    if moved is None:
        return Conflict(Code.KEY_STATE_CHANGED, standing(tx, MACHINE, key_id))
    _follow(tx, key, event, errors, code_id, consumer_key)
    return Applied(_SAID[event], to=moved.to, subject=key_id)


def insist(tx: Tx, key_id: UUID) -> None:
    """A removal that was accepted and has not been carried out is asked for again."""
    owed = tx.scalar(
        """
        select k.state = 'revoking' and not exists (
            select 1 from lock_commands c
            where c.key_id = k.id and c.kind = 'remove' and c.done_at is null
        )
        from entry_keys k where k.id = :key
        """,
        key=key_id,
    )
    if owed:
        lock_commands.order(tx, "remove", key_id, fact=clock.now().isoformat())


def say_changed(tx: Tx, key_id: UUID) -> None:
    """Tell the guest, once for each new end, that the code now holds until then."""
    key = tx.get(EntryKey, key_id)
    if key is None or key.state != "issued":
        return
    outbox.enqueue(
        tx,
        key.stay_id,
        "entry_key_changed",
        f"{key_id}:{key.version}",
        {"key_id": str(key_id)},
    )


def refuse(tx: Tx, key_id: UUID, error: str) -> Outcome:
    """requested → failed: the controller refused to take the code at all."""
    return observe(tx, key_id, status="unset", errors=(error, "code_invalid"))


def ask_again(tx: Tx, actor: Actor, command_id: UUID) -> Outcome:
    """A lock command that was given up, or whose answer is lost, goes to work at once, asked by a
    person. Who has it in hand keeps it; what may have been done is read before it is repeated."""
    revived = tx.run(
        """
        update lock_commands
        set attempts = case when dead_at is null then attempts else 0 end, dead_at = null,
            next_attempt_at = now()
        where id = :id and done_at is null and (dead_at is not null or unknown_at is not null)
        """,
        id=command_id,
    )
    if revived.rowcount == 0:
        known = tx.scalar("select 1 from lock_commands where id = :id", id=command_id)
        return Noop(Code.LOCK_NOT_STUCK) if known else Refused(Code.NOT_FOUND)
    tx.ring("locks")
    return Applied(Code.LOCK_ASKED_AGAIN, to="waiting", subject=command_id)


LOCK = Actor("provider", None, "lock controller")

_SAID = {
    "set_on_lock": Code.KEY_ISSUED,
    "lock_refused": Code.KEY_FAILED,
    "vanished_from_lock": Code.KEY_MISSING,
    "removed_from_lock": Code.KEY_REVOKED,
}


def _create(tx: Tx, actor: Actor, stay: Row, begins: datetime, ends: datetime) -> UUID | None:
    key_id, pin = uuid4(), seal.new_pin()
    return create_row(
        tx,
        MACHINE,
        actor,
        "order",
        {
            "id": key_id,
            "facility_id": tx.facility_id,
            "stay_id": stay.id,
            "space_id": stay.space_id,
            "door_id": stay.door_id,
            "door_no": stay.door_no,
            "pin_sealed": seal.close(pin),
            "pin_mark": seal.mark(pin),
            "starts_at": begins,
            "ends_at": ends,
            "code_name": f"monban {key_id}",
        },
        on_conflict="on conflict do nothing",
    )


def _remember(tx: Tx, key_id: UUID, seen: dict[str, Any]) -> None:
    tx.run(
        """
        update entry_keys
        set observed = :observed, observed_at = :observed_at, provider_code_id = :provider_code_id
        where id = :id
        """,
        id=key_id,
        **seen,
    )


def _dates(event: str, key: EntryKey) -> dict[str, datetime]:
    if event == "set_on_lock" and key.issued_at is None:
        return {"issued_at": clock.now()}
    return {"revoked_at": clock.now()} if event == "removed_from_lock" else {}


def _failure(event: str, errors: tuple[str, ...], status: str | None) -> dict[str, str]:
    if event not in ("lock_refused", "vanished_from_lock"):
        return {}
    return {"failure": errors[0] if errors else status or "gone"}


def _follow(
    tx: Tx,
    key: EntryKey,
    event: str,
    errors: tuple[str, ...],
    code_id: str | None,
    consumer_key: str | None,
) -> None:
    """What the new state asks for: words to the guest, or another code."""
    if event == "set_on_lock" and key.issued_at is None:
        outbox.enqueue(
            tx,
            key.stay_id,
            "entry_key_issued",
            str(key.id),
            {"key_id": str(key.id)},
            consumer_key=consumer_key,
        )
    if event == "lock_refused" and code_id is not None and errors:
        # The controller keeps the code and may yet set it, when nobody knows of it any more.
        lock_commands.order(tx, "remove", key.id)
    if event == "lock_refused" and key_observation.is_duplicate(errors):
        _try_another_code(tx, key)


def _try_another_code(tx: Tx, key: EntryKey) -> None:
    stay = facts.stay(tx, key.stay_id)
    failed = tx.scalar(
        "select count(*) from entry_keys where stay_id = :stay and state = 'failed'",
        stay=key.stay_id,
    )
    if stay is not None and stay.state == "admitted" and failed <= DUPLICATES_BORNE:
        order(tx, SYSTEM, stay)
