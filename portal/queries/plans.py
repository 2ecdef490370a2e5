"""What can be joined: the plans in a list and one by one, and how far the end of one has come."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.db import Row, Tx

MOST_RECORDS = 20

SHOWN = """
    p.id, p.version, p.code, p.name_ja, p.name_en, p.price, p.billed_every, p.billing,
    p.monthly_quota, p.terms_ja, p.terms_en, p.terms_version, p.sold, p.retired_at
"""

TO_END = ("applying", "checkout", "active", "past_due")
"""The states of a membership that a plan's retirement still has to end."""


@dataclass(frozen=True, slots=True)
class PlanPage:
    """`counts`: memberships by state. `records`: who made, changed and retired it, latest first."""

    plan: Row
    counts: dict[str, int]
    records: Sequence[Row]


def listed(tx: Tx) -> Sequence[Row]:
    """What is sold first, in the order of its making. `living`: memberships that have not ended.
    One statement."""
    return tx.rows(
        f"""
        select {SHOWN}, c.living
        from membership_plans p
        cross join lateral (
            select count(*) as living from memberships m
            where m.plan_id = p.id
              and m.state in ('applying', 'checkout', 'active', 'past_due', 'scheduled_to_end')
        ) c
        order by p.retired_at desc nulls first, p.created_at, p.id
        """
    )


def names(tx: Tx) -> Sequence[Row]:
    """Of every plan, for a choice."""
    return tx.rows(
        "select id, name_ja, name_en from membership_plans"
        " order by retired_at desc nulls first, created_at, id"
    )


def head(tx: Tx, plan_id: UUID) -> Row | None:
    return tx.row(f"select {SHOWN} from membership_plans p where p.id = :id", id=plan_id)


def load(tx: Tx, plan_id: UUID) -> PlanPage | None:
    """None when there is no such plan in this house. Three statements."""
    plan = head(tx, plan_id)
    if plan is None:
        return None
    return PlanPage(plan, counts(tx, plan_id), _records(tx, plan_id))


def counts(tx: Tx, plan_id: UUID) -> dict[str, int]:
    """Memberships by state; those of no membership are left out."""
    found = tx.rows(
        "select state, count(*) as many from memberships where plan_id = :plan group by state",
        plan=plan_id,
    )
    return {row.state: row.many for row in found}


def _records(tx: Tx, plan_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select event, reason, actor_kind, actor_name, at from transitions
        where machine = 'membership_plan' and subject_id = :plan
        order by at desc, id desc limit :most
        """,
        plan=plan_id,
        most=MOST_RECORDS,
    )
