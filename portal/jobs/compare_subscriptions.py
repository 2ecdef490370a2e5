"""The provider's subscriptions beside our mirror of them and the memberships that they bill.

They are listed by when they were made, so each run compares the recent ones and a slice of the
older, as it does with money. Each is read by itself as well, at every end of its period.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from portal import clock
from portal.db import Tx, transaction
from portal.edges.billing.port import Billing, Subscription
from portal.jobs.compare_money import YOUNG, Walk, pages
from portal.policies import divergences as policy
from portal.policies.divergences import OurSubscription, Span, TheirSubscription
from portal.verbs.divergences import Look

KINDS = ("subscription_not_here", "subscription_not_there", "subscription_differs")


@dataclass(kw_only=True, eq=False)
class Subscriptions(Walk):
    billing: Billing

    def __call__(self) -> Sequence[Look]:
        began = clock.now()
        told = self.billing.subscriptions_since(self.window.since, self.listed_until)
        self.reached, self.read = told.since, {one.id for one in told.rows}
        other = self.others
        rows = [one for one in told.rows if one.id not in other]
        span = Span(told.since, self.window.until or began - YOUNG)
        return [_look(house, rows, span, other) for house in self.houses]


def _look(
    facility_id: UUID, rows: Sequence[Subscription], span: Span, other: Collection[str]
) -> Look:
    here = str(facility_id)
    theirs = [_theirs(one) for one in rows if one.metadata.get("facility") == here]
    with transaction(facility_id) as tx:
        known = _ours(tx, span, [one.membership_id for one in theirs])
    ours = {one.membership_id: one for one in known if one.id not in other}
    return Look(
        facility_id,
        KINDS,
        list(policy.subscriptions(ours, theirs, span)),
        subjects=[*ours, *(one.id for one in theirs)],
    )


def _theirs(one: Subscription) -> TheirSubscription:
    named = one.metadata.get("membership_id", "")
    return TheirSubscription(one.id, named, one.status, one.ends_at, one.amount, one.over)


_SUBSCRIPTION = """
    select b.membership_id as id, b.subscription_id, b.status, b.ends_at, b.amount, b.created_at,
           m.state, exists (select 1 from billing_legs l where l.membership_id = m.id
                            and l.progress in ('open', 'unknown')) as at_work
    from (select *, membership_id as id from subscription_mirror) b
    join memberships m on m.id = b.membership_id
"""


def _ours(tx: Tx, span: Span, named: Sequence[str]) -> list[OurSubscription]:
    """Those of the span, a page after the other, and older ones that theirs name."""
    rows = pages(tx, f"{_SUBSCRIPTION} where b.created_at < :until", "b", span.since, span.until)
    older = tx.rows(f"{_SUBSCRIPTION} where b.id::text = any(:named)", named=list(named))
    found = {row.id: row for row in (*rows, *older)}
    return [
        OurSubscription(
            row.subscription_id,
            str(row.id),
            row.status,
            row.ends_at,
            row.amount,
            row.state,
            row.at_work,
            row.created_at,
        )
        for row in found.values()
    ]
