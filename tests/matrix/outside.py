"""The whole system as its owner and the far side see it: time, what waits, what is, what is wrong.

Everything here reads; only time is moved, and only in the database, where leases are counted.
"""

import re
from collections import Counter

from sandbox.mail import MailSink
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.outside import Owner, codes_on_locks

LONG = "interval '7 hours'"
"""Longer than every lease and back-off."""

# Every column by which a row says when it is due, or how old it is.
DUE = {
    "webhook_events": ("claimed_at", "next_attempt_at"),
    "outbox": ("claimed_at", "next_attempt_at", "not_before"),
    "lock_commands": ("claimed_at", "next_attempt_at", "unknown_at"),
    "refunds": ("claimed_at", "next_attempt_at", "created_at"),
    "payments": ("next_read_at", "created_at"),
    "entry_keys": ("next_poll_at",),
    "memberships": ("next_look_at",),
    "billing_legs": ("next_read_at", "created_at"),
    "subscription_mirror": ("next_read_at",),
    "end_obligations": ("next_look_at",),
}


def pass_time(owner: Owner) -> None:
    """Seven hours go by, for whatever waits."""
    for table, columns in DUE.items():
        moved = ", ".join(f"{name} = {name} - {LONG}" for name in columns)
        owner.run(f"update {table} set {moved}")


def waiting(owner: Owner) -> list[str]:
    """Whatever is begun and not ended, and no person's: once all is quiet there is nothing."""
    return [str(row[0]) for row in owner.rows(_WAITING)]


_WAITING = """
    select 'event ' || type from webhook_events where state = 'processing' or claimed_at is not null
    union all select 'message ' || event_type from outbox
    where sent_at is null and suppressed_at is null and withdrawn_at is null and dropped_at is null
      and unknown_at is null and dead_at is null
    union all select 'claimed message ' || event_type from outbox where claimed_at is not null
    union all select 'command ' || kind from lock_commands
    where (done_at is null and dead_at is null) or claimed_at is not null
    union all select 'refund ' || state from refunds
    where state in ('asked', 'unknown') or claimed_at is not null
    union all select 'payment ' || state from payments
    where state = 'unknown' or (state = 'open' and intent_id is null)
    union all select 'unread payment ' || state from payments
    where state in ('open', 'processing', 'unknown') and next_read_at is null
    union all select 'key ' || state from entry_keys k
    where state in ('requested', 'revoking') and not exists (
        select 1 from lock_commands c where c.key_id = k.id and c.dead_at is not null)
    union all select 'membership past its end' from memberships
    where state = 'scheduled_to_end' and ends_at <= now()
    union all select 'billing leg ' || kind from billing_legs where settled_at is null
    union all select 'membership of a retired plan ' || m.state
    from memberships m join membership_plans p on p.id = m.plan_id
    where p.retired_at is not null and m.state in ('applying', 'active', 'past_due')
    union all select 'unproven ' || kind from end_obligations where proven_at is null
"""


def for_a_person(owner: Owner) -> list[str]:
    """What was given up, or may have been done: it waits for somebody's word."""
    return [str(row[0]) for row in owner.rows(_FOR_A_PERSON)]


_FOR_A_PERSON = """
    select 'a message given up: ' || event_type from outbox where dead_at is not null
    union all select 'a message in doubt: ' || event_type from outbox where unknown_at is not null
    union all select 'a command given up: ' || kind from lock_commands where dead_at is not null
"""


def locks_at_rest(seam: Running) -> bool:
    return not any(code["status"] in ("setting", "removing") for code in codes_on_locks(seam))


def is_over(owner: Owner, pid: int) -> bool:
    """The killed process's connections are gone, and with them its transactions and locks."""
    alive = "select count(*) from pg_stat_activity where application_name = %s"
    return not owner.one(alive, f"matrix {pid}")


# What is ----------------------------------------------------------------------------------------

Picture = Counter[str]
"""Every effect with how often it is there. Two runs that came to the same have the same picture."""


def standing(owner: Owner) -> Picture:
    """The books, and the work that is begun, as they stand at this moment."""
    return books(owner) + Counter([*waiting(owner), *for_a_person(owner)])


def books(owner: Owner) -> Picture:
    """What our database says happened. An attempt to pay that came to nothing is no effect."""
    return Counter({str(what): int(often) for what, often in owner.rows(_BOOKS)})


_BOOKS = """
    select what, count(*) from (
        select concat_ws(' ', 'stay', s.state, s.version, p.code, s.ends_at - s.starts_at) as what
        from stays s join spaces p on p.id = s.space_id
        union all select concat_ws(' ', 'guest speaks', preferred_locale, version) from guests
        union all select concat_ws(' ', 'subscription', status, amount, ends_at is null)
        from subscription_mirror
        union all select concat_ws(' ', 'period', amount, reason) from membership_periods
        union all select concat_ws(' ', 'asked', kind) from billing_legs where progress = 'done'
        union all select concat_ws(' ', 'membership', state, version, end_reason, ends_at is null,
            end_refusal) from memberships
        union all select concat_ws(' ', 'plan', code, price, sold, retired_at is null, version)
        from membership_plans
        union all select concat_ws(' ', 'proof', kind, proven_at is not null) from end_obligations
        union all select concat_ws(' ', 'folio', kind, amount,
            regexp_replace(memo, '^in_.*', 'an invoice')) from ledger_lines
        union all select concat_ws(' ', 'payment', state, purpose, amount, decline_code,
            authorised_at is not null)
        from payments where state <> 'canceled'
        union all select concat_ws(' ', 'refund', state, reason, amount, lowers_price) from refunds
        union all select concat_ws(' ', 'dispute', status, amount, refundable) from disputes
        union all select concat_ws(' ', 'key', k.state, d.device_id)
        from entry_keys k join doors d on d.id = k.door_id
        union all select concat_ws(' ', 'house', slug, benefits_while_past_due, issuer_name,
            tax_number, register_required, deposit_hours) from facilities
        union all select concat_ws(' ', 'held without end', deposit_by is null) from stays
        where deposit_due > 0
        union all select concat_ws(' ', 'close', c.no, c.cash_in, c.counted, c.taken, c.lines, (
            select count(*) from day_close_lines l where l.close_id = c.id)) from day_closes c
        union all select concat_ws(' ', 'register', contact, version) from guest_registers
        -- Each reading is one of its own: a press that was lost and made again is another.
        union all (select distinct concat_ws(' ', 'reading', kind, reason, rows_read)
                   from register_readings)
        union all select concat_ws(' ', 'document', kind, number, amount, (
            select count(*) from document_copies c where c.document_id = d.id)) from documents d
        union all select concat_ws(' ', 'tickets', granted, used, worth, version,
            taken_back_at is null) from ticket_books
        union all select concat_ws(' ', 'tickets sold as', tickets, price, withdrawn_at is null)
        from ticket_offers
        union all select concat_ws(' ', 'lodging tax', t.valid_from, b.min_price, b.amount)
        from lodging_tax_tables t join lodging_tax_bands b on b.table_id = t.id
        union all select concat_ws(' ', 'door', device_id, online, battery) from doors
        -- A session that was lost with its answer is opened anew, and the old one runs out.
        union all (select distinct concat_ws(' ', 'tablet', s.state, k.ended_at is null)
                   from kiosk_sessions k join stays s on s.id = k.stay_id)
        union all select concat_ws(' ', 'letter', source_kind, closed_how) from dead_letters
        union all select concat_ws(' ', 'difference', kind, healed_at is not null) from divergences
        union all select concat_ws(' ', 'message', event_type, channel, locale, case
            when sent_at is not null or (dropped_at is not null and sending_at is not null)
                then 'sent'
            when dropped_at is not null then 'dropped'
            when withdrawn_at is not null then 'withdrawn'
            when suppressed_at is not null then 'suppressed'
            else 'not sent' end) from outbox
        union all select concat_ws(' ', 'event', type, state) from webhook_events
        where event_id not like '%%replay%%'
        union all select concat_ws(' ', 'record', machine, event, from_state, to_state)
        from transitions t where machine <> 'webhook_event' and not exists (
            select 1 from payments c where c.id = t.subject_id and c.state = 'canceled')
    ) x group by what
"""


def far_side(
    owner: Owner, stripe: StandIn, seam: Running, line: Running, mail: MailSink
) -> Picture:
    """What the card provider, the locks and the people have."""
    held = stripe.get("objects")
    seen: Picture = Counter()
    for intent in held.get("payment_intent", []):
        if intent["status"] != "canceled":
            seen[f"intent {intent['status']} {intent['amount']}"] += 1
    for refund in held.get("refund", []):
        seen[f"their refund {refund['status']} {refund['amount']}"] += 1
    for dispute in held.get("dispute", []):
        seen[f"their dispute {dispute['status']} {dispute['amount']}"] += 1
    for one in held.get("subscription", []):
        price = one["items"]["data"][0]["price"]["unit_amount"]
        seen[f"subscription {one['status']} {price} {one['cancel_at'] is None}"] += 1
    for invoice in held.get("invoice", []):
        seen[f"invoice {invoice['status']} {invoice['amount_due']}"] += 1
    for code in codes_on_locks(seam):
        seen[f"code {code['status']} {code['device_id']}"] += 1
    kinds = {str(key): kind for key, kind in owner.rows("select id, event_type from outbox")}
    for key in heard(line, mail):
        seen[f"heard {kinds.get(key, key)}"] += 1
    return seen


def heard(line: Running, mail: MailSink) -> list[str]:
    """The id of the message, for every e-mail and every push that a person has."""
    mails = [str(got.message["Message-ID"]) for got in mail.kept]
    found = [re.sub(r"^<(.*)@monban>$", r"\1", name) for name in mails]
    return found + [str(push["retry_key"]) for push in line.control("pushes")]


# What is wrong ----------------------------------------------------------------------------------


def wrong(owner: Owner, stripe: StandIn, seam: Running, line: Running, mail: MailSink) -> list[str]:
    """Every promise that does not hold in the quiet house, in plain words."""
    return [
        *(f"still waiting: {one}" for one in waiting(owner)),
        *(f"waits for a person: {one}" for one in for_a_person(owner)),
        *_money(owner, stripe),
        *_billing(owner, stripe),
        *_locks(owner, seam),
        *_words(owner, line, mail),
        *(f"{one}" for (one,) in owner.rows(_CHAIN)),
        *(f"{one}" for (one,) in owner.rows(_FOLIO)),
        *(f"{one}" for (one,) in owner.rows(_QUOTA)),
        *(f"{one}" for (one,) in owner.rows(_TICKETS)),
    ]


# What we say has moved, beside the provider's objects that name our rows.
TAKEN = {
    "payment_intent": """
        select intent_id, amount from payments
        where state in ('succeeded', 'refund_owed', 'refunded')
    """,
    "refund": "select provider_refund_id, amount from refunds where state = 'succeeded'",
}
NAMED = {"payment_intent": "payment_id", "refund": "refund_id"}


def _money(owner: Owner, stripe: StandIn) -> list[str]:
    held = stripe.get("objects")
    found: list[str] = []
    for kind, ours in TAKEN.items():
        there = held.get(kind, [])
        named = Counter(one["metadata"].get(NAMED[kind]) for one in there)
        twice = [row for row, often in named.items() if row and often > 1]
        found += [f"more than one {kind} bears the name of one row of ours"] * len(twice)
        taken = {(one["id"], one["amount"]) for one in there if one["status"] == "succeeded"}
        if taken != (mine := set(owner.rows(ours))):
            found.append(f"{kind}: they have {taken - mine} beyond us, we {mine - taken}")
    told = {(one["id"], one["status"]) for one in held.get("dispute", [])}
    if told != (mine := set(owner.rows("select provider_dispute_id, status from disputes"))):
        found.append(f"disputes: they have {told - mine} beyond us, we {mine - told}")
    return found


def _billing(owner: Owner, stripe: StandIn) -> list[str]:
    """One living subscription for each membership that lives and is billed, none for any other."""
    over = ("canceled", "incomplete_expired")
    theirs = Counter(
        one["metadata"].get("membership_id")
        for one in stripe.get("objects").get("subscription", [])
        if one["status"] not in over
    )
    ours = Counter(str(row) for (row,) in owner.rows(
        "select id from memberships where billing = 'card' and state not in ('applying', 'ended')"
    ))  # fmt: skip
    return [] if ours == theirs else [f"billed there {theirs - ours}, here {ours - theirs}"]


def _locks(owner: Owner, seam: Running) -> list[str]:
    ours = {str(code) for (code,) in owner.rows(
        "select provider_code_id from entry_keys where state = 'issued'"
    )}  # fmt: skip
    theirs = {c["access_code_id"] for c in codes_on_locks(seam) if c["name"].startswith("monban ")}
    return [] if ours == theirs else [f"on the locks {theirs - ours}, in our books {ours - theirs}"]


def _words(owner: Owner, line: Running, mail: MailSink) -> list[str]:
    got = Counter(heard(line, mail))
    found = [f"a message of {often} times" for often in got.values() if often > 1]
    for row, kind, state in owner.rows(_MESSAGES):
        if state == "sent" and not got[str(row)]:
            found.append(f"{kind} is marked sent and nobody has it")
        if state == "silent" and got[str(row)]:
            found.append(f"{kind} was heard and is not marked sent")
    return found


_MESSAGES = """
    select id, event_type, case
        when sent_at is not null then 'sent'
        when suppressed_at is not null or withdrawn_at is not null then 'silent'
        else 'dropped' end
    from outbox
"""

# Each record of a row begins where the one before it ended, the first at nothing, and the last
# where the row is.
_CHAIN = """
    with records as (
        select machine, subject_id, to_state, from_state, id,
               lag(to_state) over w as before, lead(id) over w is null as last
        from transitions window w as (partition by machine, subject_id order by id)
    ), rows as (
        select 'stay' as machine, id, state from stays
        union all select 'membership', id, state from memberships
        union all select 'payment', id, state from payments
        union all select 'refund', id, state from refunds
        union all select 'entry_key', id, state from entry_keys
        union all select 'webhook_event', id, state from webhook_events where state = 'completed'
    )
    select 'a record of ' || machine || ' does not follow its forerunner' from records
    where from_state is distinct from before
      and not (machine = 'webhook_event' and before is null and from_state = 'processing')
    union all
    select r.machine || ' is ' || r.state || ' and its last record says '
           || coalesce(l.to_state, '-')
    from rows r left join records l on l.subject_id = r.id and l.last
    where l.to_state is distinct from r.state
"""

# A month's figures are the sums of their lines, and a stay holds one visit or none.
_QUOTA = """
    select 'a month says ' || q.granted || ' and ' || q.used || ', its lines '
           || coalesce(l.granted, 0) || ' and ' || coalesce(l.used, 0)
    from quota_months q left join lateral (
        select sum(amount) filter (where kind = 'granted') as granted,
               -sum(amount) filter (where kind <> 'granted') as used
        from quota_lines where month_id = q.id
    ) l on true
    where (coalesce(l.granted, 0), coalesce(l.used, 0)) <> (q.granted, q.used)
    union all
    select 'a stay holds ' || -sum(amount) || ' visits' from quota_lines
    where stay_id is not null group by stay_id having sum(amount) not in (0, -1)
"""

_TICKETS = """
    select 'a book says ' || b.granted || ', ' || b.used || ' and ' || b.worth || ', its lines '
           || coalesce(l.granted, 0) || ', ' || coalesce(l.used, 0) || ' and ' || l.worth
    from ticket_books b left join lateral (
        select sum(amount) filter (where kind in ('sold', 'taken_back')) as granted,
               -sum(amount) filter (where kind in ('taken', 'returned')) as used,
               coalesce(sum(worth), 0) as worth
        from ticket_lines where book_id = b.id
    ) l on true
    where (coalesce(l.granted, 0), coalesce(l.used, 0), l.worth) <> (b.granted, b.used, b.worth)
    union all
    select 'a stay holds ' || -sum(amount) || ' tickets' from ticket_lines
    where stay_id is not null group by stay_id having sum(amount) not in (0, -1)
"""
"""A book's figures are the sums of its lines, and a stay holds one ticket or none."""

# What the folio has of a payment or refund is what was taken or returned.
_FOLIO = """
    select 'the folio has ' || coalesce(l.booked, 0) || ' of a payment ' || p.state || ' of '
           || p.amount
    from payments p left join lateral (
        select -sum(amount) as booked from ledger_lines where payment_id = p.id
    ) l on true
    where coalesce(l.booked, 0) <>
          case when p.state in ('succeeded', 'refund_owed', 'refunded') then p.amount else 0 end
    union all
    select 'the folio has ' || coalesce(l.booked, 0) || ' of a refund ' || r.state || ' of '
           || r.amount
    from refunds r left join lateral (
        select sum(amount) as booked from ledger_lines where refund_id = r.id
    ) l on true
    where coalesce(l.booked, 0) <> case when r.state = 'succeeded' then r.amount else 0 end
"""
