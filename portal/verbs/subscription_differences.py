"""Differences of billing, and the verb that ends each. The provider is asked anew before it."""

from portal.db import Actor
from portal.models import Divergence
from portal.outcome import Code, Outcome, Refused
from portal.verbs import subscription_answers, subscription_mirror
from portal.verbs.desk import Desk


def ask(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Follow its word. Where it goes on billing what has ended here, it is told to stop."""
    if row.membership_id is None:
        return Refused(Code.NOT_FOUND)
    return subscription_answers.read(desk, row.membership_id)


def ask_lost(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """One that we know and that it does not have: it takes the id of the one that bears the
    membership's name. Where there is none, nobody is billed, and the house ends the membership."""
    with desk.transaction() as tx:
        known = subscription_mirror.of(tx, row.membership_id) if row.membership_id else None
    if known is None:
        return Refused(Code.NOT_FOUND)
    named = str(known.membership_id)
    found = desk.billing.find_subscription(customer_id=known.customer_id, membership_id=named)
    if found is None:
        return Refused(Code.SUBSCRIPTION_NOT_THERE)
    with desk.transaction() as tx:
        subscription_mirror.rename(tx, known.membership_id, found.id)
    return subscription_answers.read(desk, known.membership_id)
