"""The books beside the far side, in both directions: payments, refunds, and the codes on locks.

Work under way looks like a difference for a moment. What a first look finds is therefore looked at
once more after a pause, and only what both have seen is written down.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from portal import clock, log
from portal.db import Tx, transaction
from portal.edges.errors import EdgeError
from portal.edges.locks.port import LockCode
from portal.edges.payments.port import Intent, Listed
from portal.edges.payments.port import Refund as ProviderRefund
from portal.edges.providers import Providers
from portal.policies import divergences as policy
from portal.policies.divergences import (
    OurPayment,
    OurRefund,
    Span,
    TheirCode,
    TheirPayment,
    TheirRefund,
)
from portal.verbs import divergences
from portal.verbs.divergences import Look

SETTLES_SECONDS = 10.0
"""How long work under way is given to arrive before a difference counts."""

LOOK_BACK = timedelta(days=14)
"""How far back payments and refunds are compared; the provider redelivers for three days."""

YOUNG = timedelta(minutes=2)
"""A row of ours younger than this may not be in a list that was read before it."""

DOORS = 40
"""Doors of one facility in one look, those looked at longest ago first."""

BUDGET_SECONDS = 60.0
"""Past this no further door is begun: the next look goes on from there."""

PAGE = 500

PAYMENTS = ("payment_not_here", "payment_not_there", "payment_differs")
REFUNDS = ("refund_not_here", "refund_not_there", "refund_differs")
CODES = ("code_stray", "code_missing", "code_differs")

Part = Callable[[], Sequence[Look]]


@dataclass(slots=True)
class Told:
    """What a run did. `unread` counts what could not be asked: nothing is concluded from it."""

    new: dict[str, int] = field(default_factory=dict)
    """How many of each kind."""
    healed: int = 0
    open: int = 0
    doors: int = 0
    unread: int = 0


def reconcile(far: Providers, settle: float = SETTLES_SECONDS) -> Told:
    """Compare everything within the bounds; write down the differences; heal what agrees again."""
    told = Told()
    began = time.monotonic()
    with transaction(None) as tx:
        houses = [row.facility_id for row in tx.rows("select facility_id from all_facilities()")]
    parts: list[Part] = [_Money(far, houses)]
    for facility_id in houses:
        parts += [_Door(far, facility_id, row) for row in _doors(facility_id)]
    looks = [(part, look) for part in parts for look in _seen(part, told, began)]
    if any(look.found for _, look in looks):
        time.sleep(settle)
        doubtful = {id(part): part for part, look in looks if look.found}
        again = [look for part in doubtful.values() for look in _seen(part, told, None)]
        looks = [(part, _both(look, again)) for part, look in looks]
    for _, look in looks:
        _remember(look, told)
    told.open = sum(_open(facility_id) for facility_id in houses)
    logger.info("reconciled", open=told.open, healed=told.healed, new=told.new)
    return told


def _seen(part: Part, told: Told, began: float | None) -> Sequence[Look]:
    """A part that cannot be read holds up no other, and says nothing."""
    if began is not None and time.monotonic() - began > BUDGET_SECONDS:
        return []
    try:
        return part()
    except EdgeError as fault:
        logger.warning("reconcile_unread", fault=type(fault).__name__)
    except Exception:  # one that cannot be compared holds up no other
        logger.exception("reconcile_broken")
    told.unread += 1
    return []


def _both(first: Look, again: Sequence[Look]) -> Look:
    """Only what both looks saw, in the words of the second: what one of them alone saw was on its
    way. Where the second could not be made, nothing is concluded."""
    if not first.found:
        return first
    known = {found.about for found in first.found}
    second = next((look for look in again if _same(look, first)), None)
    if second is None:
        return replace(first, found=(), subjects=(), door_id=None)
    return replace(second, found=[found for found in second.found if found.about in known])


def _same(look: Look, other: Look) -> bool:
    return (look.facility_id, look.kinds, look.door_id) == (
        other.facility_id,
        other.kinds,
        other.door_id,
    )


def _remember(look: Look, told: Told) -> None:
    with transaction(look.facility_id) as tx:
        noted = divergences.remember(tx, look)
        if look.door_id is not None:
            _looked_at(tx, look.door_id)
            told.doors += 1
    for kind in noted.new:
        told.new[kind] = told.new.get(kind, 0) + 1
    told.healed += noted.healed
    for found in look.found:
        logger.warning("divergence", kind=found.kind, subject=found.subject)


def _open(facility_id: UUID) -> int:
    with transaction(facility_id) as tx:
        return int(tx.scalar("select count(*) from divergences where healed_at is null"))


# Money: one account serves every facility, so the lists are read once ----------------------------


class _Money:
    def __init__(self, far: Providers, houses: Sequence[UUID]) -> None:
        self.payments, self.houses = far.payments, houses

    def __call__(self) -> Sequence[Look]:
        began = clock.now()
        far = self.payments
        intents, refunds = (
            far.intents_since(began - LOOK_BACK),
            far.refunds_since(began - LOOK_BACK),
        )
        return [
            look
            for facility_id in self.houses
            for look in _money_of(facility_id, intents, refunds, began - YOUNG)
        ]


def _money_of(
    facility_id: UUID, intents: Listed[Intent], refunds: Listed[ProviderRefund], until: datetime
) -> Iterator[Look]:
    here = str(facility_id)
    theirs = [
        TheirPayment(one.id, named, one.status, one.amount, one.currency)
        for one in intents.rows
        if one.metadata.get("facility") == here
        and (named := _uuid(one.metadata.get("payment_id"))) is not None
    ]
    with transaction(facility_id) as tx:
        ours = _our_payments(tx, intents.since, [one.payment_id for one in theirs])
        of_intent = _payments_of(tx, [one.intent_id for one in refunds.rows if one.intent_id])
        returned = [
            TheirRefund(
                one.id,
                payment_id,
                one.metadata.get("refund_id", ""),
                one.status,
                one.amount,
                one.currency,
            )
            for one in refunds.rows
            if (payment_id := of_intent.get(one.intent_id or "")) is not None
        ]
        ours_back = _our_refunds(tx, refunds.since, returned)
    yield Look(
        facility_id,
        PAYMENTS,
        list(policy.payments(ours, theirs, Span(intents.since, until))),
        subjects=[*map(str, ours), *(one.id for one in theirs)],
    )
    yield Look(
        facility_id,
        REFUNDS,
        list(policy.refunds(ours_back, returned, Span(refunds.since, until))),
        subjects=[*(str(one.id) for one in ours_back), *(one.id for one in returned)],
    )


_PAYMENT = """
    select p.id, p.state, p.amount, p.currency, p.intent_id, p.created_at,
           coalesce((select -sum(l.amount) from ledger_lines l
                     where l.payment_id = p.id and l.kind in ('deposit', 'payment')), 0) as booked
    from payments p
"""


def _our_payments(tx: Tx, since: datetime, named: Sequence[UUID]) -> Mapping[UUID, OurPayment]:
    """Those of the span, a page after the other, and older ones that an intent names."""
    found: dict[UUID, OurPayment] = {}
    rows = _pages(tx, f"{_PAYMENT} where p.created_at >= :since", "p", since)
    older = tx.rows(f"{_PAYMENT} where p.id = any(:named)", named=list(named))
    for row in (*rows, *older):
        found[row.id] = OurPayment(
            row.id,
            row.state,
            row.amount,
            row.currency,
            row.intent_id,
            int(row.booked),
            row.created_at,
        )
    return found


def _payments_of(tx: Tx, intents: Sequence[str]) -> Mapping[str, UUID]:
    """This house's payments among the intents that refunds are of."""
    rows = tx.rows(
        "select id, intent_id from payments where intent_id = any(:intents)", intents=list(intents)
    )
    return {row.intent_id: row.id for row in rows}


_REFUND = """
    select r.id, r.payment_id, r.state, r.amount, r.currency, r.provider_refund_id, r.created_at,
           coalesce((select sum(l.amount) from ledger_lines l where l.refund_id = r.id), 0)
               as booked
    from refunds r
"""


def _our_refunds(tx: Tx, since: datetime, theirs: Sequence[TheirRefund]) -> list[OurRefund]:
    rows = _pages(tx, f"{_REFUND} where r.created_at >= :since", "r", since)
    older = tx.rows(
        f"{_REFUND} where r.provider_refund_id = any(:codes) or r.id = any(:named)",
        codes=[one.id for one in theirs],
        named=[named for one in theirs if (named := _uuid(one.named)) is not None],
    )
    found = {row.id: row for row in (*rows, *older)}
    return [
        OurRefund(
            row.id,
            row.payment_id,
            row.state,
            row.amount,
            row.currency,
            row.provider_refund_id,
            int(row.booked),
            row.created_at,
        )
        for row in found.values()
    ]


def _pages(tx: Tx, sql: str, table: str, since: datetime) -> Iterator[Row[Any]]:
    """By keyset: the index on (facility, created_at, id) is walked once, whatever the span."""
    at, last = since, UUID(int=0)
    while True:
        rows = tx.rows(
            f"""
            {sql} and ({table}.created_at, {table}.id) > (:at, :last)
            order by {table}.created_at, {table}.id limit :page
            """,
            since=since,
            at=at,
            last=last,
            page=PAGE,
        )
        yield from rows
        if len(rows) < PAGE:
            return
        at, last = rows[-1].created_at, rows[-1].id


# Doors: one list of codes each -------------------------------------------------------------------


class _Door:
    def __init__(self, far: Providers, facility_id: UUID, door: Row[Any]) -> None:
        self.locks, self.facility_id, self.door = far.locks, facility_id, door

    def __call__(self) -> Sequence[Look]:
        codes = [_their_code(code) for code in self.locks.list_codes(self.door.device_id)]
        named = [code for code in codes if policy.key_of(code.name)]
        with transaction(self.facility_id) as tx:
            ours = divergences.keys_at(tx, self.door.id, [code.name for code in named])
            elsewhere = {
                code.name
                for code in named
                if code.name not in ours and divergences.known_elsewhere(tx, code.id, code.name)
            }
        found = policy.codes(
            ours, codes, door_id=self.door.id, now=clock.now(), elsewhere=elsewhere
        )
        return [Look(self.facility_id, CODES, list(found), door_id=self.door.id)]


def _doors(facility_id: UUID) -> Sequence[Row[Any]]:
    with transaction(facility_id) as tx:
        return tx.rows(
            """
            select d.id, d.device_id from doors d
            left join checkpoints c on c.name = 'reconcile:' || d.id
            order by c.reached nulls first, d.id limit :most
            """,
            most=DOORS,
        )


def _looked_at(tx: Tx, door_id: UUID) -> None:
    tx.run(
        """
        insert into checkpoints (name, reached) values ('reconcile:' || cast(:door as text), :at)
        on conflict (name) do update set reached = excluded.reached
        """,
        door=str(door_id),
        at=clock.now(),
    )


def _their_code(code: LockCode) -> TheirCode:
    """Without its PIN: nothing of this comes near the digits."""
    return TheirCode(code.id, code.name, code.status, code.ends_at, code.errors)


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


logger = log.get(__name__)
