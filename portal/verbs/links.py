"""The links of guests and members. A new one ends the old: whoever had that sees nothing more."""

from uuid import UUID

from portal import outbox, seal
from portal.db import Actor, Tx
from portal.machines import Machine
from portal.machines.membership import MACHINE as MEMBERSHIP
from portal.machines.stay import MACHINE as STAY
from portal.move import TABLES, note, standing
from portal.outcome import Applied, Code, Conflict, Outcome, Refused


def renew_of_stay(tx: Tx, actor: Actor, stay_id: UUID, seen: int) -> Outcome:
    """Another link to the stay, sent to its guest. The door code stays as it is."""
    said = _renew(tx, actor, STAY, stay_id, seen)
    if isinstance(said, Applied):
        outbox.enqueue(tx, stay_id, "stay_link", f"{stay_id}:{seen + 1}", {})
    return said


def renew_of_membership(tx: Tx, actor: Actor, membership_id: UUID, seen: int) -> Outcome:
    """Another link to the membership, sent to its member."""
    said = _renew(tx, actor, MEMBERSHIP, membership_id, seen)
    if isinstance(said, Applied):
        outbox.enqueue(
            tx,
            None,
            "membership_link",
            f"{membership_id}:{seen + 1}",
            {},
            membership_id=membership_id,
        )
    return said


def _renew(tx: Tx, actor: Actor, machine: Machine, row_id: UUID, seen: int) -> Outcome:
    token = seal.new_token()
    renewed = tx.row(
        f"""
        update {TABLES[machine.name]}
        set token_hash = :hash, token_sealed = :sealed, version = version + 1
        where id = :id and version = :seen
        returning state
        """,
        id=row_id,
        seen=seen,
        hash=seal.token_hash(token),
        sealed=seal.close(token),
    )
    if renewed is None:
        now = standing(tx, machine, row_id)
        if now.state == "gone":
            return Refused(Code.NOT_FOUND)
        return Conflict(Code.STALE_PAGE, now)
    note(tx, actor, machine, row_id, renewed.state, "renew_link", "")
    return Applied(Code.LINK_RENEWED, to=renewed.state, subject=row_id)
