"""What a tablet at an entrance shows."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx


def entrance(tx: Tx, entrance_id: UUID) -> Row:
    found = tx.row(
        "select id, name_ja, name_en, mode, opens, closes from entrances where id = :id",
        id=entrance_id,
    )
    if found is None:
        raise LookupError("an address led to an entrance that is not there")
    return found


def plans(tx: Tx, entrance_id: UUID) -> Sequence[Row]:
    """What anybody can buy there."""
    return tx.rows(
        """
        select p.id, p.name_ja, p.name_en, p.unit, p.unit_price,
               exists (select 1 from ticket_offers o where o.plan_id = p.id) as has_tickets
        from entrance_plans e join plans p on p.id = e.plan_id
        where e.entrance_id = :entrance and p.active and not p.members_only
        order by p.kind desc, p.code
        """,
        entrance=entrance_id,
    )


def session(tx: Tx, entrance_id: UUID, token_hash: bytes) -> Row | None:
    """The tablet's session while it lasts, with its stay's version and link."""
    return tx.row(
        """
        select k.id, k.stay_id, s.version, s.token_sealed
        from kiosk_sessions k join stays s on s.id = k.stay_id
        where k.token_hash = :hash and k.entrance_id = :entrance
          and k.ended_at is null and k.expires_at > now()
        """,
        hash=token_hash,
        entrance=entrance_id,
    )
