"""The outbox: a message is a row written with the change. Nobody else may enqueue, nobody sends
inline; `jobs.outbox` is the only caller of a channel."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from portal.db import Row, Tx
from portal.log import request_id
from portal.models.stay import AWAITED_BY

LEASE = timedelta(minutes=5)
BATCH = 50

# Door keys before receipts before the rest.
PRIORITY = {
    "entry_key_issued": 0,
    "entry_key_changed": 0,
    "payment_received": 1,
    "membership_paid": 1,
    "refund_sent": 1,
    "membership_refund_sent": 1,
}
OTHER = 2


def enqueue(
    tx: Tx,
    stay_id: UUID | None,
    event_type: str,
    fact: str,
    payload: Mapping[str, Any],
    *,
    membership_id: UUID | None = None,
    consumer_key: str | None = None,
    by_mail_in: str | None = None,
    not_before: datetime | None = None,
) -> bool:
    """Write one message about one fact; `event_type:fact` is said once, however often it is asked.
    It is of a stay, or of a membership.

    False when the guest left no address. The payload holds ids and amounts, never a door code.
    Where and in which language is resolved now: LINE before e-mail, and the guest's language, else
    the house's. `by_mail_in` is the language of a message that LINE has refused. One with
    `not_before` waits until then, and is withdrawn where it is no longer true.
    """
    dedupe_key = f"{event_type}:{fact}"
    addressed: bool | None = tx.scalar(
        """
        with person as (
            select guest_id from stays where id = :stay_id
            union all
            select r.guest_id from memberships m join members r on r.id = m.member_id
            where m.id = :membership_id
        ), contact as (
            select g.email, coalesce(:locale, g.preferred_locale, f.default_locale) as locale,
                   case when cast(:locale as text) is null
                        then nullif(g.line_user_id, '') end as line
            from person p
            join guests g on g.id = p.guest_id
            join facilities f on f.id = g.facility_id
        ), written as (
            insert into outbox (facility_id, stay_id, membership_id, dedupe_key, consumer_key,
                event_type, channel, recipient, locale, payload, priority, request_id, not_before)
            select :facility_id, :stay_id, :membership_id, :dedupe_key, :consumer_key, :event_type,
                   case when line is null then 'email' else 'line' end, coalesce(line, email),
                   locale, cast(:payload as jsonb), :priority, :request_id,
                   coalesce(cast(:not_before as timestamptz), now())
            from contact where coalesce(line, email) <> ''
            on conflict (facility_id, dedupe_key) do nothing
        )
        select coalesce(line, email, '') <> '' from contact
        """,
        facility_id=tx.facility_id,
        stay_id=stay_id,
        membership_id=membership_id,
        dedupe_key=dedupe_key,
        consumer_key=consumer_key or dedupe_key,
        event_type=event_type,
        locale=by_mail_in,
        payload=json.dumps(dict(payload)),
        priority=PRIORITY.get(event_type, OTHER),
        request_id=request_id(),
        not_before=not_before,
    )
    if addressed is None:
        raise LookupError("a message was asked about what is not in scope")
    if addressed:
        tx.ring("outbox")
    return addressed


def claim(tx: Tx, token: UUID) -> list[tuple[UUID, UUID]]:
    """Up to BATCH due messages as (id, facility id), leased to `token`."""
    rows = tx.rows(
        "select id, facility_id from claim_outbox(:token, :batch, :lease)",
        token=token,
        batch=BATCH,
        lease=LEASE,
    )
    return [(row.id, row.facility_id) for row in rows]


_FACTS = f"""
    with o as materialized (
        select *, (payload ->> 'key_id')::uuid as key_id,
               (payload ->> 'payment_id')::uuid as payment_id,
               (payload ->> 'deposit_by')::timestamptz as deposit_by,
               coalesce((select guest_id from stays where id = outbox.stay_id),
                        (select r.guest_id from memberships m join members r on r.id = m.member_id
                         where m.id = outbox.membership_id)) as guest_id
        from outbox where id = :id
    )
    select o.id, o.event_type, o.channel, o.recipient, o.locale, o.payload, o.dedupe_key,
           o.consumer_key, o.attempts, o.sending_at, o.claim_token, o.request_id, o.stay_id,
           o.membership_id, g.name as guest_name, g.email, s.code, s.starts_at,
           coalesce(s.ends_at, m.ends_at) as ends_at, coalesce(s.currency, m.currency) as currency,
           coalesce(s.token_sealed, m.token_sealed) as token_sealed, f.name_ja, f.name_en,
           f.time_zone, n.name_ja as plan_ja, n.name_en as plan_en,
           n.retired_at is not null as plan_retired,
           p.name_ja as space_ja, p.name_en as space_en, y.amount as payment_amount,
           s.deposit_by, {AWAITED_BY} is not null as deposit_awaited,
           case when s.deposit_due > 0 then deposit_open(s) end as deposit_open,
           exists (select 1 from consumed_effects c
                   where c.consumer_key = o.consumer_key) as already_heard,
           case o.event_type
               when 'entry_key_issued' then k.state = 'issued'
               when 'entry_key_changed' then k.state = 'issued'
               when 'payment_received' then y.state in ('succeeded', 'refund_owed')
               when 'membership_paid' then y.state in ('succeeded', 'refund_owed')
               when 'stay_created' then s.state in ('reserved', 'admitted')
               when 'stay_changed' then s.state in ('reserved', 'admitted')
               when 'stay_cancelled' then s.state = 'cancelled'
               when 'deposit_missed' then s.state = 'cancelled'
               when 'deposit_deadline' then s.state = 'reserved' and deposit_to_come(s) > 0
                    and s.deposit_by is not distinct from o.deposit_by
               when 'deposit_reminder' then {AWAITED_BY} = o.deposit_by
               when 'membership_applied' then m.state = 'applying'
               when 'membership_checkout' then m.state = 'checkout'
               when 'membership_overdue' then m.state = 'past_due'
               when 'membership_approved' then m.state in ('active', 'past_due', 'scheduled_to_end')
               when 'membership_end_scheduled' then m.state = 'scheduled_to_end'
               when 'membership_resumed' then m.state = 'active'
               else true
           end as still_true
    from o
    left join stays s on s.id = o.stay_id
    left join spaces p on p.id = s.space_id
    left join memberships m on m.id = o.membership_id
    left join membership_plans n on n.id = m.plan_id
    join guests g on g.id = o.guest_id
    join facilities f on f.id = o.facility_id
    left join entry_keys k on k.id = o.key_id
    left join payments y on y.id = o.payment_id
"""
"""A message with what its words need, and whether it has been heard and is still true. Its ids are
read out of the payload first: row-level security lets no index be asked by an expression that might
leak, and each message would read through every payment of the house."""


def load(tx: Tx, message_id: UUID) -> Row | None:
    return tx.row(_FACTS, id=message_id)


def begin_sending(tx: Tx, message_id: UUID, token: UUID, *, sent: UUID | None = None) -> Row | None:
    """Mark that transmission begins, and return the message's facts; their `sending_at` is that of
    an earlier try whose end nobody knows. None when the claim is no longer ours or nothing may be
    sent: it was heard, it is no longer true, or an e-mail's sender died. `sent` is the message
    before it, marked and remembered in the same statement."""
    return tx.row(
        f"""
        with facts as ({_FACTS}), done as (
            {_SENT} returning facility_id, consumer_key
        ), remembered as (
            {_REMEMBER}
        ), begun as (
            update outbox o set sending_at = now()
            from facts
            where o.id = facts.id and o.claim_token = :token
              and facts.still_true and not facts.already_heard
              and o.consumer_key not in (select consumer_key from done)
              and (o.sending_at is null or o.channel = 'line')
            returning o.id
        )
        select facts.* from facts join begun on begun.id = facts.id
        """,
        id=message_id,
        token=token,
        sent=sent,
    )


_SENT = """
    update outbox set sent_at = now(), claimed_at = null, claim_token = null
    where id = :sent and claim_token = :token and sent_at is null
"""
_REMEMBER = """
    insert into consumed_effects (facility_id, consumer_key)
    select facility_id, consumer_key from done
    on conflict do nothing
"""


def sent(tx: Tx, message_id: UUID, token: UUID) -> None:
    """Mark it sent and remember its consumer key, in this one transaction."""
    tx.run(
        f"with done as ({_SENT} returning facility_id, consumer_key) {_REMEMBER}",
        sent=message_id,
        token=token,
    )


def recorded(tx: Tx, message_id: UUID) -> bool:
    """unknown, dead → sent, by the word of a server that has it: remembered as a sender would."""
    settled = tx.scalar(
        f"""
        with done as (
            update outbox
            set sent_at = coalesce(sending_at, now()), unknown_at = null, dead_at = null,
                claimed_at = null, claim_token = null
            where id = :id and sent_at is null and (unknown_at is not null or dead_at is not null)
            returning facility_id, consumer_key
        ), remembered as (
            {_REMEMBER}
        )
        select 1 from done
        """,
        id=message_id,
    )
    return settled is not None


def suppress(tx: Tx, message_id: UUID, token: UUID) -> bool:
    """Its effect happened already under the same consumer key."""
    return _settle(tx, message_id, token, "suppressed_at = now()")


def withdraw(tx: Tx, message_id: UUID, token: UUID) -> bool:
    """The fact it states is no longer true."""
    return _settle(tx, message_id, token, "withdrawn_at = now()")


def release(
    tx: Tx, message_id: UUID, token: UUID, pause: timedelta, error: str, *, in_doubt: bool = False
) -> bool:
    """Give the claim back and try again after `pause`. Nothing was sent, or it is `in_doubt`."""
    return _settle(
        tx,
        message_id,
        token,
        "sending_at = case when :in_doubt then sending_at end,"
        " next_attempt_at = now() + :pause, last_error = :error",
        in_doubt=in_doubt,
        pause=pause,
        error=error,
    )


def lose(tx: Tx, message_id: UUID, token: UUID, error: str) -> bool:
    """It may have been delivered, and the channel cannot be asked: a person decides."""
    return _settle(tx, message_id, token, "unknown_at = now(), last_error = :error", error=error)


def replace(tx: Tx, message_id: UUID, token: UUID, error: str) -> bool:
    """Refused for good on this channel; another row says it on another."""
    return _settle(tx, message_id, token, "dropped_at = now(), last_error = :error", error=error)


def bury(tx: Tx, message_id: UUID, token: UUID, error: str) -> bool:
    """Leave it to a person."""
    return _settle(tx, message_id, token, "dead_at = now(), last_error = :error", error=error)


def _settle(tx: Tx, message_id: UUID, token: UUID, change: str, **params: Any) -> bool:
    settled = tx.run(
        f"""
        update outbox set {change}, claimed_at = null, claim_token = null
        where id = :id and claim_token = :token
        """,
        id=message_id,
        token=token,
        **params,
    )
    return settled.rowcount == 1
