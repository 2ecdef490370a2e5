"""Everything that waits for a person. One statement a kind; the oldest first."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from portal.db import Row, Tx

MOST = 100
"""Rows shown of one kind; with more than that, the first hundred are work enough."""

Rows = Sequence[Row]

# A refund that the house asked for and the provider has not taken for so long is not just slow.
STUCK = "interval '30 minutes'"

# Whoever asked the provider for something has long had an answer, or is no more.
LONG = "interval '5 minutes'"


def _since(machine: str) -> str:
    """When the row `x` came into the state that it is in."""
    return f"""
        coalesce((select max(t.at) from transitions t
                  where t.machine = '{machine}' and t.subject_id = x.id and t.to_state = x.state
                    and t.from_state is distinct from t.to_state), x.created_at)
    """


GUEST = "x.stay_id, s.code as stay_code, g.name as guest"
PAYER = "x.stay_id, x.membership_id, s.code as stay_code, coalesce(g.name, n.name) as guest"
OF_STAY = "left join stays s on s.id = x.stay_id left join guests g on g.id = s.guest_id"
OF_MEMBERSHIP = """
    left join memberships m on m.id = x.membership_id left join members r on r.id = m.member_id
    left join guests n on n.id = r.guest_id
"""
AT_DOOR = f"""
    {OF_STAY} join spaces p on p.id = x.space_id join doors d on d.id = x.door_id
"""

ASKED = """
    coalesce((select max(c.created_at) from lock_commands c
              where c.key_id = x.id and c.kind = case x.state when 'requested' then 'set'
                                                 else 'remove' end), x.created_at)
"""
"""When the lock was asked for what a key `x` waits for."""

# Keys that the lock has not confirmed within the house's own limit.
UNCONFIRMED = f"""
    from entry_keys x join facilities f on f.id = x.facility_id
    where x.state in ('requested', 'revoking')
      and {ASKED} < :now - make_interval(mins => f.key_alarm_minutes)
"""

# Commands that a lock may have carried out; the worker asks it before it repeats one.
UNCLEAR = """
    from lock_commands c
    where c.unknown_at is not null and c.done_at is null and c.dead_at is null
"""

# Keys that a guest in house cannot open the door with, and that nothing newer replaces.
BROKEN = """
    from entry_keys x
    join stays s on s.id = x.stay_id and s.state = 'admitted' and s.ends_at > :now
    where x.state in ('failed', 'missing') and not exists (
        select 1 from entry_keys newer where newer.stay_id = x.stay_id
        and newer.created_at > x.created_at and newer.state in ('requested', 'issued'))
"""

UNCLEAR_BILLING = f"""
    from billing_legs x
    where x.progress = 'unknown' or (x.progress = 'open' and x.created_at < now() - {LONG})
"""

# Refunds that failed after the person who asked was told they were on their way, or that nobody
# asked for in person. Another refund of the payment, or a person's word, ends the wait.
FAILED = """
    from refunds x
    where x.state = 'failed' and (x.reason <> 'staff' or x.provider_refund_id is not null)
      and not exists (select 1 from refunds later
                      where later.payment_id = x.payment_id and later.created_at > x.created_at)
      and not exists (select 1 from dead_letters d
                      where d.source_kind = 'refund' and d.source_id = x.id)
"""

UNSENT_REFUND = f"""
    from refunds x
    where x.state = 'unknown' or (x.state = 'asked' and x.created_at < now() - {STUCK})
"""

WAITING_MESSAGE = """
    from outbox x
    where (x.dead_at is not null or x.unknown_at is not null) and x.dropped_at is null
      and x.sent_at is null and x.withdrawn_at is null and x.suppressed_at is null
      and not exists (select 1 from divergences d
                      where d.message_id = x.id and d.healed_at is null)
"""
"""Not where the archive has told more: then it waits once, as a difference."""

OPEN_DISPUTES = """
    from disputes x
    where x.status in ('warning_needs_response', 'warning_under_review', 'needs_response',
                       'under_review')
"""

DIVERGENCES = "from divergences x where x.healed_at is null"

# What the house owes beyond what is already on its way back to a card.
OWED = """
    from (
        select l.stay_id, -sum(l.amount)::bigint as owed, max(l.at) as at
        from ledger_lines l group by l.stay_id having sum(l.amount) < 0
    ) x
    join stays s on s.id = x.stay_id
    join guests g on g.id = s.guest_id
    cross join lateral (
        select x.owed - coalesce(sum(r.amount), 0)::bigint as amount from refunds r
        where r.stay_id = x.stay_id and r.state in ('asked', 'unknown', 'pending')
          and not r.lowers_price
    ) open
    where open.amount > 0
"""


@dataclass(frozen=True, slots=True)
class Attention:
    """In the order of a night's urgency: doors, money, words, machinery."""

    listed: Rows
    broken_keys: Rows
    unconfirmed_keys: Rows
    dead_commands: Rows
    unclear_commands: Rows
    unknown_payments: Rows
    stuck_refunds: Rows
    failed_refunds: Rows
    owed: Rows
    disputes: Rows
    divergences: Rows
    unproven_ends: Rows
    unclear_billing: Rows
    messages: Rows
    letters: Rows

    @property
    def count(self) -> int:
        return sum(len(getattr(self, field.name)) for field in fields(self))


def look(tx: Tx, now: datetime) -> Attention:
    """Fifteen statements, whatever waits."""
    return Attention(
        listed=_listed(tx),
        broken_keys=_broken_keys(tx, now),
        unconfirmed_keys=_unconfirmed_keys(tx, now),
        dead_commands=_commands(tx, "from lock_commands c where c.dead_at is not null"),
        unclear_commands=_commands(tx, UNCLEAR),
        unknown_payments=_unknown_payments(tx),
        stuck_refunds=_stuck_refunds(tx),
        failed_refunds=_failed_refunds(tx),
        owed=_owed(tx),
        disputes=_disputes(tx),
        divergences=_divergences(tx),
        unproven_ends=_unproven_ends(tx),
        unclear_billing=_unclear_billing(tx),
        messages=_messages(tx),
        letters=_letters(tx),
    )


def count(tx: Tx, now: datetime) -> int:
    """How many things stand on the page, by the same words of SQL; one statement."""
    kinds = (
        BROKEN,
        UNCONFIRMED,
        "from lock_commands where dead_at is not null",
        UNCLEAR,
        "from payments where state = 'unknown'",
        UNSENT_REFUND,
        FAILED,
        OWED,
        OPEN_DISPUTES,
        DIVERGENCES,
        "from end_obligations where proven_at is null",
        UNCLEAR_BILLING,
        WAITING_MESSAGE,
        "from dead_letters where closed_at is null",
    )
    parts = " + ".join(f"(select count(*) {kind})" for kind in kinds)
    return int(tx.scalar(f"select {parts}", now=now))


def _broken_keys(tx: Tx, now: datetime) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.state, x.failure, {GUEST}, s.version, p.code as space_code, d.name_ja,
               d.name_en, {_since("entry_key")} as at
        from entry_keys x {AT_DOOR}
        where x.id in (select x.id {BROKEN})
        order by at, x.id limit :most
        """,
        now=now,
        most=MOST,
    )


def _unconfirmed_keys(tx: Tx, now: datetime) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.state, x.observed, x.door_id, {GUEST}, s.version, s.state as stay_state,
               p.code as space_code, d.name_ja, d.name_en, {ASKED} as at
        from entry_keys x {AT_DOOR}
        where x.id in (select x.id {UNCONFIRMED})
        order by at, x.id limit :most
        """,
        now=now,
        most=MOST,
    )


def _commands(tx: Tx, which: str) -> Rows:
    """`in_doubt`: an answer was lost, so the lock may have carried it out."""
    return tx.rows(
        f"""
        select c.id, c.kind, c.attempts, c.last_error, coalesce(c.dead_at, c.unknown_at) as at,
               c.unknown_at is not null as in_doubt, {GUEST}, p.code as space_code, d.name_ja,
               d.name_en
        from lock_commands c join entry_keys x on x.id = c.key_id {AT_DOOR}
        where c.id in (select c.id {which})
        order by at, c.no limit :most
        """,
        most=MOST,
    )


def _unknown_payments(tx: Tx) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.purpose, x.amount, x.currency, x.last_error, {PAYER},
               {_since("payment")} as at
        from payments x {OF_STAY} {OF_MEMBERSHIP}
        where x.state = 'unknown'
        order by at, x.id limit :most
        """,
        most=MOST,
    )


def _stuck_refunds(tx: Tx) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.state, x.payment_id, x.amount, x.currency, x.reason, x.last_error,
               x.attempts, {PAYER}, x.created_at as at
        from refunds x {OF_STAY} {OF_MEMBERSHIP}
        where x.id in (select x.id {UNSENT_REFUND})
        order by x.created_at, x.id limit :most
        """,
        most=MOST,
    )


def _failed_refunds(tx: Tx) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.payment_id, x.amount, x.currency, x.reason, x.failure, {PAYER},
               {_since("refund")} as at
        from refunds x {OF_STAY} {OF_MEMBERSHIP}
        where x.id in (select x.id {FAILED})
        order by at, x.id limit :most
        """,
        most=MOST,
    )


def _owed(tx: Tx) -> Rows:
    return tx.rows(
        f"""
        select open.amount, s.currency, s.state as stay_state, {GUEST}, x.at
        {OWED}
        order by x.at, x.stay_id limit :most
        """,
        most=MOST,
    )


def _disputes(tx: Tx) -> Rows:
    """Whichever has to be answered first stands first."""
    return tx.rows(
        f"""
        select x.id, x.payment_id, x.provider_dispute_id, x.livemode, x.amount, x.currency,
               x.status, x.reason, x.answer_by, y.stay_id, y.membership_id, s.code as stay_code,
               coalesce(g.name, n.name) as guest, x.opened_at as at
        from (select x.* {OPEN_DISPUTES}) x
        join payments y on y.id = x.payment_id
        left join stays s on s.id = y.stay_id left join guests g on g.id = s.guest_id
        left join memberships m on m.id = y.membership_id left join members r on r.id = m.member_id
        left join guests n on n.id = r.guest_id
        order by x.answer_by nulls last, x.id limit :most
        """,
        most=MOST,
    )


def _divergences(tx: Tx) -> Rows:
    return tx.rows(
        """
        select x.id, x.kind, x.subject, x.ours, x.theirs, x.payment_id, x.key_id,
               coalesce(m.stay_id, k.stay_id, o.stay_id) as stay_id, s.code as stay_code,
               coalesce(g.name, n.name) as guest, o.event_type, ms.id as membership_id,
               d.name_ja, d.name_en, x.first_seen as at
        from divergences x
        left join payments m on m.id = x.payment_id
        left join entry_keys k on k.id = x.key_id
        left join doors d on d.id = x.door_id
        left join outbox o on o.id = x.message_id
        left join stays s on s.id = coalesce(m.stay_id, k.stay_id, o.stay_id)
        left join guests g on g.id = s.guest_id
        left join memberships ms
            on ms.id = coalesce(x.membership_id, m.membership_id, o.membership_id)
        left join members r on r.id = ms.member_id
        left join guests n on n.id = r.guest_id
        where x.healed_at is null
        order by x.first_seen, x.id limit :most
        """,
        most=MOST,
    )


def _messages(tx: Tx) -> Rows:
    return tx.rows(
        f"""
        select x.id, x.event_type, x.channel, x.recipient, x.attempts, x.last_error, x.stay_id,
               x.membership_id, s.code as stay_code, coalesce(g.name, n.name) as guest,
               case when x.dead_at is not null then 'dead' else 'unknown' end as state,
               coalesce(x.dead_at, x.unknown_at) as at
        from outbox x {OF_STAY} {OF_MEMBERSHIP}
        where x.id in (select x.id {WAITING_MESSAGE})
        order by at, x.id limit :most
        """,
        most=MOST,
    )


def _unproven_ends(tx: Tx) -> Rows:
    """Memberships that have ended, and what of their end nobody has proven yet."""
    return tx.rows(
        f"""
        select x.kind, x.membership_id, n.name as guest, x.since as at
        from end_obligations x {OF_MEMBERSHIP}
        where x.proven_at is null
        order by x.since, x.id limit :most
        """,
        most=MOST,
    )


def _unclear_billing(tx: Tx) -> Rows:
    """Acts at the provider whose answer was lost, or whose asker has died."""
    return tx.rows(
        f"""
        select x.id, x.kind, x.membership_id, x.last_error, x.actor_name, n.name as guest,
               x.created_at as at
        from billing_legs x {OF_MEMBERSHIP}
        where x.id in (select x.id {UNCLEAR_BILLING})
        order by x.created_at, x.id limit :most
        """,
        most=MOST,
    )


def _listed(tx: Tx) -> Rows:
    """Guests whom the blocklist names and whom the law lets nobody refuse."""
    return tx.rows(
        """
        select x.id, x.source_id as stay_id, x.error as ground, x.at, s.code as stay_code,
               g.name as guest, p.code as space_code
        from dead_letters x
        join stays s on s.id = x.source_id join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        where x.closed_at is null and x.source_kind = 'gate'
        order by x.at, x.id limit :most
        """,
        most=MOST,
    )


def _letters(tx: Tx) -> Rows:
    """Some belong to no house yet: an event that names nothing of ours. Any house may see them."""
    return tx.rows(
        """
        select d.id, d.source_kind, d.title, d.error, d.at,
               exists (select 1 from webhook_events e where e.id = d.source_id) as replayable
        from dead_letters d
        where d.closed_at is null and d.source_kind <> 'gate'
        order by d.at, d.id limit :most
        """,
        most=MOST,
    )
