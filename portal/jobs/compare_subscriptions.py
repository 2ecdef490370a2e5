"""The provider's subscriptions beside our mirror of them and the memberships that they bill.

They are listed by when they were made, so each run compares the recent ones and a slice of the
older, as it does with money. Each is read by itself as well, at every end of its period.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from portal import clock
from portal.db import Tx, transaction
from portal.edges.billing.port import Billing, Subscription
from portal.jobs.compare_money import PAGE, YOUNG, Walk
from portal.policies import divergences as policy
from portal.policies.divergences import OurSubscription, Span, TheirSubscription
from portal.verbs.divergences import Look

KINDS = ("subscription_not_here", "subscription_not_there", "subscription_differs")


class Subscriptions(Walk):
    def __init__(self, billing: Billing, *walk: Any) -> None:
        super().__init__(*walk)
        self.billing = billing

    def __call__(self) -> Sequence[Look]:
        began = clock.now()
        told = self.billing.subscriptions_since(self.since, self.later)
        self.reached, self.read = told.since, {one.id for one in told.rows}
        other = self.others
        rows = [one for one in told.rows if one.id not in other]
        span = Span(told.since, self.until or began - YOUNG)
        return [look for house in self.houses for look in _of(house, rows, span, other)]


def _of(
    facility_id: UUID, rows: Sequence[Subscription], span: Span, other: Collection[str]
) -> Iterator[Look]:
    here = str(facility_id)
    theirs = [_theirs(one) for one in rows if one.metadata.get("facility") == here]
    with transaction(facility_id) as tx:
        ours = _ours(tx, span, [one.membership_id for one in theirs])
    ours = {one.membership_id: one for one in ours.values() if one.id not in other}
    yield Look(
        facility_id,
        KINDS,
        list(policy.subscriptions(ours, theirs, span)),
        subjects=[*map(str, ours), *(one.id for one in theirs)],
    )


def _theirs(one: Subscription) -> TheirSubscription:
    named = one.metadata.get("membership_id", "")
    return TheirSubscription(one.id, named, one.status, one.ends_at, one.amount, one.over)


def _ours(tx: Tx, span: Span, named: Sequence[str]) -> Mapping[str, OurSubscription]:
    rows = tx.rows(
        """
        select b.membership_id, b.subscription_id, b.status, b.ends_at, b.amount, b.created_at,
               m.state, exists (select 1 from billing_legs l where l.membership_id = m.id
                                and l.progress in ('open', 'unknown')) as at_work
        from subscription_mirror b join memberships m on m.id = b.membership_id
        where b.membership_id::text = any(:named)
           or (b.created_at >= :since and b.created_at < :until)
        order by b.created_at, b.membership_id limit :most
        """,
        named=list(named),
        since=span.since,
        until=span.until,
        most=PAGE * 10,
    )
    return {
        str(row.membership_id): OurSubscription(
            row.subscription_id,
            str(row.membership_id),
            row.status,
            row.ends_at,
            row.amount,
            row.state,
            row.at_work,
            row.created_at,
        )
        for row in rows
    }
