"""Differences from the far side: written down, ended by a look that no longer sees them, by the
one verb of their kind, or by a person who lets them be."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from portal.db import Actor, Tx
from portal.edges.errors import EdgeError
from portal.models import Divergence
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.divergences import Found
from portal.verbs import (
    door_differences,
    message_differences,
    money_differences,
    subscription_differences,
)
from portal.verbs.desk import Desk
from portal.verbs.healing import AGREEMENT, heal

MAY_BE = (
    "payment_not_here",
    "payment_not_there",
    "payment_differs",
    "refund_not_here",
    "refund_not_there",
    "refund_differs",
    "dispute_differs",
    "message_not_there",
    "subscription_not_here",
    "subscription_not_there",
)
"""Kinds that a person may let be. A code at a door is never one of them."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look compared, and what it found. Only what it covers can heal by it."""

    facility_id: UUID
    kinds: Collection[str]
    found: Sequence[Found]
    subjects: Collection[str] = ()
    door_id: UUID | None = None


@dataclass(slots=True)
class Noted:
    new: list[str] = field(default_factory=list)
    """The kinds of the differences that were not open before."""
    healed: int = 0


def remember(tx: Tx, look: Look) -> Noted:
    """Write down what was found, touch what is seen again, heal what is no longer seen."""
    noted = Noted()
    for found in look.found:  # seldom any: each is a fault of somebody's
        if _put(tx, found):
            noted.new.append(found.kind)
    noted.healed = tx.run(
        """
        update divergences set healed_at = now(), healed_by = :by
        where healed_at is null and kind = any(:kinds)
          and (door_id = cast(:door as uuid) or subject = any(:subjects))
          and not (kind || ' ' || subject = any(:found))
        """,
        by=AGREEMENT,
        kinds=list(look.kinds),
        door=look.door_id,
        subjects=list(look.subjects),
        found=[" ".join(found.about) for found in look.found],
    ).rowcount
    return noted


def _put(tx: Tx, found: Found) -> bool:
    """True when it is new. What a person let be is raised again only once it reads otherwise."""
    return bool(
        tx.scalar(
            """
            insert into divergences
                (facility_id, kind, subject, payment_id, key_id, door_id, message_id, membership_id,
                 ours, theirs)
            select * from (
                select cast(:facility_id as uuid), cast(:kind as text) as kind,
                       cast(:subject as text) as subject, cast(:payment_id as uuid),
                       cast(:key_id as uuid), cast(:door_id as uuid),
                       cast(:message_id as uuid), cast(:membership_id as uuid),
                       cast(:ours as text) as ours, cast(:theirs as text) as theirs
            ) x
            where not exists (
                select 1 from divergences d
                where d.let_be and d.kind = x.kind and d.subject = x.subject
                  and d.ours = x.ours and d.theirs = x.theirs
            )
            on conflict (facility_id, kind, subject) where healed_at is null
                do update set last_seen = now()
            returning (xmax = 0)
            """,
            facility_id=tx.facility_id,
            kind=found.kind,
            subject=found.subject,
            payment_id=found.payment_id,
            key_id=found.key_id,
            door_id=found.door_id,
            message_id=found.message_id,
            membership_id=found.membership_id,
            ours=found.ours,
            theirs=found.theirs,
        )
    )


def let_be(tx: Tx, actor: Actor, divergence_id: UUID) -> Outcome:
    """A person has looked and nothing more is to be done, or it was done elsewhere."""
    row = tx.get(Divergence, divergence_id, lock=True)
    if row is None:
        return Refused(Code.NOT_FOUND)
    if row.healed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED)
    if row.kind not in MAY_BE:
        return Refused(Code.NOT_PERMITTED)
    heal(tx, divergence_id, actor.name, let_be=True)
    return Applied(Code.EVENT_DISMISSED, to="closed", subject=divergence_id)


def resolve(desk: Desk, actor: Actor, divergence_id: UUID) -> Outcome:
    """The verb of the difference's kind. The far side is asked anew; nothing is done on the word
    of a row that may be an hour old."""
    with desk.transaction() as tx:
        row = tx.get(Divergence, divergence_id)
    if row is None:
        return Refused(Code.NOT_FOUND)
    if row.healed_at is not None:
        return Noop(Code.EVENT_ALREADY_HANDLED)
    try:
        said = _VERBS[row.kind](desk, actor, row)
    except EdgeError:
        return Refused(_AWAY[row.kind.partition("_")[0]])
    if isinstance(said, Applied):
        with desk.transaction() as tx:
            heal(tx, divergence_id, actor.name)
    return said


_VERBS: dict[str, Callable[[Desk, Actor, Divergence], Outcome]] = {
    "payment_not_here": money_differences.only_a_person,
    "subscription_not_here": money_differences.only_a_person,
    "subscription_not_there": subscription_differences.ask_lost,
    "subscription_differs": subscription_differences.ask,
    "payment_not_there": money_differences.ask_lost_payment,
    "payment_differs": money_differences.ask_payment,
    "refund_not_here": money_differences.hear_refunds,
    "refund_not_there": money_differences.ask_lost_refund,
    "refund_differs": money_differences.hear_refunds,
    "dispute_differs": money_differences.ask_disputes,
    "code_stray": door_differences.remove_stray,
    "code_missing": door_differences.ask_lock,
    "code_differs": door_differences.set_time,
    "code_pin_differs": door_differences.order_other_digits,
    "message_not_here": message_differences.record_sent,
    "message_not_there": message_differences.send_again,
}

_AWAY = {
    "payment": Code.BILLING_UNAVAILABLE,
    "refund": Code.BILLING_UNAVAILABLE,
    "dispute": Code.BILLING_UNAVAILABLE,
    "code": Code.LOCK_UNAVAILABLE,
    "message": Code.CHANNEL_UNAVAILABLE,
    "subscription": Code.BILLING_UNAVAILABLE,
}
"""Who could not be asked."""
