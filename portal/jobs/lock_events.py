"""What the lock controller's events mean to us: a reason to ask it, never a proof.

Events arrive late and out of order. Each one that names a code of ours makes that key due for
polling, so the webhook and the poll feed one verb with what the controller says now.
"""

from typing import Any

from portal.db import Tx
from portal.jobs.applying import Applying, Handled


def handle(tx: Tx, work: Applying) -> Handled:
    """Apply one event inside the caller's transaction."""
    payload = work.payload
    if not work.event.type.startswith("access_code."):
        return Handled("ignored", "this type means nothing here")
    key_id = tx.enter("key_by_code(:code, :name)", code=_text(payload, "access_code_id"), name=None)
    if key_id is None:
        return Handled("ignored", "not a code of ours")
    tx.run("update entry_keys set next_poll_at = now() where id = :id", id=key_id)
    return Handled("applied", "the controller will be asked", rings=("keys",))


def _text(payload: Any, name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) else None
