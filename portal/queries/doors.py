"""Doors, the keys on them, and the work that their locks have: wanted against observed."""

from collections.abc import Sequence
from dataclasses import dataclass

from portal.db import Row, Tx

MOST = 300
"""Rows of one list: far more keys than one house has guests."""

COMMAND_STATE = """
    case when c.done_at is not null then 'done' when c.dead_at is not null then 'dead'
         when c.unknown_at is not null then 'unknown' else 'waiting' end
"""


@dataclass(frozen=True, slots=True)
class Doors:
    """`keys` by door: those that may be on a lock, and refused ones of guests in house."""

    doors: Sequence[Row]
    keys: Sequence[Row]
    commands: Sequence[Row]
    resting: Sequence[Row]


def look(tx: Tx) -> Doors:
    """Four statements, whatever the house holds."""
    return Doors(_doors(tx), _keys(tx), _commands(tx), _resting(tx))


def _doors(tx: Tx) -> Sequence[Row]:
    return tx.rows(
        """
        select d.id, d.name_ja, d.name_en, d.device_id, d.online, d.battery, d.asked_at,
               (select max(k.observed_at) from entry_keys k
                where k.door_id = d.id and k.state not in ('revoked', 'failed')) as heard_at
        from doors d order by d.no
        """
    )


def _keys(tx: Tx) -> Sequence[Row]:
    """`wanted` is what the house wants of the lock, `observed` what the controller last said."""
    return tx.rows(
        """
        select k.id, k.door_id, k.state, k.starts_at, k.ends_at, k.observed, k.observed_at,
               k.failure, k.stay_id, k.created_at, p.code as space_code, s.state as stay_state,
               g.name as guest,
               case when k.state = 'revoking' then 'gone' when k.state = 'failed' then 'nothing'
                    else 'set' end as wanted
        from entry_keys k
        join stays s on s.id = k.stay_id
        join guests g on g.id = s.guest_id
        join spaces p on p.id = k.space_id
        where k.state not in ('revoked', 'failed')
           or (k.state = 'failed' and s.state = 'admitted' and not exists (
                select 1 from entry_keys newer
                where newer.stay_id = k.stay_id and newer.created_at > k.created_at))
        order by p.code, k.created_at, k.id
        limit :most
        """,
        most=MOST,
    )


def _commands(tx: Tx) -> Sequence[Row]:
    """What a lock has not answered yet, given up first."""
    return tx.rows(
        f"""
        select c.id, c.kind, c.attempts, c.next_attempt_at, c.last_error, c.dead_at, c.created_at,
               {COMMAND_STATE} as state, k.id as key_id, k.stay_id, g.name as guest,
               p.code as space_code, d.name_ja, d.name_en
        from lock_commands c
        join entry_keys k on k.id = c.key_id
        join stays s on s.id = k.stay_id
        join guests g on g.id = s.guest_id
        join spaces p on p.id = k.space_id
        join doors d on d.id = k.door_id
        where c.done_at is null
        order by c.dead_at nulls last, c.next_attempt_at, c.no
        limit :most
        """,
        most=MOST,
    )


def _resting(tx: Tx) -> Sequence[Row]:
    """Spaces that nobody may enter yet: a key of somebody who has left may still open the door."""
    return tx.rows(
        """
        select p.id, p.code, p.name_ja, p.name_en, k.id as key_id, k.stay_id, k.observed,
               k.observed_at, g.name as guest, asked.at as since, asked.reason,
               exists (select 1 from lock_commands c
                       where c.key_id = k.id and c.dead_at is not null) as given_up
        from entry_keys k
        join spaces p on p.id = k.space_id
        join stays s on s.id = k.stay_id
        join guests g on g.id = s.guest_id
        left join lateral (
            select t.at, t.reason from transitions t
            where t.machine = 'entry_key' and t.subject_id = k.id and t.event = 'revoke_asked'
            order by t.at desc limit 1
        ) asked on true
        where k.state not in ('revoked', 'failed')
          and (s.state <> 'admitted' or s.space_id <> k.space_id)
        order by p.code, k.created_at, k.id
        limit :most
        """,
        most=MOST,
    )
