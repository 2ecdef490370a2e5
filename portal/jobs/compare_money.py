"""The provider's payments and refunds beside ours and the folio. One account serves every
facility, so the lists are read once.

The provider lists by when a thing was made, and it tells of money late: a payment that was opened
a month ago may be paid today, a refund fails weeks later. So every run compares the last two weeks,
and one older slice beside it, further back each time and then anew, as far as disputes and refunds
reach. A list that is cut at the edge's bound makes a slice smaller, and never leaves a gap: the
walk goes on from where the lists were whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from portal import clock
from portal.db import Row, Tx, transaction
from portal.edges.errors import Unreachable
from portal.edges.payments.port import Dispute as ProviderDispute
from portal.edges.payments.port import Intent, Listed, Payments
from portal.edges.payments.port import Refund as ProviderRefund
from portal.jobs import checkpoints
from portal.policies import divergences as policy
from portal.policies.divergences import (
    OurPayment,
    OurRefund,
    Span,
    TheirDispute,
    TheirPayment,
    TheirRefund,
)
from portal.verbs.divergences import Look

LOOK_BACK = timedelta(days=14)
"""How far back every run looks; the provider redelivers its events for three days."""

SLICE = timedelta(days=14)
"""How much of what is older one run looks at beside that."""

OLDEST = timedelta(days=400)
"""Where the walk back begins anew."""

OVERLAP = timedelta(days=1)
"""An intent is made after its row, and under the same key for a day at the most."""

YOUNG = timedelta(minutes=2)
"""A row of ours younger than this may not be in a list that was read before it."""

PAGE = 500

PAYMENTS = ("payment_not_here", "payment_not_there", "payment_differs")
DISPUTES = ("dispute_differs",)
REFUNDS = ("refund_not_here", "refund_not_there", "refund_differs")


@dataclass(frozen=True, slots=True)
class Window:
    """What is asked for. `until` None: up to now."""

    since: datetime
    until: datetime | None


def recent_span() -> Window:
    return Window(clock.now() - LOOK_BACK, None)


def older_span(name: str, newest: datetime) -> Window:
    """From where the last run of this name came to, further back; past the oldest, from `newest`
    again."""
    reached = checkpoints.reached(name)
    if reached is None or not newest - OLDEST < reached <= newest:
        reached = newest
    return Window(reached - SLICE, reached)


@dataclass(kw_only=True, eq=False)
class Walk:
    """One window of what the provider lists by when it was made. `beside` is the part that has
    compared what is younger: whatever it has read is its own."""

    name: str
    houses: Sequence[UUID]
    window: Window
    beside: "Walk | None" = None
    read: set[str] = field(default_factory=set, init=False)
    reached: datetime | None = field(default=None, init=False)
    """From when on what was listed is whole: a list cut at its bound reaches less far back."""

    @property
    def begins(self) -> datetime:
        """Where what was compared begins, and an older walk goes on."""
        return self.reached or self.window.since

    @property
    def listed_until(self) -> datetime | None:
        return self.window.until + OVERLAP if self.window.until else None

    @property
    def others(self) -> Collection[str]:
        return self.beside.read if self.beside else ()


@dataclass(kw_only=True, eq=False)
class Money(Walk):
    payments: Payments

    def __call__(self) -> Sequence[Look]:
        began = clock.now()
        since, until = self.window.since, self.window.until
        intents = self.payments.intents_since(since, self.listed_until)
        refunds = self.payments.refunds_since(since, self.listed_until)
        disputes = self.payments.disputes_since(since, self.listed_until)
        whole = max(intents.since, refunds.since, disputes.since)
        if until is not None and whole >= until:
            raise Unreachable("one day's payments are too many to read", code="list_too_long")
        self.reached, self.read = whole, {one.id for one in intents.rows}
        self.read |= {one.id for one in refunds.rows}
        other = self.others
        intents = Listed([one for one in intents.rows if one.id not in other], intents.since)
        refunds = Listed([one for one in refunds.rows if one.id not in other], refunds.since)
        until = until or began - YOUNG
        return [
            look
            for facility_id in self.houses
            for look in (
                *_money_of(facility_id, intents, refunds, until, other),
                _disputes_of(facility_id, disputes.rows),
            )
        ]


def _money_of(
    facility_id: UUID,
    intents: Listed[Intent],
    refunds: Listed[ProviderRefund],
    until: datetime,
    other: Collection[str],
) -> Iterator[Look]:
    here = str(facility_id)
    with transaction(facility_id) as tx:
        # What the provider has made for an invoice bears no names of ours: it is known by its id.
        invoiced = _payments_of(tx, [one.id for one in intents.rows if not one.metadata])
        theirs = [
            TheirPayment(one.id, named, one.status, one.amount, one.currency)
            for one in intents.rows
            if (named := _named(one, here) or invoiced.get(one.id)) is not None
        ]
        ours = _our_payments(tx, intents.since, until, [one.payment_id for one in theirs])
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
        ours_back = _our_refunds(tx, refunds.since, until, returned)
    ours = {one.id: one for one in ours.values() if one.intent_id not in other}
    ours_back = [one for one in ours_back if one.provider_refund_id not in other]
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


def _disputes_of(facility_id: UUID, listed: Sequence[ProviderDispute]) -> Look:
    with transaction(facility_id) as tx:
        of_intent = _payments_of(tx, [one.intent_id for one in listed if one.intent_id])
        theirs = [
            TheirDispute(one.id, payment_id, one.status, one.amount, one.currency)
            for one in listed
            if (payment_id := of_intent.get(one.intent_id or "")) is not None
        ]
        ours = tx.rows(
            "select provider_dispute_id as id, status from disputes"
            " where provider_dispute_id = any(:ids)",
            ids=[one.id for one in theirs],
        )
    heard = {row.id: row.status for row in ours}
    found = list(policy.disputes(heard, theirs))
    return Look(facility_id, DISPUTES, found, subjects=[one.id for one in theirs])


def _named(intent: Intent, here: str) -> UUID | None:
    """Our payment of this house that the intent names."""
    if intent.metadata.get("facility") != here:
        return None
    return _uuid(intent.metadata.get("payment_id"))


_PAYMENT = """
    select p.id, p.state, p.amount, p.currency, p.intent_id, p.created_at,
           coalesce((select -sum(l.amount) from ledger_lines l
                     where l.payment_id = p.id and l.kind in ('deposit', 'payment')), 0) as booked
    from payments p
"""


def _our_payments(
    tx: Tx, since: datetime, until: datetime, named: Sequence[UUID]
) -> Mapping[UUID, OurPayment]:
    """Those of the span, a page after the other, and older ones that an intent names."""
    found: dict[UUID, OurPayment] = {}
    rows = pages(tx, f"{_PAYMENT} where p.created_at < :until", "p", since, until)
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


def _our_refunds(
    tx: Tx, since: datetime, until: datetime, theirs: Sequence[TheirRefund]
) -> list[OurRefund]:
    rows = pages(tx, f"{_REFUND} where r.created_at < :until", "r", since, until)
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


def pages(tx: Tx, sql: str, table: str, since: datetime, until: datetime) -> Iterator[Row]:
    """By keyset: the index on (facility, created_at, id) is walked once, whatever the span."""
    at, last = since, UUID(int=0)
    while True:
        rows = tx.rows(
            f"""
            {sql} and ({table}.created_at, {table}.id) > (:at, :last)
            order by {table}.created_at, {table}.id limit :page
            """,
            until=until,
            at=at,
            last=last,
            page=PAGE,
        )
        yield from rows
        if len(rows) < PAGE:
            return
        at, last = rows[-1].created_at, rows[-1].id


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
