"""How a difference ends: by a look that no longer sees it, by its verb, or let be by a person."""

from uuid import UUID

from portal.db import Tx

AGREEMENT = "agreement"
"""Who healed what was no longer so when it was looked at."""


def heal(tx: Tx, divergence_id: UUID, by: str, *, let_be: bool = False) -> None:
    tx.run(
        """
        update divergences set healed_at = now(), healed_by = :by, let_be = :let_be
        where id = :id and healed_at is null
        """,
        id=divergence_id,
        by=by,
        let_be=let_be,
    )
