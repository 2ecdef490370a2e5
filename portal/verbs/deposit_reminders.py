"""What a guest whose booking waits for a deposit is told before it ends."""

from datetime import datetime
from uuid import UUID

from portal import outbox
from portal.db import Tx
from portal.policies import deposit_hold


def put(tx: Tx, stay_id: UUID, asked_at: datetime, deposit_by: datetime | None) -> None:
    """Once a deadline: it is withdrawn where the deposit has come, or another deadline holds."""
    at = deposit_hold.reminder(asked_at, deposit_by) if deposit_by else None
    if deposit_by is None or at is None:
        return
    written = deposit_by.isoformat()
    outbox.enqueue(
        tx,
        stay_id,
        "deposit_reminder",
        f"{stay_id}:{written}",
        {"deposit_by": written},
        not_before=at,
    )
