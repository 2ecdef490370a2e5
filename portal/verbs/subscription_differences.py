"""Differences of billing, and the verb that ends each. The provider is asked anew before it."""

from portal.db import Actor
from portal.models import Divergence
from portal.outcome import Code, Outcome, Refused
from portal.verbs import subscription_answers
from portal.verbs.desk import Desk


def ask(desk: Desk, actor: Actor, row: Divergence) -> Outcome:
    """Follow its word. Where it goes on billing what has ended here, it is told to stop."""
    if row.membership_id is None:
        return Refused(Code.NOT_FOUND)
    return subscription_answers.read(desk, row.membership_id)
