"""What must hold after any month: we and the provider say the same, and nobody paid for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from portal.jobs.reconcile import reconcile
from sandbox.simulation.ground import Ground

OVER = ("canceled", "incomplete_expired")
STATES = {
    "incomplete": ("checkout",),
    "active": ("active", "scheduled_to_end"),
    "trialing": ("active", "scheduled_to_end"),
    "past_due": ("past_due", "scheduled_to_end"),
    "unpaid": ("past_due", "scheduled_to_end"),
    "canceled": ("ended",),
    "incomplete_expired": ("ended",),
}


def differences(ground: Ground) -> list[str]:
    """In plain words; none is the only good answer."""
    held = ground.stripe.get("objects")
    return [
        *_states(ground, held),
        *_invoices(ground, held),
        *_money(ground, held),
        *_waiting(ground),
        *_letters(ground),
        *_reconciled(ground),
    ]


def _states(ground: Ground, held: Any) -> Iterator[str]:
    """One subscription at the most for each membership, and both in the same state."""
    theirs: dict[str, list[Any]] = {}
    for one in held.get("subscription", []):
        theirs.setdefault(one["metadata"].get("membership_id", ""), []).append(one)
    for membership, state, ends_at in ground.rows("select id, state, ends_at from memberships"):
        found = theirs.pop(str(membership), [])
        living = [one for one in found if one["status"] not in OVER]
        if len(living) > 1:
            yield f"{membership} is billed {len(living)} times"
        if state in ("applying", "ended") and living:
            yield f"{membership} is {state}, and billed"
        for one in living:
            if state not in STATES[one["status"]]:
                yield f"{membership} is {state}, and there {one['status']}"
            at = one["cancel_at"]
            mine = int(ends_at.timestamp()) if ends_at is not None else None
            if (state == "scheduled_to_end") != (at is not None) or (at is not None and at != mine):
                yield f"{membership} ends {mine}, and there {at}"
        if state not in ("applying", "ended") and not living:
            yield f"{membership} is {state}, and nobody bills it"
    yield from (f"{name} is billed, and nobody's" for name in theirs)


def _invoices(ground: Ground, held: Any) -> Iterator[str]:
    """None that can be paid, and none charged, after an end."""
    ended = {
        str(row[0]): int(row[1].timestamp())
        for row in ground.rows("select id, ended_at from memberships where ended_at is not null")
    }
    returned = {
        row[0]
        for row in ground.rows(
            "select invoice_id from payments where state = 'refunded' and invoice_id is not null"
        )
    }
    for invoice in held.get("invoice", []):
        details = invoice["parent"]["subscription_details"]
        at = ended.get((details.get("metadata") or {}).get("membership_id", ""))
        if at is None:
            continue
        if invoice["status"] in ("open", "draft", "uncollectible"):
            yield f"{invoice['id']} of an ended membership can still be paid"
        if (
            invoice["status"] == "paid"
            and invoice["created"] > at
            and invoice["id"] not in returned
        ):
            yield f"{invoice['id']} is dated after the end, and was kept"


def _money(ground: Ground, held: Any) -> Iterator[str]:
    """Each paid invoice is one payment of ours of its amount; each account comes to nothing."""
    paid = Counter(
        (one["id"], one["amount_paid"])
        for one in held.get("invoice", [])
        if one["status"] == "paid" and one["amount_paid"]
    )
    ours = Counter(
        (invoice, int(amount))
        for invoice, amount in ground.rows(
            "select invoice_id, amount from payments where succeeded_at is not null"
        )
    )
    yield from (f"paid there and not here: {one}" for one in paid - ours)
    yield from (f"paid here and not there: {one}" for one in ours - paid)
    for membership, balance in ground.rows(
        "select membership_id, sum(amount) from ledger_lines group by membership_id"
        " having sum(amount) <> 0"
    ):
        yield f"the account of {membership} comes to {balance}"
    for subscription, many in ground.rows(
        "select subscription_id, count(*) from membership_periods"
        " group by subscription_id, starts_at having count(*) > 1"
    ):
        yield f"{subscription} was granted one period {many} times"


def _waiting(ground: Ground) -> Iterator[str]:
    for what, many in ground.rows(
        """
        select 'leg ' || progress, count(*) from billing_legs
        where settled_at is null group by progress
        union all select 'event ' || type, count(*) from webhook_events
        where state = 'processing' group by type
        union all select 'payment unknown', count(*) from payments where state = 'unknown'
            having count(*) > 0
        union all select 'proof ' || kind, count(*) from end_obligations
        where proven_at is null group by kind
        union all select 'dead letter ' || title, count(*) from dead_letters
        where closed_at is null group by title
        union all select 'refund ' || state, count(*) from refunds
        where state <> 'succeeded' group by state
        """
    ):
        yield f"still waiting: {what} ({many})"


def _letters(ground: Ground) -> Iterator[str]:
    for name, often in ground.mail.taken.items():
        if often > 1:
            yield f"a letter was sent {often} times: {name}"


def _reconciled(ground: Ground) -> Iterator[str]:
    told = reconcile(ground.house.providers, settle=0)
    if told.open or told.unread:
        yield f"the comparison of the books: {told}"
