"""The visits of a membership's month: the only writer of their counters and lines.

The month is that of the house's day on which a stay begins, whenever it was booked. A counter and
the line that accounts for it are one statement, which takes only where something is left. Whoever
calls holds the membership and the stay; the counter is locked after them.
"""

from datetime import date, datetime
from typing import Literal
from uuid import UUID

from portal import clock
from portal.db import Actor, Row, Tx
from portal.move import signed
from portal.outcome import Code, Refused, RefusedError
from portal.policies.membership_quota import month_of_use

Taken = Literal["taken", "moved_here"]
Returned = Literal["returned", "moved_away"]


def take(
    tx: Tx,
    actor: Actor,
    membership: Row,
    stay_id: UUID,
    starts_at: datetime,
    kind: Taken = "taken",
) -> None:
    """One visit of the month in which the stay begins. Raises RefusedError. `membership`: its
    id, quota (null: as many as one likes, and nothing is counted) and house's zone."""
    if membership.monthly_quota is None:
        return
    month = month_of_use(starts_at, membership.time_zone)
    _open(tx, actor, membership, month)
    counted = tx.scalar(
        """
        with counted as (
            update quota_months set used = used + 1
            where membership_id = :membership and month = :month and used < granted
            returning id
        ), line as (
            insert into quota_lines (facility_id, month_id, kind, amount, stay_id, actor_kind,
                actor_id, actor_name, request_id, at)
            select :facility_id, counted.id, :kind, -1, :stay, :actor_kind, :actor_id, :actor_name,
                   :request_id, :at
            from counted
        )
        select id from counted
        """,
        membership=membership.membership_id,
        month=month,
        kind=kind,
        stay=stay_id,
        **signed(tx, actor),
    )
    if counted is None:
        day = clock.local_day(starts_at, membership.time_zone)
        said = {"day": day, "count": membership.monthly_quota}
        raise RefusedError(Refused(Code.QUOTA_EXHAUSTED, said))


def give_back(tx: Tx, actor: Actor, stay: Row, kind: Returned = "returned") -> None:
    """The visit that the stay holds, to the month that it was taken of. Where the membership gives
    fewer by now than that month had, what comes back goes from its grant as well."""
    tx.run(
        """
        with was as materialized (
            select id, granted, used - 1 as used,
                   greatest(least(granted, coalesce(:quota, granted)), used - 1) as wanted
            from quota_months
            where membership_id = :membership and month = :month and used > 0
            for no key update
        ), counted as (
            update quota_months q set used = was.used, granted = was.wanted from was
            where q.id = was.id
            returning q.id, q.granted - was.granted as difference
        )
        insert into quota_lines (facility_id, month_id, kind, amount, stay_id, actor_kind,
            actor_id, actor_name, request_id, at)
        select :facility_id, line.id, line.kind, line.amount, line.stay, :actor_kind, :actor_id,
               :actor_name, :request_id, :at
        from (
            select id, :kind as kind, 1 as amount, cast(:stay as uuid) as stay from counted
            union all
            select id, 'granted', difference, null from counted where difference <> 0
        ) line
        """,
        membership=stay.membership_id,
        month=stay.quota_month,
        quota=stay.monthly_quota,
        kind=kind,
        stay=stay.id,
        **signed(tx, actor),
    )


def follow(tx: Tx, actor: Actor, stay: Row, starts_at: datetime) -> None:
    """A stay that holds a visit begins in another month: it holds one of that month instead.
    Raises RefusedError."""
    if stay.quota_month in (None, month_of_use(starts_at, stay.time_zone)):
        return
    # Both counters in one order, so that two that change places wait and never deadlock.
    tx.run(
        "select 1 from quota_months where membership_id = :id order by month for no key update",
        id=stay.membership_id,
    )
    take(tx, actor, stay, stay.id, starts_at, "moved_here")
    give_back(tx, actor, stay, "moved_away")


def regrant(tx: Tx, actor: Actor, membership: Row, quota: int | None) -> None:
    """Another plan gives another number from this month on; what is used already stays used."""
    if quota is None:
        return
    tx.run(
        """
        with was as materialized (
            select id, granted, greatest(:quota, used) as wanted from quota_months
            where membership_id = :membership and month >= :month
            order by month for no key update
        ), changed as (
            update quota_months q set granted = was.wanted from was
            where q.id = was.id and q.granted <> was.wanted
            returning q.id, q.granted - was.granted as difference
        )
        insert into quota_lines (facility_id, month_id, kind, amount, actor_kind, actor_id,
            actor_name, request_id, at)
        select :facility_id, id, 'granted', difference, :actor_kind, :actor_id, :actor_name,
               :request_id, :at
        from changed
        """,
        quota=quota,
        membership=membership.id,
        month=month_of_use(clock.now(), membership.time_zone),
        **signed(tx, actor),
    )


def _open(tx: Tx, actor: Actor, membership: Row, month: date) -> None:
    """The month's counter with its grant, once."""
    tx.run(
        """
        with opened as (
            insert into quota_months (facility_id, membership_id, month, granted)
            values (:facility_id, :membership, :month, :quota)
            on conflict (facility_id, membership_id, month) do nothing
            returning id
        )
        insert into quota_lines (facility_id, month_id, kind, amount, actor_kind, actor_id,
            actor_name, request_id, at)
        select :facility_id, id, 'granted', :quota, :actor_kind, :actor_id, :actor_name,
               :request_id, :at
        from opened
        """,
        membership=membership.membership_id,
        month=month,
        quota=membership.monthly_quota,
        **signed(tx, actor),
    )
