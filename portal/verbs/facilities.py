"""What a house has decided about itself."""

from portal.db import Actor, Tx
from portal.outcome import Applied, Code, Noop, Outcome, Refused


def choose_benefits(tx: Tx, actor: Actor, while_past_due: bool) -> Outcome:
    """Whether members keep what their membership gives while a payment of theirs is overdue. The
    gate reads it anew each time: what is booked already is decided by it as well."""
    changed = tx.run(
        """
        update facilities set benefits_while_past_due = :wanted
        where id = :id and benefits_while_past_due <> :wanted
        """,
        id=tx.facility_id,
        wanted=while_past_due,
    )
    if changed.rowcount:
        return Applied(Code.SETTINGS_SAVED, to="saved", subject=tx.facility_id)
    if tx.scalar("select 1 from facilities where id = :id", id=tx.facility_id) is None:
        return Refused(Code.NOT_FOUND)
    return Noop(Code.SETTINGS_UNCHANGED, subject=tx.facility_id)
