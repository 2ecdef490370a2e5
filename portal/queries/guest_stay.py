"""What a guest's pages show of one stay. Reads only, in the stay's own facility."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal import ledger
from portal.db import Row, Tx
from portal.models import quota, ticket
from portal.models.cancellation import STEPS
from portal.models.register import COMPLETED
from portal.models.stay import AWAITED_BY, ENDED_BY_DEPOSIT
from portal.policies import pricing

MOST_PAYMENTS = 20

_STAY = f"""
    select s.id, s.version, s.code, s.state, s.source, s.starts_at, s.ends_at, s.deposit_due,
           s.deposit_by, {AWAITED_BY} as awaited_by, {ENDED_BY_DEPOSIT} as ended_by_deposit,
           s.currency, s.departed_at, s.cancelled_at, {STEPS} as cancellation_steps,
           {quota.HELD} as quota_month, {ticket.HELD} as ticket_book_id,
           coalesce(l.kind = 'lodging', false) as lodging,
           f.register_required,
           s.persons, {COMPLETED} as register_completed_at,
           s.starts_at - make_interval(mins => f.early_minutes) as opens_at,
           p.code as space_code, p.name_ja as space_ja, p.name_en as space_en,
           l.name_ja as plan_ja, l.name_en as plan_en,
           g.name as guest, g.email is not null or g.line_user_id is not null as reachable,
           k.state as key_state, k.starts_at as key_starts_at, k.ends_at as key_ends_at,
           k.pin_sealed, k.door_ja, k.door_en, coalesce(k.retiming, false) as retiming
    from stays s
    join facilities f on f.id = s.facility_id
    join spaces p on p.id = s.space_id
    join guests g on g.id = s.guest_id
    left join plans l on l.id = s.plan_id
    left join lateral (
        select k.state, k.starts_at, k.ends_at, k.pin_sealed,
               d.name_ja as door_ja, d.name_en as door_en,
               exists (select 1 from lock_commands c where c.key_id = k.id and c.kind = 'update'
                       and c.done_at is null) as retiming
        from entry_keys k join doors d on d.id = k.door_id
        where k.stay_id = s.id
        -- A new code is on its way while the old one is still being removed: the new one counts.
        order by k.state in ('requested', 'issued', 'missing') desc, k.created_at desc
        limit 1
    ) k on true
    where s.id = :stay
"""


@dataclass(frozen=True, slots=True)
class Folio:
    """Amounts in the smallest unit. `balance` is what the guest owes; below 0, the house."""

    lines: Sequence[Row]
    price: int
    lodging_tax: int
    """What of the price is."""
    tickets: int
    """What of the price is for books that were sold on this account."""
    paid: int
    returned: int
    balance: int
    deposit: int
    """What of the deposit is still asked for."""


def stay(tx: Tx, stay_id: UUID) -> Row:
    """The stay with its space, plan and newest key. The caller came through its link."""
    found = tx.row(_STAY, stay=stay_id)
    if found is None:
        raise LookupError("a link led to a stay that is not there")
    return found


def folio(tx: Tx, stay: Row) -> Folio:
    lines = tx.rows(
        "select id, kind, item, amount, at from ledger_lines where stay_id = :stay order by id",
        stay=stay.id,
    )
    price = _sum(lines, "charge", "charge_reversed", "fee")
    balance = sum(line.amount for line in lines)
    return Folio(
        lines=lines,
        price=price,
        lodging_tax=sum(line.amount for line in lines if line.item == "lodging_tax"),
        tickets=sum(line.amount for line in lines if line.item == "ticket_book"),
        paid=-_sum(lines, *ledger.RECEIVED),
        returned=_sum(lines, *ledger.GIVEN_BACK),
        balance=balance,
        deposit=pricing.deposit_open(stay.deposit_due, price, balance),
    )


def payments(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """Newest first."""
    return tx.rows(
        """
        select id, state, purpose, amount, currency, decline_code, authorised_at, created_at
        from payments where stay_id = :stay
        order by created_at desc, attempt desc limit :most
        """,
        stay=stay_id,
        most=MOST_PAYMENTS,
    )


def refunds(tx: Tx, stay_id: UUID) -> Sequence[Row]:
    """Each with the moment of its last word. What failed before it was sent never concerned the
    guest."""
    return tx.rows(
        """
        select r.id, r.amount, r.currency, r.state, r.created_at, t.at as since
        from refunds r
        join lateral (
            select max(at) as at from transitions
            where machine = 'refund' and subject_id = r.id
        ) t on true
        where r.stay_id = :stay and (r.state <> 'failed' or r.provider_refund_id is not null)
        order by r.created_at
        """,
        stay=stay_id,
    )


def payment(tx: Tx, stay_id: UUID, payment_id: UUID) -> Row | None:
    """One payment of this very stay, with what the card form needs, and what is owed now."""
    return tx.row(
        """
        select p.id, p.state, p.purpose, p.amount, p.currency, p.intent_id,
               p.client_secret_sealed, p.livemode, p.created_at, s.code as stay_code,
               (select coalesce(sum(amount), 0) from ledger_lines l where l.stay_id = s.id)
                   as balance
        from payments p join stays s on s.id = p.stay_id
        where p.id = :payment and p.stay_id = :stay
        """,
        stay=stay_id,
        payment=payment_id,
    )


def _sum(lines: Sequence[Row], *kinds: str) -> int:
    return sum(line.amount for line in lines if line.kind in kinds)
