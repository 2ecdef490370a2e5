"""What the gate refused, and whom it let in although the blocklist names them: every audit row."""

from dataclasses import dataclass
from uuid import UUID

from portal.db import Tx
from portal.queries import keyset
from portal.queries.keyset import BEGINNING, Cursor, Page


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list. `grounds`: with what the blocklist says of a person, which is its readers'."""

    entrance: UUID | None = None
    rule: str = ""
    grounds: bool = False
    cursor: Cursor = BEGINNING


def page(tx: Tx, wanted: Wanted, size: int = keyset.SIZE) -> Page:
    """Latest first: one statement whatever the table holds, and no count."""
    direction = wanted.cursor.direction
    beyond, params = wanted.cursor.condition("gate_audits", "a", at="at")
    for column, asked in (("entrance_id", wanted.entrance), ("rule", wanted.rule)):
        if asked:
            beyond, params = f"a.{column} = :{column} and {beyond}", {**params, column: asked}
    found = tx.rows(
        f"""
        with found as materialized (
            select a.* from gate_audits a
            where {beyond}
            order by a.at {direction}, a.id {direction}
            limit :size
        )
        select a.id, a.at, a.asks, a.code, a.rule, a.let_in, a.stay_id, a.actor_kind, a.actor_name,
               a.actor_kind = 'guest' and a.actor_id is null as by_tablet,
               case when :grounds then a.ground end as ground,
               case when :grounds then a.statute end as statute,
               case when :grounds then a.blocklist_entry_id end as entry_id,
               e.name_ja, e.name_en, s.code as stay_code, g.name as guest
        from found a
        left join entrances e on e.id = a.entrance_id
        left join stays s on s.id = a.stay_id
        left join guests g on g.id = s.guest_id
        order by a.at desc, a.id desc
        """,
        size=size + 1,
        grounds=wanted.grounds,
        **params,
    )
    return keyset.cut(found, wanted.cursor, size)
