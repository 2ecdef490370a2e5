"""Memberships in a list and one by one, and what a member sees of theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.db import Row, Tx
from portal.policies.folding import fold, like_pattern
from portal.queries import keyset
from portal.queries.keyset import Cursor, Page
from portal.queries.stay_page import MESSAGE_END, MESSAGE_STATE

SHOWN = """
    m.id, m.state, m.version, m.billing, m.price, m.currency, m.billed_every, m.monthly_quota,
    m.created_at, m.started_at, m.ends_at, m.ended_at, m.end_reason, g.name as guest, g.kana,
    p.name_ja as plan_ja, p.name_en as plan_en, p.retired_at as plan_retired_at
"""
BILLED = """
    m.checkout_until, b.status as billing_status, b.period_end, m.paused, b.resumes_at, b.trial_end,
    b.subscription_id, b.livemode, b.told_at,
    (select l.kind from billing_legs l
     where l.membership_id = m.id and l.progress in ('open', 'unknown')) as asked
"""
"""What the provider that bills has said of it, and what it is being asked."""
BILLING = "left join subscription_mirror b on b.membership_id = m.id"

"""What is said of a membership `m`, its plan `p` and its person `g`."""

WHO = """
    join members r on r.id = m.member_id
    join guests g on g.id = r.guest_id
    join membership_plans p on p.id = m.plan_id
"""

MOST_STAYS = 20
MOST_PERIODS = 24


@dataclass(frozen=True, slots=True)
class MembershipPage:
    """What staff see. `proofs`: what its end must prove, and what has proven it."""

    membership: Row
    proofs: Sequence[Row]
    periods: Sequence[Row]
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
    """None when there is no such membership in this house. Five statements."""
    membership = tx.row(
        f"""
        select {SHOWN}, {BILLED}, m.terms_version, m.confirmation, m.token_sealed, m.plan_id,
               g.email, g.phone, g.line_user_id, g.preferred_locale, f.default_locale
        from memberships m {WHO} {BILLING} join facilities f on f.id = m.facility_id
        where m.id = :id
        """,
        id=membership_id,
    )
    if membership is None:
        return None
    return MembershipPage(
        membership,
        _proofs(tx, membership_id),
        periods(tx, membership_id),
        _stays(tx, membership_id),
        _messages(tx, membership_id),
    )


def head(tx: Tx, membership_id: UUID) -> Row | None:
    """Enough for a page before an act, and for the member's own."""
    return tx.row(
        f"select {SHOWN}, {BILLED}, m.confirmation from memberships m {WHO} {BILLING}"
        " where m.id = :id",
        id=membership_id,
    )


def periods(tx: Tx, membership_id: UUID) -> Sequence[Row]:
    """What was granted and paid, the latest first, each with its payment if it cost something."""
    return tx.rows(
        """
        select d.starts_at, d.ends_at, d.amount, d.currency, d.paid_at, p.id as payment_id,
               p.state as payment_state
        from membership_periods d
        left join payments p on p.invoice_id = d.invoice_id and p.membership_id = d.membership_id
             and p.succeeded_at is not null
        where d.membership_id = :id order by d.starts_at desc, d.id desc limit :most
        """,
        id=membership_id,
        most=MOST_PERIODS,
    )


def payment(tx: Tx, membership_id: UUID, payment_id: UUID) -> Row | None:
    """One payment of this very membership, with what the card form needs."""
    return tx.row(
        """
        select p.id, p.state, p.purpose, p.amount, p.currency, p.intent_id,
               p.client_secret_sealed, p.livemode, p.created_at, n.name_ja as plan_ja,
               n.name_en as plan_en
        from payments p join memberships m on m.id = p.membership_id
        join membership_plans n on n.id = m.plan_id
        where p.id = :payment and p.membership_id = :membership
          and p.client_secret_sealed is not null
        """,
        payment=payment_id,
        membership=membership_id,
    )


def newest_payment(tx: Tx, membership_id: UUID) -> Row | None:
    return tx.row(
        """
        select id, state, purpose, amount, currency, decline_code, authorised_at, created_at
        from payments where membership_id = :membership
        order by created_at desc, attempt desc limit 1
        """,
        membership=membership_id,
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


def plans_by_card(tx: Tx) -> Sequence[Row]:
    """What can be switched to."""
    return tx.rows(
        """
        select p.id, p.name_ja, p.name_en, p.price, p.billed_every, f.currency
        from membership_plans p join facilities f on f.id = p.facility_id
        where p.sold and p.billing = 'card' order by p.price, p.id
        """
    )


def to_book(tx: Tx, words: str, membership_id: UUID | None) -> Sequence[Row]:
    """Memberships that run, by a part of the member's name, kana or address; without words the one
    that is named. Whether one gives is the verb's to say, with its reason."""
    named = "m.id = :id"
    if folded := fold(words):
        named = "(g.search_key like :name or r.email_key like :address)"
    return tx.rows(
        f"""
        select {SHOWN}, m.paused, r.email_key from memberships m {WHO}
        where m.state in ('active', 'past_due', 'scheduled_to_end') and {named}
        order by g.search_key, m.created_at, m.id limit :most
        """,
        id=membership_id,
        name=like_pattern(folded),
        address=like_pattern(words.strip().casefold()),
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
