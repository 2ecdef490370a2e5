"""What stays are sold as: the plans in a list and one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.db import Row, Tx

MOST_RECORDS = 20

SHOWN = """
    p.id, p.version, p.code, p.name_ja, p.name_en, p.kind, p.unit, p.unit_price, p.deposit,
    p.tax_class, p.members_only, p.active, (
        select array[t.name_ja, t.name_en] from cancellation_policies c
        join cancellation_terms t on t.policy_id = c.id and t.version = c.version
        where c.id = p.cancellation_policy_id
    ) as policy
"""
"""`policy`: the names of the cancellation policy, in Japanese and in English; null for none."""


@dataclass(frozen=True, slots=True)
class PlanPage:
    """`entrances`: every one of the house, `sold` where this plan is sold at it. `ahead`: stays
    booked of it that are not over. `records`: who made and changed it, latest first."""

    plan: Row
    entrances: Sequence[Row]
    ahead: int
    records: Sequence[Row]


def listed(tx: Tx) -> Sequence[Row]:
    """What is on sale first, in the order in which the desk is offered it. One statement."""
    return tx.rows(
        f"select {SHOWN} from plans p order by p.active desc, p.members_only, p.kind desc, p.code"
    )


def head(tx: Tx, plan_id: UUID) -> Row | None:
    """`booked`: a stay has been booked of it, whatever became of it."""
    return tx.row(
        f"""
        select {SHOWN}, exists (select 1 from stays s where s.plan_id = p.id) as booked
        from plans p where p.id = :id
        """,
        id=plan_id,
    )


def load(tx: Tx, plan_id: UUID) -> PlanPage | None:
    """None when there is no such plan in this house. Four statements."""
    plan = head(tx, plan_id)
    if plan is None:
        return None
    return PlanPage(plan, _entrances(tx, plan_id), _ahead(tx, plan_id), _records(tx, plan_id))


def _entrances(tx: Tx, plan_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select e.id, e.name_ja, e.name_en, exists (
            select 1 from entrance_plans x where x.entrance_id = e.id and x.plan_id = :plan
        ) as sold
        from entrances e order by e.created_at, e.id
        """,
        plan=plan_id,
    )


def _ahead(tx: Tx, plan_id: UUID) -> int:
    found = tx.scalar(
        """
        select count(*) from stays
        where plan_id = :plan and state in ('reserved', 'admitted')
        """,
        plan=plan_id,
    )
    return int(found)


def _records(tx: Tx, plan_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select event, verb, reason, actor_kind, actor_name, at from transitions
        where machine = 'plan' and subject_id = :plan
        order by at desc, id desc limit :most
        """,
        plan=plan_id,
        most=MOST_RECORDS,
    )
