"""The ways into the house, for their pages."""

from collections.abc import Sequence
from uuid import UUID

from portal.db import Row, Tx

SHOWN = """
    e.id, e.version, e.slug, e.public_name, e.name_ja, e.name_en, e.mode, e.opens, e.closes,
    e.capacity,
    array(select plan_id from entrance_plans where entrance_id = e.id) as plan_ids,
    array(select id from doors where entrance_id = e.id) as door_ids
"""


def listed(tx: Tx) -> Sequence[Row]:
    """In the order of their making. One statement."""
    return tx.rows(f"select {SHOWN} from entrances e order by e.created_at, e.id")


def head(tx: Tx, entrance_id: UUID) -> Row | None:
    return tx.row(f"select {SHOWN} from entrances e where e.id = :id", id=entrance_id)


def names(tx: Tx) -> Sequence[Row]:
    """To choose one of. In the order of their making."""
    return tx.rows("select id, name_ja, name_en from entrances order by created_at, id")


def doors(tx: Tx) -> Sequence[Row]:
    """Every door of the house, with the entrance that leads to it."""
    return tx.rows("select id, name_ja, name_en, entrance_id from doors order by no")


def plans(tx: Tx) -> Sequence[Row]:
    """What is on sale, and what an entrance has though it was withdrawn: whoever has booked that is
    let in as long as the entrance has it."""
    return tx.rows(
        """
        select id, name_ja, name_en, members_only, active from plans
        where active or exists (select 1 from entrance_plans where plan_id = plans.id)
        order by members_only, kind desc, code
        """
    )
