"""Differences from the far side: written down, ended by a look that no longer sees them, by the
one verb of their kind, or by a person who lets them be."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from portal import lock_commands
from portal.db import Actor, Tx
from portal.edges.errors import EdgeError
from portal.edges.locks.port import LockCode
from portal.machines.entry_key import MACHINE as KEY
from portal.models import Divergence, Door, Payment
from portal.move import note
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import divergences as policy
from portal.policies.divergences import Found, OurKey
from portal.verbs import keys, payment_answers, refund_answers
from portal.verbs.desk import Desk

AGREEMENT = "agreement"

MAY_BE = (
    "payment_not_here",
    "payment_not_there",
    "payment_differs",
    "refund_not_here",
    "refund_not_there",
    "refund_differs",
)
"""Kinds that a person may let be. A code at a door is never one of them."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look compared, and what it found. Only what it covers can heal by it."""

    facility_id: UUID
    kinds: Collection[str]
    found: Sequence[Found]
    subjects: Collection[str] = ()
    door_id: UUID | None = None


@dataclass(slots=True)
class Noted:
    new: list[str] = field(default_factory=list)
    """The kinds of the differences that were not open before."""
    healed: int = 0


def remember(tx: Tx, look: Look) -> Noted:
    """Write down what was found, touch what is seen again, heal what is no longer seen."""
    noted = Noted()
    for found in look.found:  # seldom any: each is a fault of somebody's
        if _put(tx, found):
            noted.new.append(found.kind)
    noted.healed = tx.run(
        """
        update divergences set healed_at = now(), healed_by = :by
        where healed_at is null and kind = any(:kinds)
          and (door_id = cast(:door as uuid) or subject = any(:subjects))
          and not (kind || ' ' || subject = any(:found))
        """,
        by=AGREEMENT,
        kinds=list(look.kinds),
        door=look.door_id,
        subjects=list(look.subjects),
        found=[" ".join(found.about) for found in look.found],
    ).rowcount
    return noted


def _put(tx: Tx, found: Found) -> bool:
    """True when it is new. What a person let be is raised again only once it reads otherwise."""
    return bool(
        tx.scalar(
            """
            insert into divergences
                (facility_id, kind, subject, payment_id, key_id, door_id, ours, theirs)
            select * from (
                select cast(:facility_id as uuid), cast(:kind as text) as kind,
                       cast(:subject as text) as subject, cast(:payment_id as uuid),
                       cast(:key_id as uuid), cast(:door_id as uuid),
                       cast(:ours as text) as ours, cast(:theirs as text) as theirs
            ) x
            where not exists (
                select 1 from divergences d
                where d.let_be and d.kind = x.kind and d.subject = x.subject
                  and d.ours = x.ours and d.theirs = x.theirs
            )
            on conflict (facility_id, kind, subject) where healed_at is null
                do update set last_seen = now()
            returning (xmax = 0)
            """,
            facility_id=tx.facility_id,
            kind=found.kind,
            subject=found.subject,
            payment_id=found.payment_id,
            key_id=found.key_id,
            door_id=found.door_id,
            ours=found.ours,
            theirs=found.theirs,
        )
    )


def let_be(tx: Tx, actor: Actor, divergence_id: UUID) -> Outcome:
    """A person has looked and nothing more is to be done, or it was done elsewhere."""
    row = tx.get(Divergence, divergence_id, lock=True)
    if row is None:
        return Refused(Code.NOT_FOUND)
    if row.healed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED)
    if row.kind not in MAY_BE:
        return Refused(Code.NOT_PERMITTED)
    _heal(tx, divergence_id, actor.name, let_be=True)
    return Applied(Code.EVENT_DISMISSED, to="closed", subject=divergence_id)


def resolve(desk: Desk, actor: Actor, divergence_id: UUID) -> Outcome:
    """The verb of the difference's kind. The far side is asked anew; nothing is done on the word
    of a row that may be an hour old."""
    with desk.transaction() as tx:
        row = tx.get(Divergence, divergence_id)
    if row is None:
        return Refused(Code.NOT_FOUND)
    if row.healed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED)
    try:
        said = _VERBS[row.kind](desk, actor, row)
    except EdgeError:
        far = Code.LOCK_UNAVAILABLE if row.door_id else Code.BILLING_UNAVAILABLE
        return Refused(far)
    if isinstance(said, Applied):
        with desk.transaction() as tx:
            _heal(tx, divergence_id, actor.name)
    return said


def _heal(tx: Tx, divergence_id: UUID, by: str, *, let_be: bool = False) -> None:
    tx.run(
        """
        update divergences set healed_at = now(), healed_by = :by, let_be = :let_be
        where id = :id and healed_at is null
        """,
        id=divergence_id,
        by=by,
        let_be=let_be,
    )


# Money ------------------------------------------------------------------------------------------


def _ask_payment(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    if row.payment_id is None:
        return Refused(Code.NOT_PERMITTED)
    return payment_answers.resolve(desk, actor, row.payment_id)


def _hear_refunds(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Each refund of the charge, by its own id, as the reading job does."""
    with desk.transaction() as tx:
        payment = tx.get(Payment, row.payment_id)
    if payment is None or payment.intent_id is None:
        return Refused(Code.NOT_FOUND)
    answers = desk.payments.refunds_of(payment.intent_id)
    with desk.transaction() as tx:
        said = [refund_answers.hear(tx, payment.id, answer) for answer in answers]
    refused = [one for one in said if isinstance(one, Refused)]
    if refused:
        return refused[0]
    moved = any(isinstance(one, Applied) for one in said)
    if moved:
        return Applied(Code.REFUND_RECORDED, to="recorded", subject=payment.id)
    return Noop(Code.REFUND_RECORDED, subject=payment.id)


# Doors ------------------------------------------------------------------------------------------


def _remove_stray(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Only a code that is ours by name, and that no living key speaks for, is removed. The
    controller's word that it is gone is awaited by the next look."""
    code = desk.locks.get_code(row.subject)
    if code is None or code.status == "removing":
        return Applied(Code.KEY_REVOKE_ASKED, to="gone")
    with desk.transaction() as tx:
        door = tx.get(Door, row.door_id)
        key = key_named(tx, code.name)
        foreign = key is None and known_elsewhere(tx, code.id, code.name)
    ours = policy.key_of(code.name) is not None and door is not None
    if not ours or foreign or (door is not None and door.device_id != code.device_id):
        return Refused(Code.NOT_FOUND)
    if not policy.strays(key, code.id):
        with desk.transaction() as tx:
            _heal(tx, row.id, AGREEMENT)
        return Noop(Code.KEY_ALREADY_ISSUED)
    if door is not None:
        desk.locks.delete_code(code.id, device_id=door.device_id)
    if key is not None:
        with desk.transaction() as tx:
            note(tx, actor, KEY, key.id, key.state, "remove_stray", code.id)
    return Applied(Code.KEY_REVOKE_ASKED, to="removing")


def _ask_lock(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """The controller's word moves the key: missing, and a new code can be ordered; or it stands."""
    with desk.transaction() as tx:
        door, key = tx.get(Door, row.door_id), key_of_id(tx, row.key_id)
    if door is None or key is None:
        return Refused(Code.NOT_FOUND)
    code = _code_of(desk, key, door)
    with desk.transaction() as tx:
        said = keys.observe(
            tx,
            key.id,
            status=code.status if code else None,
            errors=code.errors if code else (),
        )
        stands = code is not None and not (code.status == "unset" and code.errors)
        if stands:
            _heal(tx, row.id, AGREEMENT)
    if stands and isinstance(said, Noop):
        return Noop(Code.KEY_ALREADY_ISSUED, subject=key.id)
    return said


def _code_of(desk: Desk, key: OurKey, door: Door) -> LockCode | None:
    if key.provider_code_id is not None:
        return desk.locks.get_code(key.provider_code_id)
    return desk.locks.find_code(door.device_id, key.code_name)


def _set_time(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """The lock is told our end once more."""
    with desk.transaction() as tx:
        key = key_of_id(tx, row.key_id)
        if key is None:
            return Refused(Code.NOT_FOUND)
        if key.state != "issued":
            return Applied(Code.EVENT_DISMISSED, to=key.state, subject=key.id)
        lock_commands.order(tx, "update", key.id, fact=f"divergence {row.id}")
    return Applied(Code.LOCK_ASKED_AGAIN, to="waiting", subject=key.id)


_VERBS: dict[str, Callable[[Desk, Actor, Divergence], Outcome]] = {
    "payment_not_here": _ask_payment,
    "payment_not_there": _ask_payment,
    "payment_differs": _ask_payment,
    "refund_not_here": _hear_refunds,
    "refund_not_there": _hear_refunds,
    "refund_differs": _hear_refunds,
    "code_stray": _remove_stray,
    "code_missing": _ask_lock,
    "code_differs": _set_time,
}


# Our keys as the comparison reads them -----------------------------------------------------------

_KEYS = """
    select k.id, k.code_name, k.state, k.provider_code_id, k.ends_at,
           exists (select 1 from lock_commands c
                   where c.facility_id = k.facility_id and c.key_id = k.id
                     and c.done_at is null) as at_work
    from entry_keys k
"""


def keys_at(tx: Tx, door_id: UUID, named: Collection[str]) -> dict[str, OurKey]:
    """The door's living keys, and whichever the codes on it name, by the name of their code."""
    rows = tx.rows(
        f"""
        {_KEYS}
        where (k.door_id = :door and k.state in ('requested', 'issued', 'missing', 'revoking'))
           or k.code_name = any(:named)
        """,
        door=door_id,
        named=list(named),
    )
    return {row.code_name: _our_key(row) for row in rows}


def key_named(tx: Tx, name: str) -> OurKey | None:
    row = tx.row(f"{_KEYS} where k.code_name = :name", name=name)
    return _our_key(row) if row else None


def key_of_id(tx: Tx, key_id: UUID | None) -> OurKey | None:
    row = tx.row(f"{_KEYS} where k.id = :id", id=key_id)
    return _our_key(row) if row else None


def known_elsewhere(tx: Tx, code_id: str, name: str) -> bool:
    """Another house's key has this code: two houses may share one device."""
    found = tx.scalar(
        "select count(*) from key_by_code(:code, :name) k where k.facility_id <> :facility",
        code=code_id,
        name=name,
        facility=tx.facility_id,
    )
    return bool(found)


def _our_key(row: Any) -> OurKey:
    return OurKey(row.id, row.code_name, row.state, row.provider_code_id, row.ends_at, row.at_work)
