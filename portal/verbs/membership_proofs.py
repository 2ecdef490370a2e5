"""Ended means ended: what must hold afterwards is looked at until it does."""

from uuid import UUID

from portal import clock
from portal.db import Tx
from portal.verbs.desk import Desk
from portal.verbs.subscription_answers import close_invoices

CLOSED = "no invoice is open"

PROOFS = {
    # Of every key that was to be removed the lock has said that it is gone.
    "keys_gone": """
        select 'no key is left' where not exists (
            select 1 from entry_keys k join stays s on s.id = k.stay_id
            where s.membership_id = :membership and k.state = 'revoking'
        )
    """,
    # Or there is no address to tell it to.
    "member_told": """
        select coalesce(
            (select 'sent ' || to_char(o.sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
             from outbox o
             where o.membership_id = :membership and o.event_type = 'membership_ended'
               and o.sent_at is not null limit 1),
            (select 'no address' where not exists (
                select 1 from outbox o
                where o.membership_id = :membership and o.event_type = 'membership_ended'))
        )
    """,
}


def prove(desk: Desk, obligation_id: int) -> bool:
    """Look once more; True when it is proven now. Proven once, it stays so. What only the provider
    can tell is asked of it first, and what is still open there is closed."""
    with desk.transaction() as tx:
        owed = tx.row(
            "select membership_id, kind from end_obligations where id = :id and proven_at is null",
            id=obligation_id,
        )
    if owed is None:
        return False
    closed = owed.kind == "invoices_closed" and close_invoices(desk, owed.membership_id)
    with desk.transaction() as tx:
        return _note(tx, obligation_id, owed.membership_id, owed.kind, closed=closed)


def _note(tx: Tx, obligation_id: int, membership_id: UUID, kind: str, *, closed: bool) -> bool:
    proof = CLOSED if closed else None
    if kind in PROOFS:
        proof = tx.scalar(PROOFS[kind], membership=membership_id)
    if proof is None:
        return False
    noted = tx.run(
        """
        update end_obligations set proven_at = :now, proof = :proof
        where id = :id and proven_at is null
        """,
        now=clock.now(),
        proof=proof,
        id=obligation_id,
    )
    return noted.rowcount == 1
