"""The mirror of a subscription: the provider's last word, and what it means for the membership."""

from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from portal import clock
from portal.db import Actor, Row, Tx
from portal.edges.billing.port import Subscription
from portal.machines.membership import MACHINE, State
from portal.move import note
from portal.policies import membership_progress
from portal.policies.membership_progress import Event, Word
from portal.verbs import membership_moves as moves
from portal.verbs.membership_moves import Ending

PROVIDER_ENDED = Ending("provider_ended")

UNPAID_READ = timedelta(minutes=10)
"""How often one that waits for money is asked after, when no event speaks of it."""

RENEWAL_READ = timedelta(hours=1)
"""How long after its period a renewal may stay unheard of; the provider itself takes an hour."""


def of(tx: Tx, membership_id: UUID) -> Row | None:
    """Locked. The membership is locked before it, by every caller."""
    return tx.row(
        """
        select membership_id, subscription_id, customer_id, status, item_id, latest_invoice_id,
               told_at, period_end
        from subscription_mirror where membership_id = :id
        for no key update
        """,
        id=membership_id,
    )


def write(
    tx: Tx, membership_id: UUID, told: Subscription, at: datetime, *, whole: bool = False
) -> None:
    """As told `at`. Whoever asks has settled that it is no earlier word. Only a `whole` reading, of
    its invoices and payments too, ends a wait for one: what else is told may come in between."""
    tx.run(
        """
        insert into subscription_mirror (membership_id, facility_id, subscription_id, customer_id,
            status, item_id, price_id, amount, currency, livemode, period_start, period_end,
            ends_at, ended_at, trial_end, paused, resumes_at, latest_invoice_id, told_at,
            next_read_at)
        values (:membership_id, :facility_id, :subscription_id, :customer_id, :status, :item_id,
            :price_id, :amount, :currency, :livemode, :period_start, :period_end, :ends_at,
            :ended_at, :trial_end, :paused, :resumes_at, :latest_invoice_id, :told_at,
            case when :over then null when :unpaid then now() + :unpaid_read
                 else greatest(:period_end, now()) + :renewal_read end)
        on conflict (membership_id) do update set
            status = excluded.status, item_id = excluded.item_id, price_id = excluded.price_id,
            amount = excluded.amount, currency = excluded.currency,
            period_start = excluded.period_start, period_end = excluded.period_end,
            ends_at = excluded.ends_at, ended_at = excluded.ended_at,
            trial_end = excluded.trial_end, paused = excluded.paused,
            resumes_at = excluded.resumes_at, latest_invoice_id = excluded.latest_invoice_id,
            told_at = excluded.told_at, reads = 0, next_read_at = case
                when :whole then excluded.next_read_at
                else least(subscription_mirror.next_read_at, excluded.next_read_at) end
        """,
        membership_id=membership_id,
        facility_id=tx.facility_id,
        subscription_id=told.id,
        customer_id=told.customer_id,
        status=told.status,
        item_id=told.items[0].id,
        price_id=told.items[0].price_id,
        amount=told.amount,
        currency=told.currency,
        livemode=told.livemode,
        period_start=told.period_start,
        period_end=told.period_end,
        ends_at=told.ends_at,
        ended_at=told.ended_at,
        trial_end=told.trial_end,
        paused=told.paused,
        resumes_at=told.resumes_at,
        latest_invoice_id=told.latest_invoice_id,
        told_at=at,
        whole=whole,
        over=told.over,
        unpaid=told.status in ("incomplete", "past_due", "unpaid"),
        unpaid_read=UNPAID_READ,
        renewal_read=RENEWAL_READ,
    )
    # What it gives is decided by the membership's own row.
    tx.run(
        "update memberships set paused = :paused where id = :id and paused <> :paused",
        id=membership_id,
        paused=told.paused,
    )


def rename(tx: Tx, membership_id: UUID, subscription_id: str) -> None:
    tx.run(
        "update subscription_mirror set subscription_id = :subscription where membership_id = :id",
        subscription=subscription_id,
        id=membership_id,
    )


def lose(tx: Tx, membership_id: UUID) -> None:
    """The provider itself has no such subscription: nothing is billed under it."""
    tx.run(
        """
        update subscription_mirror
        set status = 'canceled', ended_at = now(), ends_at = now(), next_read_at = null
        where membership_id = :id
        """,
        id=membership_id,
    )


def read_soon(tx: Tx, membership_id: UUID) -> None:
    """What was heard cannot be ordered, or speaks of more than it holds: the provider is asked."""
    tx.run(
        "update subscription_mirror set next_read_at = now() where membership_id = :id",
        id=membership_id,
    )
    tx.ring("memberships")


def follow(tx: Tx, actor: Actor, membership_id: UUID, told: Subscription) -> None:
    """Move the membership to where the provider's word says it is."""
    membership = _held(tx, membership_id)
    state, word = cast("State", membership.state), Word(told.status, told.ends_at)
    if membership_progress.is_over(state, word):
        moves.end(tx, actor, membership, PROVIDER_ENDED)
        return
    for event in membership_progress.events(state, word):  # two at most
        _move(tx, actor, membership, event, told)
        membership = _held(tx, membership_id)
    if membership.state not in ("applying", "checkout", "ended"):
        _follow_details(tx, actor, membership, told)


def _held(tx: Tx, membership_id: UUID) -> Row:
    membership = moves.held(tx, membership_id)
    if membership is None:
        raise LookupError("a membership that is held is gone")
    return membership


def _move(tx: Tx, actor: Actor, membership: Row, event: Event, told: Subscription) -> None:
    match event:
        case "first_payment_landed":
            moves.begin(tx, actor, membership, event, "hear")
        case "payment_overdue":
            moves.fall_behind(tx, actor, membership)
        case "payment_recovered":
            moves.move_held(tx, actor, membership, event, "hear", also={})
        case "end_scheduled":
            ends_at = told.ends_at or clock.now()
            moves.schedule(tx, actor, membership, PROVIDER_ENDED, ends_at, "hear")
        case "resumed":
            moves.go_on(tx, actor, membership, "hear")


def _follow_details(tx: Tx, actor: Actor, membership: Row, told: Subscription) -> None:
    """Another end, or another price, without another state."""
    if membership.state == "scheduled_to_end" and told.ends_at not in (None, membership.ends_at):
        _note(tx, actor, membership, {"ends_at": told.ends_at}, _ends(told.ends_at))
    if told.amount != membership.price and told.currency == membership.currency:
        said = f"price {membership.price} → {told.amount}"
        _note(tx, actor, membership, {"price": told.amount}, said)


def _ends(at: datetime | None) -> str:
    return f"ends {at.isoformat(timespec='seconds')}" if at else ""


def _note(tx: Tx, actor: Actor, membership: Row, changes: dict[str, object], said: str) -> None:
    columns = ", ".join(f"{name} = :{name}" for name in changes)
    tx.run(
        f"update memberships set {columns}, version = version + 1 where id = :id",
        id=membership.id,
        **changes,
    )
    note(tx, actor, MACHINE, membership.id, membership.state, "hear", said)
