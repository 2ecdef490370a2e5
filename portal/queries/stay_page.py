"""Everything that one stay's page says: the stay, its money, keys, messages and history."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal import ledger
from portal.db import Row, Tx
from portal.models import quota, ticket
from portal.models.cancellation import STEPS
from portal.models.register import COMPLETED
from portal.models.stay import ENDED_BY_DEPOSIT
from portal.queries import tickets
from portal.queries.stays import GATE, GIVEN_BY, SHOWN

HISTORY = 100
"""Moments of the timeline on the stay's own page; the timeline's page has all."""


@dataclass(frozen=True, slots=True)
class Folio:
    """The ledger's lines with what they add up to, in the smallest unit."""

    lines: Sequence[Row]
    charged: int
    paid: int
    cash_held: int
    balance: int


@dataclass(frozen=True, slots=True)
class StayPage:
    stay: Row
    folio: Folio
    payments: Sequence[Row]
    refunds: Sequence[Row]
    keys: Sequence[Row]
    messages: Sequence[Row]
    tickets: Sequence[Row]
    history: Sequence[Row]

    @property
    def in_flight(self) -> int:
        """What is going back to a card and is not in the folio yet."""
        return sum(
            refund.amount
            for refund in self.refunds
            if refund.state in ("asked", "unknown", "pending") and not refund.lowers_price
        )


def load(tx: Tx, stay_id: UUID) -> StayPage | None:
    """None when there is no such stay in this house. Eight statements."""
    stay = head(tx, stay_id)
    if stay is None:
        return None
    return StayPage(
        stay,
        _folio(tx, stay_id),
        _payments(tx, stay_id),
        _refunds(tx, stay_id),
        _keys(tx, stay_id),
        _messages(tx, stay_id),
        tickets.of_stay(tx, stay_id),
        history(tx, stay_id),
    )


def head(tx: Tx, stay_id: UUID) -> Row | None:
    """The stay with its guest, space and plan, and the facts that the gate decides on."""
    return tx.row(
        f"""
        select {SHOWN}, {GATE}, s.note, s.token_sealed, s.created_at, s.admitted_at, s.departed_at,
               s.cancelled_at, s.deposit_by, {ENDED_BY_DEPOSIT} as ended_by_deposit, s.plan_id,
               s.state = 'reserved' and s.deposit_due > 0 and deposit_to_come(s) > 0
                   as awaits_deposit,
               p.name_ja as space_ja, p.name_en as space_en,
               {STEPS} as cancellation_steps, {quota.HELD} as quota_month,
               {ticket.HELD} as ticket_book_id,
               exists (select 1 from ticket_offers t where t.withdrawn_at is null) as sells_tickets,
               g.line_user_id, g.preferred_locale, f.default_locale,
               plan.name_ja as plan_ja, plan.name_en as plan_en, plan.unit,
               coalesce(s.unit_price, plan.unit_price) as unit_price,
               {COMPLETED} as register_completed_at,
               joined.name_ja as joined_ja, joined.name_en as joined_en,
               coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id
                         and l.item = 'lodging_tax'), 0)::bigint as lodging_tax,
               coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id
                         and l.kind in ('charge', 'charge_reversed', 'fee')
                         and l.item = ''), 0)::bigint as price,
               coalesce((select sum(amount) from ledger_lines l where l.stay_id = s.id
                         and l.kind in ('charge', 'charge_reversed', 'fee')), 0)::bigint as charged
        from stays s
        join guests g on g.id = s.guest_id
        join spaces p on p.id = s.space_id
        join facilities f on f.id = s.facility_id
        {GIVEN_BY}
        left join membership_plans joined on joined.id = m.plan_id
        where s.id = :stay
        """,
        stay=stay_id,
    )


def _folio(tx: Tx, stay_id: UUID) -> Folio:
    lines = tx.rows(
        """
        select l.id, l.kind, l.item, l.amount, l.memo, l.at, l.actor_kind, l.actor_name
        from ledger_lines l where l.stay_id = :stay order by l.at, l.id
        """,
        stay=stay_id,
    )

    def total(*kinds: str) -> int:
        return sum(line.amount for line in lines if line.kind in kinds)

    return Folio(
        lines=lines,
        charged=total("charge", "charge_reversed", "fee"),
        paid=-total(*ledger.MONEY),
        cash_held=-total(*ledger.CASH),
        balance=sum(line.amount for line in lines),
    )


def _payments(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """`refundable`: what is left; a refund on its way is spent already, a failed one is not, and of
    what a bank has taken back nothing is left."""
    return tx.rows(
        """
        select p.id, p.purpose, p.attempt, p.amount, p.currency, p.state, p.decline_code,
               p.authorised_at, p.intent_id, p.created_at, p.succeeded_at,
               case when p.state in ('succeeded', 'refund_owed') and not exists (
                   select 1 from disputes d where d.payment_id = p.id and not d.refundable
               ) then p.amount - coalesce((
                   select sum(r.amount) from refunds r
                   where r.payment_id = p.id and r.state <> 'failed'), 0)
               else 0 end::bigint as refundable
        from payments p where p.stay_id = :stay order by p.created_at desc, p.id
        """,
        stay=stay_id,
    )


def _refunds(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select r.id, r.payment_id, r.amount, r.currency, r.state, r.reason, r.lowers_price,
               r.failure, r.created_at
        from refunds r where r.stay_id = :stay order by r.created_at desc, r.id
        """,
        stay=stay_id,
    )


def _keys(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select k.id, k.state, k.starts_at, k.ends_at, k.observed, k.observed_at, k.failure,
               k.created_at, d.name_ja, d.name_en, p.code as space_code,
               exists (select 1 from lock_commands c where c.key_id = k.id
                       and c.dead_at is not null) as given_up,
               exists (select 1 from lock_commands c where c.key_id = k.id
                       and c.unknown_at is not null and c.done_at is null) as in_doubt
        from entry_keys k
        join doors d on d.id = k.door_id
        join spaces p on p.id = k.space_id
        where k.stay_id = :stay order by k.created_at desc, k.id
        """,
        stay=stay_id,
    )


MESSAGE_STATE = """
    case when o.sent_at is not null then 'sent'
         when o.suppressed_at is not null then 'suppressed'
         when o.withdrawn_at is not null then 'withdrawn'
         when o.dropped_at is not null then 'dropped'
         when o.unknown_at is not null then 'unknown'
         when o.dead_at is not null then 'dead'
         else 'waiting' end
"""

MESSAGE_END = """
    coalesce(o.sent_at, o.suppressed_at, o.withdrawn_at, o.dropped_at, o.unknown_at, o.dead_at)
"""


def _messages(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    return tx.rows(
        f"""
        select o.id, o.event_type, o.channel, o.recipient, o.locale, o.attempts, o.created_at,
               {MESSAGE_STATE} as state, {MESSAGE_END} as ended_at
        from outbox o where o.stay_id = :stay order by o.created_at desc, o.id
        """,
        stay=stay_id,
    )


def history(tx: Tx, stay_id: UUID, limit: int = HISTORY) -> Sequence[Row]:
    """What happened to the stay, its keys and its money, latest first.

    `kind` is a machine's name, or `ledger`, `message`, `lock`, `gate`; `event` names what happened
    within it.
    """
    return tx.rows(
        f"""
        with subjects as (
            select 'stay' as machine, cast(:stay as uuid) as id
            union all select 'entry_key', id from entry_keys where stay_id = :stay
            union all select 'payment', id from payments where stay_id = :stay
            union all select 'refund', id from refunds where stay_id = :stay
        ), messages as (
            select o.event_type, o.channel, o.created_at,
                   {MESSAGE_STATE} as state, {MESSAGE_END} as ended_at
            from outbox o where o.stay_id = :stay
        ), commands as (
            select c.* from lock_commands c join entry_keys k on k.id = c.key_id
            where k.stay_id = :stay
        )
        select t.at, t.machine as kind, t.event, t.verb, t.reason as detail, t.actor_kind,
               t.actor_name, null::bigint as amount, t.id as seq
        from subjects join transitions t on t.machine = subjects.machine
             and t.subject_id = subjects.id
        union all
        select l.at, 'ledger', l.kind, l.item, l.memo, l.actor_kind, l.actor_name, l.amount, l.id
        from ledger_lines l where l.stay_id = :stay
        union all
        select a.at, 'gate', a.code, case when a.let_in then 'let_in'
               when a.asks = 'move' then 'move' end,
           concat_ws(' · ', a.ground, a.statute), a.actor_kind, a.actor_name, null, a.id
        from gate_audits a where a.stay_id = :stay
             and a.at >= (select min(first.at) from transitions first
                          where first.machine = 'stay' and first.subject_id = :stay)
        union all
        select created_at, 'message', 'waiting', null, event_type, 'system', 'monban', null, 0
        from messages
        union all
        select ended_at, 'message', state, null, event_type, 'system', 'monban', null, 1
        from messages where ended_at is not null
        union all
        select created_at, 'lock', kind, null, null, 'system', 'monban', null, no from commands
        union all
        select coalesce(done_at, dead_at), 'lock', case when done_at is null then 'given_up'
               else 'done' end, null, coalesce(result, last_error), 'system', 'monban', null, no
        from commands where done_at is not null or dead_at is not null
        order by at desc, seq desc
        limit :limit
        """,
        stay=stay_id,
        limit=limit,
    )
