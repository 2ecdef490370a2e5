"""What a person does about what no other verb can mend: looks at it, and says so."""

from uuid import UUID

from portal import clock
from portal.db import Actor, Tx
from portal.machines.refund import MACHINE as REFUND
from portal.models import Refund
from portal.move import note
from portal.outcome import Applied, Code, Noop, Outcome, Refused


def let_be(tx: Tx, actor: Actor, refund_id: UUID) -> Outcome:
    """A refund that failed waits for nobody any more: the guest was paid another way, or agrees.
    Who decided it and when is kept, here and in the refund's own record."""
    refund = tx.get(Refund, refund_id, lock=True)
    if refund is None:
        return Refused(Code.NOT_FOUND)
    if refund.state != "failed" or tx.scalar(
        "select 1 from dead_letters where source_kind = 'refund' and source_id = :id", id=refund_id
    ):
        return Noop(Code.EVENT_ALREADY_HANDLED, subject=refund_id)
    tx.run(
        """
        insert into dead_letters (facility_id, source_kind, source_id, title, error, at, closed_at,
            closed_by, closed_how)
        values (:facility, 'refund', :id, 'refund', :error, :at, :at, :by, 'dismissed')
        """,
        facility=tx.facility_id,
        id=refund_id,
        error=refund.failure or "",
        at=clock.now(),
        by=actor.name,
    )
    note(tx, actor, REFUND, refund_id, refund.state, "let_be", "")
    return Applied(Code.EVENT_DISMISSED, to="closed", subject=refund_id)
