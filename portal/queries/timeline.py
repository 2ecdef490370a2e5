"""What happened to a stay, a payment, a key, a message or a membership, in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from portal.db import Row, Tx
from portal.policies.door_at import Change, Step
from portal.policies.why_door import KeyOf, Refusal, Story
from portal.queries.stay_page import MESSAGE_END, MESSAGE_STATE

Kind = Literal["stay", "payment", "key", "message", "membership"]
KINDS: tuple[Kind, ...] = ("stay", "payment", "key", "message", "membership")

MOST = 500
"""Moments of one page. A subject with more than that has a story of its own."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """`moments`: the latest `MOST`, the oldest of them first. `more`: there are older ones."""

    head: Row
    moments: Sequence[Row]
    keys: Sequence[Row]
    more: bool


_HEADS: Mapping[Kind, str] = {
    "stay": """
        select s.id as stay_id, s.code as stay_code, g.name as guest, s.currency, s.state
        from stays s join guests g on g.id = s.guest_id where s.id = :id
    """,
    "payment": """
        select p.stay_id, p.membership_id, s.code as stay_code, coalesce(g.name, n.name) as guest,
               p.currency, p.state, p.purpose, p.amount
        from payments p left join stays s on s.id = p.stay_id
        left join guests g on g.id = s.guest_id
        left join memberships m on m.id = p.membership_id
        left join members r on r.id = m.member_id
        left join guests n on n.id = r.guest_id where p.id = :id
    """,
    "key": """
        select k.stay_id, s.code as stay_code, g.name as guest, s.currency, k.state, k.starts_at,
               k.ends_at, s.ends_at as stay_ends_at, p.code as space_code, d.name_ja, d.name_en
        from entry_keys k join stays s on s.id = k.stay_id join guests g on g.id = s.guest_id
        join spaces p on p.id = k.space_id join doors d on d.id = k.door_id where k.id = :id
    """,
    "message": f"""
        select o.stay_id, s.code as stay_code, coalesce(g.name, n.name) as guest,
               coalesce(s.currency, m.currency) as currency, o.membership_id, o.event_type,
               o.channel, o.recipient, o.locale, o.attempts, o.last_error, {MESSAGE_STATE} as state
        from outbox o left join stays s on s.id = o.stay_id
        left join guests g on g.id = s.guest_id
        left join memberships m on m.id = o.membership_id
        left join members r on r.id = m.member_id
        left join guests n on n.id = r.guest_id where o.id = :id
    """,
    "membership": """
        select null::uuid as stay_id, m.id as membership_id, g.name as guest, m.currency, m.state
        from memberships m join members r on r.id = m.member_id
        join guests g on g.id = r.guest_id where m.id = :id
    """,
}

# Rows of state machines that the subject is, or that are its own.
_SUBJECTS: Mapping[Kind, str] = {
    "stay": """
        select 'stay' as machine, cast(:id as uuid) as id
        union all select 'entry_key', id from entry_keys where stay_id = :id
        union all select 'payment', id from payments where stay_id = :id
        union all select 'refund', id from refunds where stay_id = :id
    """,
    "payment": """
        select 'payment' as machine, cast(:id as uuid) as id
        union all select 'refund', id from refunds where payment_id = :id
    """,
    "key": "select 'entry_key' as machine, cast(:id as uuid) as id",
    "message": "select '' as machine, cast(null as uuid) as id where false",
    "membership": """
        select 'membership' as machine, cast(:id as uuid) as id
        union all select 'payment', id from payments where membership_id = :id
        union all select 'refund', id from refunds where membership_id = :id
    """,
}

# A message names its fact in the second part of its dedupe key.
_MESSAGES: Mapping[Kind, str] = {
    "stay": "o.stay_id = :id",
    "payment": """(o.stay_id = (select stay_id from payments where id = :id)
         or o.membership_id = (select membership_id from payments where id = :id))
        and split_part(o.dedupe_key, ':', 2) in (select id::text from subjects)""",
    "key": """o.stay_id = (select stay_id from entry_keys where id = :id)
        and split_part(o.dedupe_key, ':', 2) = cast(:id as text)""",
    "message": "o.id = :id",
    "membership": "o.membership_id = :id",
}

_LEDGER: Mapping[Kind, str] = {
    "stay": "l.stay_id = :id",
    "payment": """(l.stay_id = (select stay_id from payments where id = :id)
         or l.membership_id = (select membership_id from payments where id = :id))
        and (l.payment_id = :id or l.refund_id in (select id from subjects))""",
    "key": "false",
    "message": "false",
    "membership": "l.membership_id = :id",
}

_COMMANDS: Mapping[Kind, str] = {
    "stay": "c.key_id in (select id from subjects where machine = 'entry_key')",
    "payment": "false",
    "key": "c.key_id = :id",
    "message": "false",
    "membership": "false",
}

# A row's `created_at` is when its transaction began, a record's `at` when the verb wrote it. What
# was asked for with a change stands after that change.
_AFTER_ITS_CAUSE = """
    greatest({row}.created_at, (
        select max(m.at) from moved m
        where m.request_id = {row}.request_id and m.request_id <> ''
          and m.at between {row}.created_at and {row}.created_at + interval '5 seconds'))
"""

_STORY = """
    with subjects as (
        {subjects}
    ), moved as (
        select t.* from subjects join transitions t
        on t.machine = subjects.machine and t.subject_id = subjects.id
    ), messages as (
        select o.event_type, {message_at} as created_at, o.request_id,
               {message_state} as state, {message_end} as ended_at
        from outbox o where {messages}
    ), commands as (
        select c.kind, {command_at} as created_at, c.done_at, c.dead_at, c.result, c.last_error,
               c.request_id, c.no
        from lock_commands c where {commands}
    ), events as (
        select e.type, e.event_id, e.received_at, e.completed_at, e.outcome, e.request_id
        from webhook_events e
        where e.request_id in (select request_id from moved where request_id <> '')
    )
    select at, machine as kind, event, verb, reason as detail, actor_kind, actor_name,
           null::bigint as amount, request_id, 1 as rank, id as seq from moved
    union all
    select l.at, 'ledger', l.kind, l.item, l.memo, l.actor_kind, l.actor_name, l.amount,
           l.request_id, 2, l.id from ledger_lines l where {ledger}
    union all
    select a.at, 'gate', a.code, case when a.let_in then 'let_in'
               when a.asks = 'move' then 'move' end,
           concat_ws(' · ', a.ground, a.statute), a.actor_kind, a.actor_name, null, a.request_id, 2,
           a.id
    from gate_audits a where {gate}
    union all
    select created_at, 'message', 'waiting', null, event_type, 'system', 'monban', null,
           request_id, 4, 0 from messages
    union all
    select ended_at, 'message', state, null, event_type, 'system', 'monban', null, request_id, 5,
           0
    from messages where ended_at is not null
    union all
    select created_at, 'lock', kind, null, null, 'system', 'monban', null, request_id, 3, no
    from commands
    union all
    select coalesce(done_at, dead_at), 'lock', case when done_at is null then 'given_up'
           else 'done' end, null, coalesce(result, last_error), 'system', 'monban', null,
           request_id, 0, no
    from commands where done_at is not null or dead_at is not null
    union all
    select received_at, 'webhook', 'received', null, type, 'provider', 'provider', null,
           request_id, 0, 0 from events
    union all
    select completed_at, 'webhook', outcome, null, type, 'system', 'monban', null, request_id, 6,
           0
    from events where completed_at is not null
    order by at desc, rank desc, seq desc
    limit :most
"""

_GATE: Mapping[Kind, str] = {
    "stay": """a.stay_id = :id and a.at >= (
        select min(t.at) from transitions t where t.machine = 'stay' and t.subject_id = :id)""",
    "payment": "false",
    "key": "false",
    "message": "false",
    "membership": "false",
}


def load(tx: Tx, kind: Kind, subject_id: UUID) -> Timeline | None:
    """None when the house has no such row. Three statements at most."""
    head = tx.row(_HEADS[kind], id=subject_id)
    if head is None:
        return None
    sql = _STORY.format(
        subjects=_SUBJECTS[kind],
        messages=_MESSAGES[kind],
        message_state=MESSAGE_STATE,
        message_end=MESSAGE_END,
        message_at=_AFTER_ITS_CAUSE.format(row="o"),
        command_at=_AFTER_ITS_CAUSE.format(row="c"),
        ledger=_LEDGER[kind],
        commands=_COMMANDS[kind],
        gate=_GATE[kind],
    )
    found = tx.rows(sql, id=subject_id, most=MOST + 1)
    keys = _keys(tx, subject_id) if kind == "stay" else []
    return Timeline(head, list(reversed(found[:MOST])), keys, len(found) > MOST)


def _keys(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select k.id, k.state, d.name_ja, d.name_en, p.code as space_code
        from entry_keys k join doors d on d.id = k.door_id join spaces p on p.id = k.space_id
        where k.stay_id = :stay order by k.created_at, k.id
        """,
        stay=stay_id,
    )


def story(tx: Tx, stay_id: UUID) -> Story:
    """All that says whether a door was open for the guest of a stay. Three statements."""
    keys = tx.rows(
        "select id, door_id, starts_at, ends_at from entry_keys where stay_id = :stay"
        " order by created_at, id",
        stay=stay_id,
    )
    moved = tx.rows(
        """
        select machine, subject_id, verb, at, from_state, to_state, actor_name, reason
        from transitions
        where machine = 'stay' and subject_id = :stay
           or machine = 'entry_key' and subject_id = any(:keys)
        order by at, id
        """,
        stay=stay_id,
        keys=[key.id for key in keys],
    )
    refusals = tx.rows(
        """
        select at, code, concat_ws(' · ', ground, statute) as ground from gate_audits
        where stay_id = :stay and asks = 'entry' and not let_in order by at, id
        """,
        stay=stay_id,
    )
    return Story(
        stay=[_step(row) for row in moved if row.machine == "stay" and row.verb not in WITHIN],
        keys=[
            KeyOf(
                key.door_id,
                key.starts_at,
                key.ends_at,
                tuple(_step(row) for row in moved if row.subject_id == key.id),
            )
            for key in keys
        ],
        changes=_changes(moved),
        refusals=[Refusal(row.at, row.code, row.ground) for row in refusals],
    )


WITHIN = ("change_times", "move_to")
"""Verbs that change a stay and not its state."""


def doors_of(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """The doors of a stay's keys, and of the space that it has now."""
    return tx.rows(
        """
        select d.id, d.name_ja, d.name_en from doors d
        where d.id in (select door_id from entry_keys where stay_id = :stay)
           or d.id = (select p.door_id from stays s join spaces p on p.id = s.space_id
                      where s.id = :stay)
        order by d.no
        """,
        stay=stay_id,
    )


def steps(tx: Tx, key_id: UUID) -> list[Step]:
    """What became of a key, in order."""
    rows = tx.rows(
        """
        select at, to_state, actor_name from transitions
        where machine = 'entry_key' and subject_id = :key order by at, id
        """,
        key=key_id,
    )
    return [_step(row) for row in rows]


def changes(tx: Tx, stay_id: UUID) -> list[Change]:
    """When the stay's end moved: its own records say from where to where."""
    return _changes(
        tx.rows(
            """
            select verb, at, reason from transitions
            where machine = 'stay' and subject_id = :stay and verb = 'change_times'
            order by at, id
            """,
            stay=stay_id,
        )
    )


def _step(row: Row) -> Step:
    return Step(row.at, row.to_state, row.actor_name)


def _changes(moved: Sequence[Row]) -> list[Change]:
    found = []
    for row in moved:
        if row.verb != "change_times":
            continue
        before, _, after = (row.reason or "").partition(" → ")
        ends = [_end_of(period) for period in (before, after)]
        if ends[0] and ends[1]:
            found.append(Change(row.at, ends[0], ends[1]))
    return found


def _end_of(period: str) -> datetime | None:
    """The second instant of `iso/iso`."""
    try:
        return datetime.fromisoformat(period.partition("/")[2])
    except ValueError:
        return None
