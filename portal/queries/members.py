"""Memberships in a list and one by one, and what a member sees of theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.db import Row, Tx
from portal.queries import keyset
from portal.queries.keyset import Cursor, Page
from portal.queries.stay_page import MESSAGE_END, MESSAGE_STATE

SHOWN = """
    m.id, m.state, m.version, m.billing, m.price, m.currency, m.billed_every, m.monthly_quota,
    m.created_at, m.started_at, m.ends_at, m.ended_at, m.end_reason, g.name as guest, g.kana,
    p.name_ja as plan_ja, p.name_en as plan_en, p.retired_at as plan_retired_at
"""
"""What is said of a membership `m`, its plan `p` and its person `g`."""

WHO = """
    join members r on r.id = m.member_id
    join guests g on g.id = r.guest_id
    join membership_plans p on p.id = m.plan_id
"""

MOST_STAYS = 20


@dataclass(frozen=True, slots=True)
class MembershipPage:
    """What staff see. `proofs`: what its end must prove, and what has proven it."""

    membership: Row
    proofs: Sequence[Row]
    stays: Sequence[Row]
    messages: Sequence[Row]


def page(
    tx: Tx, state: str, cursor: Cursor, size: int = keyset.SIZE, *, plan: UUID | None = None
) -> Page:
    """Latest first; of one state and of one plan where they are named. One statement whatever the
    table holds."""
    beyond, params = cursor.condition("memberships", "m")
    for column, wanted in (("state", state), ("plan_id", plan)):
        if wanted:
            beyond, params = f"m.{column} = :{column} and {beyond}", {**params, column: wanted}
    found = tx.rows(
        f"""
        with found as materialized (
            select m.id from memberships m
            where {beyond}
            order by m.created_at {cursor.direction}, m.id {cursor.direction}
            limit :size
        )
        select {SHOWN}, m.end_tries, m.end_refusal, m.next_look_at
        from found join memberships m on m.id = found.id {WHO}
        order by m.created_at desc, m.id desc
        """,
        size=size + 1,
        **params,
    )
    return keyset.cut(found, cursor, size)


def load(tx: Tx, membership_id: UUID) -> MembershipPage | None:
    """None when there is no such membership in this house. Four statements."""
    membership = tx.row(
        f"""
        select {SHOWN}, m.terms_version, m.confirmation, m.token_sealed, m.plan_id, g.email,
               g.phone, g.line_user_id, g.preferred_locale, f.default_locale
        from memberships m {WHO} join facilities f on f.id = m.facility_id
        where m.id = :id
        """,
        id=membership_id,
    )
    if membership is None:
        return None
    return MembershipPage(
        membership,
        _proofs(tx, membership_id),
        _stays(tx, membership_id),
        _messages(tx, membership_id),
    )


def head(tx: Tx, membership_id: UUID) -> Row | None:
    """Enough for a page before an act, and for the member's own."""
    return tx.row(
        f"select {SHOWN}, m.confirmation from memberships m {WHO} where m.id = :id",
        id=membership_id,
    )


def bookings(tx: Tx, membership_id: UUID) -> Sequence[Row]:
    """What lies ahead: an end takes what begins after it."""
    return tx.rows(
        """
        select s.id, s.code, s.starts_at, s.ends_at, p.name_ja as space_ja, p.name_en as space_en
        from stays s join spaces p on p.id = s.space_id
        where s.membership_id = :membership and s.state = 'reserved'
        order by s.starts_at, s.id limit :most
        """,
        membership=membership_id,
        most=MOST_STAYS,
    )


def plan_to_join(tx: Tx, code: str) -> Row | None:
    """A plan that is sold, by the code in its address."""
    return tx.row(
        """
        select id, version, code, name_ja, name_en, price, billed_every, billing, monthly_quota,
               terms_ja, terms_en, terms_version
        from membership_plans where code = :code and sold
        """,
        code=code,
    )


def _proofs(tx: Tx, membership_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select kind, since, proven_at, proof from end_obligations
        where membership_id = :membership order by kind
        """,
        membership=membership_id,
    )


def _stays(tx: Tx, membership_id: UUID) -> Sequence[Row]:
    return tx.rows(
        """
        select id, code, state, starts_at, ends_at from stays
        where membership_id = :membership order by starts_at desc, id desc limit :most
        """,
        membership=membership_id,
        most=MOST_STAYS,
    )


def _messages(tx: Tx, membership_id: UUID) -> Sequence[Row]:
    return tx.rows(
        f"""
        select o.id, o.event_type, o.channel, o.recipient, o.locale, o.attempts, o.created_at,
               {MESSAGE_STATE} as state, {MESSAGE_END} as ended_at
        from outbox o where o.membership_id = :membership order by o.created_at desc, o.id
        """,
        membership=membership_id,
    )
