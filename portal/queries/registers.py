"""Whether a stay's entry in the register is there, and who has read which."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx

MOST = 50


def of_stay(tx: Tx, stay_id: UUID) -> Row | None:
    """Without what is sealed. `filled_at` is null where there is no entry yet."""
    return tx.row(
        """
        select s.id, s.code, s.state, g.name as guest, coalesce(g.phone, g.email, '') as contact,
               coalesce(p.kind = 'lodging', false) as lodging, r.filled_at, r.actor_kind,
               r.actor_name, f.register_required
        from stays s join guests g on g.id = s.guest_id join facilities f on f.id = s.facility_id
        left join plans p on p.id = s.plan_id
        left join guest_registers r on r.stay_id = s.id
        where s.id = :stay
        """,
        stay=stay_id,
    )


def sealed(tx: Tx, stay_id: UUID) -> Row | None:
    return tx.row(
        """
        select name_sealed, address_sealed, contact, nationality_sealed, passport_sealed,
               occupation_sealed
        from guest_registers where stay_id = :stay
        """,
        stay=stay_id,
    )


def readings(tx: Tx) -> Sequence[Row]:
    """The latest first."""
    return tx.rows(
        """
        select r.kind, r.first_day, r.last_day, r.rows_read, r.reason, r.actor_name, r.at,
               s.code, r.stay_id
        from register_readings r left join stays s on s.id = r.stay_id
        order by r.at desc, r.id desc limit :most
        """,
        most=MOST,
    )
