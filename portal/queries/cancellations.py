"""Cancellation policies with their steps, and which plan has which."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx
from portal.models.cancellation import STEP

_POLICY = f"""
    select p.id, p.version, t.name_ja, t.name_en, t.created_at as since, (
        select json_agg({STEP} order by c.hours_before desc) from cancellation_steps c
        where c.terms_id = t.id
    ) as steps
    from cancellation_policies p
    join cancellation_terms t on t.policy_id = p.id and t.version = p.version
"""
"""Each as its newest version says it."""

MOST = 100


def listed(tx: Tx) -> Sequence[Row]:
    return tx.rows(f"{_POLICY} order by p.created_at, p.id limit :most", most=MOST)


def head(tx: Tx, policy_id: UUID) -> Row | None:
    return tx.row(f"{_POLICY} where p.id = :id", id=policy_id)


def plans(tx: Tx) -> Sequence[Row]:
    """What is sold, and by which policy it is cancelled."""
    return tx.rows(
        """
        select id, name_ja, name_en, cancellation_policy_id as policy_id
        from plans where active order by members_only, kind desc, code limit :most
        """,
        most=MOST,
    )
