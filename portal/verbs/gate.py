"""What the gate said, kept: every refusal, and who was let in although the blocklist names them."""

from uuid import UUID

from portal.db import Actor, Tx
from portal.gates.checkin import CheckinRequest, Decision, evaluate_checkin_request
from portal.log import request_id
from portal.outcome import Code, Refused
from portal.policies.blocklist import Listed


def ask(
    tx: Tx, actor: Actor, request: CheckinRequest, stay_id: UUID | None = None
) -> Decision | Refused:
    """The decision that lets in, or the refusal with its audit row: the code, the rule that fired,
    the digest of what it decided on, and for the blocklist the ground. `stay_id`: None for a stay
    that is not made."""
    decision = evaluate_checkin_request(request)
    if decision.code is None:
        return decision
    _keep(tx, actor, request, stay_id, (decision.code, decision.rule), decision.blocked)
    return Refused(decision.code, decision.details)


def let_in_though_listed(
    tx: Tx, actor: Actor, request: CheckinRequest, stay_id: UUID, entry: Listed
) -> None:
    """An audit row, and something that waits for a person: the law lets nobody be refused lodging
    without its ground, so the house has to know who is in it."""
    why = (Code.GUEST_BLOCKED, "blocklist_without_ground")
    _keep(tx, actor, request, stay_id, why, entry, let_in=True)
    tx.run(
        """
        insert into dead_letters (facility_id, source_kind, source_id, title, error, at)
        values (:facility, 'gate', :stay, 'listed', :ground, :at)
        """,
        facility=tx.facility_id,
        stay=stay_id,
        ground=entry.ground,
        at=request.now,
    )


def _keep(
    tx: Tx,
    actor: Actor,
    request: CheckinRequest,
    stay_id: UUID | None,
    why: tuple[Code, str],
    entry: Listed | None,
    *,
    let_in: bool = False,
) -> None:
    tx.run(
        """
        insert into gate_audits (facility_id, stay_id, entrance_id, blocklist_entry_id, asks, code,
            rule, ground, statute, let_in, digest, actor_kind, actor_id, actor_name, request_id, at)
        values (:facility_id, :stay_id, :entrance_id, :entry_id, :asks, :code, :rule, :ground,
            :statute, :let_in, :digest, :actor_kind, :actor_id, :actor_name, :request_id, :at)
        """,
        facility_id=tx.facility_id,
        stay_id=stay_id,
        entrance_id=request.entrance.id if request.entrance else None,
        entry_id=entry.id if entry else None,
        asks=request.asks,
        code=why[0],
        rule=why[1],
        ground=entry.ground if entry else None,
        statute=entry.statute if entry else None,
        let_in=let_in,
        digest=request.digest(),
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name,
        request_id=request_id(),
        at=request.now,
    )
