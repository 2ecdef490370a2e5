"""Whether a stay's entry in the register is there, and who has read which."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx

MOST = 50


def of_stay(tx: Tx, stay_id: UUID) -> Row | None:
    """Whose register it is; what it says, and of whom, is asked apart."""
    return tx.row(
        """
        select s.id, s.code, s.state, s.persons, g.name as guest,
               coalesce(g.phone, g.email, '') as contact,
               coalesce(p.kind = 'lodging', false) as lodging
        from stays s join guests g on g.id = s.guest_id
        left join plans p on p.id = s.plan_id
        where s.id = :stay
        """,
        stay=stay_id,
    )


def filled(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """An entry a person, without what is sealed."""
    return tx.rows(
        """
        select person, filled_at, actor_name from guest_registers
        where stay_id = :stay order by person
        """,
        stay=stay_id,
    )


def sealed(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select person, name_sealed, address_sealed, contact, nationality_sealed, passport_sealed,
               occupation_sealed
        from guest_registers where stay_id = :stay order by person
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
