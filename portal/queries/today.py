"""Today at a glance: who comes, who is here, who leaves, and which doors are not certain."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.db import Row, Tx
from portal.queries.stays import GATE, GIVEN_BY, SHOWN

MOST = 200
"""Rows of one list. A house with more arrivals in a day needs the search, not a longer page."""


@dataclass(frozen=True, slots=True)
class Today:
    """`expected`: reserved and due by the end of the day, the overdue ones included. `staying`
    and `leaving` are in house; `leaving` are due out by the end of the day."""

    expected: Sequence[Row]
    staying: Sequence[Row]
    leaving: Sequence[Row]
    doors: Sequence[Row]
    arrived: int
    left: int


def look(tx: Tx, start: datetime, end: datetime) -> Today:
    """The facility's day [start, end): three statements, whatever the house holds."""
    live = _live(tx, end)
    done = tx.row(
        """
        select (select count(*) from stays s where s.admitted_at >= :start and s.admitted_at < :end
                and s.starts_at >= :start - interval '2 days' and s.starts_at < :end) as arrived,
               (select count(*) from stays s where s.departed_at >= :start and s.departed_at < :end
                and s.ends_at >= :start - interval '2 days') as gone
        """,
        start=start,
        end=end,
    )
    in_house = [row for row in live if row.state == "admitted"]
    return Today(
        expected=[row for row in live if row.state == "reserved"],
        staying=sorted(
            (row for row in in_house if row.ends_at >= end), key=lambda row: row.space_code
        ),
        leaving=sorted(
            (row for row in in_house if row.ends_at < end),
            key=lambda row: (row.ends_at, row.space_code),
        ),
        doors=_doors(tx),
        arrived=done.arrived if done else 0,
        left=done.gone if done else 0,
    )


def _live(tx: Tx, end: datetime) -> Sequence[Row]:
    """Every stay that is expected or in house, with the facts that the gate decides on."""
    return tx.rows(
        f"""
        select {SHOWN}, {GATE}, key.state as key_state
        from stays s
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        join facilities f on f.id = s.facility_id
        {GIVEN_BY}
        left join lateral (
            select k.state from entry_keys k where k.stay_id = s.id
            order by k.created_at desc, k.id limit 1
        ) key on s.state = 'admitted'
        where s.state in ('reserved', 'admitted') and s.starts_at < :end
        order by s.starts_at, p.code, s.id
        limit :most
        """,
        end=end,
        most=MOST,
    )


def _doors(tx: Tx) -> Sequence[Row]:
    """Keys that the lock has not confirmed as we want them. A refused key counts as long as its
    guest is in house and has no newer one."""
    return tx.rows(
        """
        select k.id, k.state, k.created_at, k.ends_at, k.observed, k.stay_id, s.code as stay_code,
               g.name as guest, p.code as space_code, d.name_ja, d.name_en
        from entry_keys k
        join stays s on s.id = k.stay_id
        join guests g on g.id = s.guest_id
        join spaces p on p.id = k.space_id
        join doors d on d.id = k.door_id
        where k.state in ('requested', 'revoking', 'missing')
           or (k.state = 'failed' and s.state = 'admitted' and not exists (
                select 1 from entry_keys newer where newer.stay_id = k.stay_id
                and newer.created_at > k.created_at))
        order by k.created_at, k.id
        limit :most
        """,
        most=MOST,
    )
