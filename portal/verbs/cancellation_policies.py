"""The verbs of cancellation policies: made, followed by a new version, chosen for a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.exc import IntegrityError

from portal.db import Actor, Tx
from portal.models import CancellationPolicy, CancellationTerms
from portal.move import record, row_standing
from portal.outcome import Applied, Code, Conflict, Noop, Outcome, Refused
from portal.policies import cancellation
from portal.policies.cancellation import Step

KIND = "cancellation_policy"
PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Terms:
    name_ja: str
    name_en: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class NewPolicy:
    """`form_key` makes a double submit one policy."""

    form_key: UUID
    terms: Terms


def create(tx: Tx, actor: Actor, wanted: NewPolicy) -> Outcome:
    """→ kept, with the first version of its terms."""
    if again := tx.made_by(CancellationPolicy, wanted.form_key):
        return Noop(Code.POLICY_ALREADY_CREATED, subject=again)
    if not cancellation.sound(wanted.terms.steps):
        return Refused(Code.POLICY_STEPS_UNSOUND)
    try:
        with tx.savepoint():
            policy_id = tx.add(
                CancellationPolicy, facility_id=tx.facility_id, form_key=wanted.form_key
            )
    except IntegrityError:
        again = tx.made_by(CancellationPolicy, wanted.form_key)
        if again is None:
            raise
        return Noop(Code.POLICY_ALREADY_CREATED, subject=again)
    _write(tx, policy_id, 1, wanted.terms)
    record(tx, actor, KIND, policy_id, "created", (None, "kept"), "create", wanted.terms.name_ja)
    return Applied(Code.POLICY_CREATED, to="kept", subject=policy_id)


def change(tx: Tx, actor: Actor, policy_id: UUID, seen: int, wanted: Terms) -> Outcome:
    """kept → kept, as a new version. What is booked already keeps the version it agreed to."""
    policy = tx.get(CancellationPolicy, policy_id, lock=True)
    if policy is None:
        return Refused(Code.NOT_FOUND)
    if _newest(tx, policy_id) == _as_written(wanted):
        return Noop(Code.POLICY_UNCHANGED, subject=policy_id)
    if policy.version != seen:
        return Conflict(Code.STALE_PAGE, row_standing(tx, KIND, policy_id, "kept", policy.version))
    if not cancellation.sound(wanted.steps):
        return Refused(Code.POLICY_STEPS_UNSOUND)

    tx.run("update cancellation_policies set version = version + 1 where id = :id", id=policy_id)
    _write(tx, policy_id, seen + 1, wanted)
    record(tx, actor, KIND, policy_id, "changed", ("kept", "kept"), "change", str(seen + 1))
    return Applied(Code.POLICY_UPDATED, to="kept", subject=policy_id)


def choose(
    tx: Tx, actor: Actor, plan_id: UUID, seen: UUID | None, policy_id: UUID | None
) -> Outcome:
    """By which policy what is booked of a plan from now on is cancelled; None: the desk decides.
    `seen` is the policy that the page showed."""
    plan = tx.row(
        """
        select cancellation_policy_id as policy, version,
               case when active then 'sold' else 'withdrawn' end as state, exists (
                   select 1 from transitions where machine = :kind and subject_id = plans.id
               ) as recorded
        from plans where id = :id for no key update
        """,
        kind=PLAN,
        id=plan_id,
    )
    if plan is None or (policy_id and tx.get(CancellationPolicy, policy_id) is None):
        return Refused(Code.NOT_FOUND)
    if plan.policy == policy_id:
        return Noop(Code.POLICY_UNCHANGED, subject=plan_id)
    if plan.policy != seen:
        return Conflict(Code.STALE_PAGE, row_standing(tx, PLAN, plan_id, plan.state, plan.version))

    tx.run(
        "update plans set cancellation_policy_id = :policy where id = :id",
        policy=policy_id,
        id=plan_id,
    )
    what = f"{plan.policy or '-'} → {policy_id or '-'}"
    was = plan.state if plan.recorded else None
    record(tx, actor, PLAN, plan_id, "changed", (was, plan.state), "choose_policy", what)
    return Applied(Code.POLICY_CHOSEN, to=plan.state, subject=plan_id)


def _write(tx: Tx, policy_id: UUID, version: int, terms: Terms) -> None:
    terms_id = tx.add(
        CancellationTerms,
        facility_id=tx.facility_id,
        policy_id=policy_id,
        version=version,
        name_ja=terms.name_ja,
        name_en=terms.name_en,
    )
    ordered = cancellation.in_order(terms.steps)
    tx.run(
        """
        insert into cancellation_steps (facility_id, terms_id, hours_before, fee_percent,
            returns_quota)
        select :facility_id, :terms, step.hours, step.fee, step.back
        from unnest(cast(:hours as int[]), cast(:fees as int[]), cast(:backs as bool[]))
            as step (hours, fee, back)
        """,
        facility_id=tx.facility_id,
        terms=terms_id,
        hours=[step.hours_before for step in ordered],
        fees=[step.fee_percent for step in ordered],
        backs=[step.returns_quota for step in ordered],
    )


def _newest(tx: Tx, policy_id: UUID) -> list[tuple[object, ...]]:
    """The terms as they are now, step by step."""
    found = tx.rows(
        """
        select t.name_ja, t.name_en, s.hours_before, s.fee_percent, s.returns_quota
        from cancellation_policies p
        join cancellation_terms t on t.policy_id = p.id and t.version = p.version
        join cancellation_steps s on s.terms_id = t.id
        where p.id = :id order by s.hours_before desc
        """,
        id=policy_id,
    )
    return [tuple(row) for row in found]


def _as_written(terms: Terms) -> list[tuple[object, ...]]:
    return [
        (terms.name_ja, terms.name_en, step.hours_before, step.fee_percent, step.returns_quota)
        for step in cancellation.in_order(terms.steps)
    ]
