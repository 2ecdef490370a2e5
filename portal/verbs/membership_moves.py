"""What becomes of a membership that is decided: each of these moves it, in the caller's transaction
and with what follows from it. Who may ask, and what the provider has to do before, is decided by
the callers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from portal import clock, outbox
from portal.db import Actor, Row, Tx
from portal.machines.membership import MACHINE
from portal.move import move, standing
from portal.outcome import Applied, Code, Conflict, Outcome
from portal.policies.membership_end import Reason
from portal.policies.periods import When
from portal.verbs import keys, stays

CHECKOUT_OPEN = timedelta(hours=22)
"""How long the first payment is awaited. The provider gives up an hour later, by itself."""

OBLIGATIONS = ("keys_gone", "member_told")
OBLIGATIONS_BY_CARD = (*OBLIGATIONS, "invoices_closed")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why, and for whom a later end is wished, when. `seen` is the version that a person saw; a
    sweep has seen none."""

    reason: Reason
    when: When = "month_boundary"
    note: str = ""
    seen: int | None = None

    @property
    def words(self) -> str:
        return f"{self.reason}: {self.note}" if self.note else self.reason


def held(tx: Tx, membership_id: UUID) -> Row | None:
    """Locked, with its house's time zone. `reached`: an end that was set has come, by the clock by
    which the sweep finds it."""
    return tx.row(
        """
        select m.id, m.state, m.version, m.billing, m.billed_every, m.price, m.currency, m.plan_id,
               m.member_id, m.end_tries, m.started_at, m.ends_at, m.ended_at,
               m.ends_at <= now() as reached, f.time_zone, p.retired_at is not null as plan_retired
        from memberships m join facilities f on f.id = m.facility_id
        join membership_plans p on p.id = m.plan_id
        where m.id = :id
        for no key update of m
        """,
        id=membership_id,
    )


def changed(tx: Tx, membership: Row, wanted: str, seen: int) -> Conflict | None:
    """Why nothing may be decided on what a person saw."""
    if membership.state != wanted:
        return Conflict(Code.MEMBERSHIP_STATE_CHANGED, standing(tx, MACHINE, membership.id))
    if membership.version != seen:
        return Conflict(Code.STALE_PAGE, standing(tx, MACHINE, membership.id))
    return None


def await_payment(tx: Tx, actor: Actor, membership: Row) -> Outcome:
    """applying → checkout."""
    move_held(tx, actor, membership, "approved_for_checkout", "approve", also={})
    tx.run(
        "update memberships set checkout_until = now() + :open where id = :id",
        open=CHECKOUT_OPEN,
        id=membership.id,
    )
    tell(tx, membership.id, "membership_checkout", str(membership.id))
    return Applied(Code.MEMBERSHIP_CHECKOUT, to="checkout", subject=membership.id)


def begin(tx: Tx, actor: Actor, membership: Row, event: str, verb: str) -> Outcome:
    """applying, checkout → active."""
    began = {"started_at": clock.now(), "checkout_until": None}
    move_held(tx, actor, membership, event, verb, also=began)
    tell(tx, membership.id, "membership_approved", str(membership.id))
    return Applied(Code.MEMBERSHIP_APPROVED, to="active", subject=membership.id)


def fall_behind(tx: Tx, actor: Actor, membership: Row) -> None:
    """active → past_due. Each time anew: it may be behind more than once."""
    move_held(tx, actor, membership, "payment_overdue", "hear", also={})
    tell(tx, membership.id, "membership_overdue", f"{membership.id}:{membership.version}")


def schedule(
    tx: Tx, actor: Actor, membership: Row, ending: Ending, ends_at: datetime, verb: str
) -> Outcome:
    """active, past_due → scheduled_to_end."""
    move_held(
        tx,
        actor,
        membership,
        "end_scheduled",
        verb,
        reason=ending.words,
        also={"ends_at": ends_at, "end_reason": ending.reason, "end_refusal": None},
    )
    if membership.end_tries > 1:  # what kept it waiting would keep its end waiting as well
        tx.run("update memberships set next_look_at = now() where id = :id", id=membership.id)
    _cancel_stays(tx, actor, membership.id, ends_at)
    tell(tx, membership.id, "membership_end_scheduled", f"{membership.id}:{membership.version}")
    return Applied(Code.MEMBERSHIP_END_SCHEDULED, to="scheduled_to_end", subject=membership.id)


def go_on(tx: Tx, actor: Actor, membership: Row, verb: str) -> Outcome:
    """scheduled_to_end → active. Each time anew: it may be taken back more than once."""
    no_end = {"ends_at": None, "end_reason": None}
    move_held(tx, actor, membership, "resumed", verb, also=no_end)
    tell(tx, membership.id, "membership_resumed", f"{membership.id}:{membership.version}")
    return Applied(Code.MEMBERSHIP_RESUMED, to="active", subject=membership.id)


def end(tx: Tx, actor: Actor, membership: Row, ending: Ending) -> Outcome:
    """→ ended. An end that was set keeps its time; any other is now. What a stay costs beside the
    membership keeps its key: that is the stay's."""
    now, reached = clock.now(), bool(membership.reached)
    ends_at = membership.ends_at if reached else now
    move_held(
        tx,
        actor,
        membership,
        "ended",
        "end_membership",
        reason=ending.words,
        also={
            "ends_at": ends_at,
            "ended_at": now,
            "end_reason": ending.reason,
            "end_refusal": None,
            "checkout_until": None,
        },
    )
    if membership.started_at is not None:
        _cancel_stays(tx, actor, membership.id, now)
        if not reached:
            _revoke_keys(tx, actor, membership.id)
    _owe_proofs(tx, membership, now)
    tell(tx, membership.id, _news(membership, ending), str(membership.id))
    tx.ring("memberships")
    return Applied(Code.MEMBERSHIP_ENDED, to="ended", subject=membership.id)


def move_held(
    tx: Tx,
    actor: Actor,
    membership: Row,
    event: str,
    verb: str,
    *,
    reason: str | None = None,
    also: Mapping[str, Any],
) -> None:
    """The caller holds the row, so it is in the state in which it was read."""
    moved = move(
        tx,
        MACHINE,
        membership.id,
        event=event,
        from_state=membership.state,
        actor=actor,
        verb=verb,
        seen=membership.version,
        reason=reason,
        also=also,
    )
    if moved is None:
        raise LookupError("a membership that is held has moved")


def tell(tx: Tx, membership_id: UUID, news: str, fact: str) -> None:
    """One letter to the member about one fact."""
    outbox.enqueue(tx, None, news, fact, {}, membership_id=membership_id)


def _news(membership: Row, ending: Ending) -> str:
    """What the member is told: one that never began has not ended."""
    if membership.started_at is not None:
        return "membership_ended"
    rejected = ending.reason == "application_rejected"
    return "membership_rejected" if rejected else "membership_not_begun"


def _cancel_stays(tx: Tx, actor: Actor, membership_id: UUID, ends_at: datetime) -> None:
    """What it gives from its end on is given to nobody. A stay that began before runs out. They are
    held: one that changed in between would be left, and nobody would hear of it."""
    ahead = tx.rows(
        """
        select id, version from stays
        where membership_id = :membership and state = 'reserved' and starts_at >= :ends_at
        order by id
        for no key update
        """,
        membership=membership_id,
        ends_at=ends_at,
    )
    for stay in ahead:  # those that one person has booked ahead
        said = stays.cancel(tx, actor, stay.id, stay.version)
        if not isinstance(said, Applied):
            raise LookupError(f"a stay that is held was not cancelled: {said.code}")


def _revoke_keys(tx: Tx, actor: Actor, membership_id: UUID) -> None:
    """Of stays in house that cost nothing beside the membership."""
    given = tx.rows(
        """
        select s.id from stays s
        where s.membership_id = :membership and s.state = 'admitted'
          and not exists (select 1 from ledger_lines l where l.stay_id = s.id)
        order by s.id
        """,
        membership=membership_id,
    )
    for stay in given:  # where one person is at this moment
        keys.revoke_all(tx, actor, stay.id, reason="membership ended")


def _owe_proofs(tx: Tx, membership: Row, now: datetime) -> None:
    """An application that never began gave nothing; what was asked of the provider for it is to be
    closed there all the same."""
    owed: tuple[str, ...] = ()
    if membership.started_at is not None:
        owed = OBLIGATIONS_BY_CARD if membership.billing == "card" else OBLIGATIONS
    elif membership.state == "checkout":
        owed = ("invoices_closed",)
    tx.run(
        """
        insert into end_obligations (facility_id, membership_id, kind, since)
        select :facility_id, :membership, kind, :now from unnest(cast(:kinds as text[])) kind
        on conflict do nothing
        """,
        facility_id=tx.facility_id,
        membership=membership.id,
        kinds=list(owed),
        now=now,
    )
