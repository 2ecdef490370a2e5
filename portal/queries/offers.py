"""What can be sold and where a stay fits: the plans, and the spaces with who holds them then."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from portal.db import Row, Tx


def plans(tx: Tx) -> Sequence[Row]:
    return tx.rows(
        """
        select id, code, name_ja, name_en, kind, unit, unit_price, deposit, members_only
        from plans where active order by members_only, kind desc, code
        """
    )


def spaces(
    tx: Tx, starts_at: datetime, ends_at: datetime, *, except_stay: UUID | None = None
) -> Sequence[Row]:
    """Every space in use: `taken` by another stay in [starts_at, ends_at), `resting` while an
    earlier guest's key may still open it. Impossible times hold nothing."""
    return tx.rows(
        """
        select p.id, p.code, p.name_ja, p.name_en,
               exists (select 1 from stays s
                       where int8range(s.space_no, s.space_no, '[]') && int8range(p.no, p.no, '[]')
                         and s.period && tstzrange(:starts, greatest(:starts, :ends), '[)')
                         and s.state in ('reserved', 'admitted')
                         and s.id is distinct from cast(:stay as uuid)) as taken,
               exists (select 1 from entry_keys k
                       where k.space_id = p.id and k.state not in ('revoked', 'failed')
                         and k.stay_id is distinct from cast(:stay as uuid)) as resting
        from spaces p where p.active order by p.code
        """,
        starts=starts_at,
        ends=ends_at,
        stay=except_stay,
    )
