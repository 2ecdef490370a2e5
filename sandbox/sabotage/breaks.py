"""The named breaks: where, what stands there, what it becomes, and the checks that must see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    """`old` occurs in `file`; its first occurrence becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    checks: tuple[str, ...]


LEGS, CARD = "portal/verbs/billing_legs.py", ("tests/verbs/test_card_memberships.py",)
TICKETS = "tests/verbs/test_tickets.py"
VERBS, JOBS, DB = "tests/verbs", "tests/jobs", "tests/db"
MOVE, MESSAGES = "portal/move.py", "portal/jobs/messages.py"
INBOX, OUTBOX, EVENTS = "portal/inbox.py", "portal/outbox.py", "portal/jobs/events.py"
GUARDS = "migrations/sql/0001_guards.sql"
CLAIMS = "migrations/sql/0005_claims.sql"

BREAKS = (
    Break(
        "no state in the compare-and-set",
        MOVE,
        "and subject.state = :from_state",
        "",
        ("tests/machines", "tests/verbs/test_stays.py"),
    ),
    Break(
        "the version that was seen is not compared",
        MOVE,
        "subject.version = :seen",
        "true",
        ("tests/machines", "tests/verbs/test_stays.py"),
    ),
    Break(
        "no transition record",
        MOVE,
        "from moved\n        )\n        select version from moved",
        "from moved where false\n        )\n        select version from moved",
        ("tests/machines", "tests/verbs/test_stays.py"),
    ),
    Break(
        "row count of the move ignored",
        MOVE,
        "return None if found is None else Moved(to_state, int(found))",
        "return Moved(to_state, int(found or 0))",
        ("tests/machines",),
    ),
    Break(
        "guard trigger dropped",
        GUARDS,
        "execute format('create trigger guard_state before insert or update on %I'\n"
        "                       ' for each row execute function guard_state()', guarded);",
        "null;",
        ("tests/machines", DB),
    ),
    Break(
        "the mark names no row",
        GUARDS,
        "tg_table_name || ':' || new.id || ':' || new.state then",
        "current_setting('app.move', true) then",
        ("tests/machines",),
    ),
    Break(
        "scope set for the session",
        "portal/db.py",
        "set_config('app.facility_id', :facility, true)",
        "set_config('app.facility_id', :facility, false)",
        (DB,),
    ),
    Break(
        "policies without a check on writing",
        GUARDS,
        "' with check (facility_id = current_facility())',\n                           scoped",
        "' with check (true)',\n                           scoped",
        (DB,),
    ),
    Break(
        "gate skipped",
        "portal/verbs/gate.py",
        "if decision.code is None:",
        "if True:",
        ("tests/verbs/test_stays.py", "tests/verbs/test_gate.py"),
    ),
    Break(
        "the blocklist refuses nobody",
        "portal/gates/checkin.py",
        "if entry is None or (request.lodging and entry.statute is None):",
        "if entry is None or entry:",
        ("tests/policies/test_gate.py", "tests/verbs/test_gate.py"),
    ),
    Break(
        "lodging is refused without a ground of the law",
        "portal/gates/checkin.py",
        "(request.lodging and entry.statute is None)",
        "(False and entry.statute is None)",
        ("tests/policies/test_gate.py", "tests/verbs/test_gate.py"),
    ),
    Break(
        "a guest moves to where there is no room",
        "portal/gates/checkin.py",
        "MOVE_IN_HOUSE: tuple[Rule, ...] = (_plan, _room)",
        "MOVE_IN_HOUSE: tuple[Rule, ...] = (_plan,)",
        ("tests/policies/test_gate.py", "tests/verbs/test_gate.py"),
    ),
    Break(
        "an entrance that counts is not held",
        "portal/verbs/facts.py",
        "for no key update of e\n",
        "\n",
        ("tests/verbs/test_gate.py",),
    ),
    Break(
        "the tablet keeps its guest",
        "portal/web/kiosk/pages.py",
        'LEFT_BEHIND = (HELD, "lang", ',
        'LEFT_BEHIND = ("lang", ',
        ("tests/web/kiosk/test_kiosk.py",),
    ),
    Break(
        "a reservation's code alone shows the stay",
        "portal/verbs/kiosk.py",
        "if stay is None or not kiosk.proves(",
        "if stay is None or None is kiosk.proves(",
        ("tests/web/kiosk/test_kiosk.py",),
    ),
    Break(
        "a later change moves the end of a key that was over",
        "portal/policies/door_at.py",
        "and (over is None or change.at < over)",
        "",
        ("tests/policies/test_why_door.py",),
    ),
    Break(
        "stale page accepted",
        "portal/verbs/stays.py",
        "if stay.version != seen:",
        "if False:",
        ("tests/verbs/test_stays.py",),
    ),
    Break(
        "claim token ignored at completion",
        INBOX,
        'only_if={"claim_token": token},',
        "",
        ("tests/jobs/test_events.py",),
    ),
    Break(
        "a live claim is taken over",
        INBOX,
        "and (claimed_at is null or claimed_at < now() - :lease)",
        "and cast(:lease as interval) is not null",
        ("tests/jobs/test_events.py", "tests/web/test_hooks_stripe.py"),
    ),
    Break(
        "no retry of a serialization failure",
        EVENTS,
        "if not _transient(fault) or attempt == TRIES:",
        "if True:",
        ("tests/jobs/test_events.py",),
    ),
    Break(
        "an event of another mode is applied",
        "portal/jobs/payment_events.py",
        "event.livemode != live",
        "False",
        ("tests/jobs/test_events.py", "tests/web/test_hooks_stripe.py"),
    ),
    Break(
        "money that does not agree is confirmed",
        "portal/verbs/payment_answers.py",
        "if revived or not _agrees(payment, intent):",
        "if revived:",
        ("tests/verbs/test_payments.py",),
    ),
    Break(
        "surplus is kept",
        "portal/policies/payment_progress.py",
        "return min(amount, max(0, amount - balance_before))",
        "return 0",
        ("tests/verbs/test_payments.py", "tests/policies"),
    ),
    Break(
        "a refund is tried again under a new key",
        "portal/verbs/refunds.py",
        "key=str(refund.id),",
        "key=str(uuid4()),",
        ("tests/verbs/test_refunds.py",),
    ),
    Break(
        "the far side is not read before a second refund",
        "portal/verbs/refunds.py",
        "if _may_have_been_sent(refund):",
        "if False:",
        ("tests/verbs/test_refunds.py",),
    ),
    Break(
        "refunds on their way are not counted",
        "portal/verbs/refunds_owed.py",
        'COUNTED = ("asked", "unknown", "pending", "succeeded")',
        'COUNTED = ("succeeded",)',
        ("tests/verbs/test_refunds.py",),
    ),
    Break(
        "marked sent before the send",
        MESSAGES,
        "_transmit(house, row, letters.write(_facts(house, row)))",
        "letters.write(_facts(house, row))",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "a dead sender's mail is sent again",
        OUTBOX,
        "and (o.sending_at is null or o.channel = 'line')",
        "",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "consumer key forgotten",
        OUTBOX,
        "facts.still_true and not facts.already_heard",
        "facts.still_true",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "what is no longer true is said",
        OUTBOX,
        "facts.still_true and not facts.already_heard",
        "not facts.already_heard",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "dedupe key with a timestamp",
        OUTBOX,
        'dedupe_key = f"{event_type}:{fact}"',
        "dedupe_key = f\"{event_type}:{fact}:{__import__('time').time()}\"",
        ("tests/jobs/test_messages.py", "tests/verbs/test_payments.py"),
    ),
    Break(
        "no SKIP LOCKED at the outbox",
        CLAIMS,
        "order by d.priority, d.next_attempt_at\n        limit at_most\n"
        "        for update skip locked",
        "order by d.priority, d.next_attempt_at\n        limit at_most",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "a code is made without looking for it",
        "portal/jobs/locks.py",
        "code = desk.locks.find_code(command.device_id, command.code_name)\n    if code is None:",
        "code = None\n    if code is None:",
        ("tests/jobs/test_locks.py",),
    ),
    Break(
        "accepted is taken for set",
        "portal/policies/key_observation.py",
        'status == "set"',
        'status in ("set", "setting")',
        ("tests/jobs/test_locks.py", "tests/policies"),
    ),
    Break(
        "an accepted removal is taken for gone",
        "portal/policies/key_observation.py",
        'return "removed_from_lock" if status is None else None',
        'return "removed_from_lock"',
        ("tests/jobs/test_locks.py", "tests/policies"),
    ),
    Break(
        "a removal overtakes the setting before it",
        "migrations/sql/0006_lapsed_claims.sql",
        "and earlier.done_at is null and earlier.dead_at is null",
        "and false",
        ("tests/jobs/test_locks.py",),
    ),
    Break(
        "a ring before the commit",
        "portal/db.py",
        "        self.rings.add(kind)",
        "        doorbell.ring(kind)",
        ("tests/jobs/test_doorbell.py",),
    ),
    Break(
        "an edge may be called inside a transaction",
        "portal/fence.py",
        'if getattr(_open, "depth", 0):',
        "if False:",
        (DB, JOBS),
    ),
    Break(
        "an event is completed before it is applied",
        EVENTS,
        '    with transaction(None, isolation="REPEATABLE READ") as tx:\n'
        "        _apply_and_complete(house, tx, work)",
        "    with transaction(None) as tx:\n"
        '        inbox.complete(tx, work.event.id, work.token, PROVIDER, "applied")\n'
        '    with transaction(None, isolation="REPEATABLE READ") as tx:\n'
        "        _handle(house, tx, work)",
        ("tests/jobs/test_events.py",),
    ),
    Break(
        "a batch that could not commit is taken for applied",
        EVENTS,
        "        return False\n    return True",
        "        return True\n    return True",
        ("tests/jobs/test_events.py",),
    ),
    Break(
        "the house of one event is kept for the next",
        EVENTS,
        "                tx.leave()",
        "                pass",
        ("tests/jobs/test_events.py",),
    ),
    Break(
        "the lease is compared in the application's time",
        INBOX,
        "(claimed_at is null or claimed_at < now() - :lease)",
        '(claimed_at is null or claimed_at < \'""" + clock.now().isoformat() + """\'::timestamptz'
        " - :lease)",
        ("tests/endurance/test_clocks.py",),
    ),
    Break(
        "200 although nothing was committed",
        "portal/web/hooks.py",
        "    except (DataError, UnicodeError) as reason:\n        return _refuse(reason)",
        '    except Exception:\n        return _say(200, "received")',
        ("tests/web/test_hooks_stripe.py", "tests/chaos/test_database.py"),
    ),
    Break(
        "a claim without a ring is answered 200",
        "portal/web/hooks.py",
        '    if not _handed_on(source, event_id):\n        return _later("not now")',
        "    _handed_on(source, event_id)",
        ("tests/web/test_hooks_stripe.py",),
    ),
    Break(
        "what was sent is not remembered",
        OUTBOX,
        "    select facility_id, consumer_key from done\n    on conflict do nothing",
        "    select facility_id, consumer_key from done where false\n    on conflict do nothing",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "the folio is not locked before its payment",
        "portal/db.py",
        'settled = " and (select count(*) from first) >= 0" if first else ""',
        'settled = ""',
        ("tests/verbs/test_payments.py", "tests/verbs/test_refunds.py"),
    ),
    Break(
        "a form without its token is accepted",
        "portal/web/forms.py",
        "raise CSRFError(refusal.args[0]) from None",
        "pass",
        ("tests/surface",),
    ),
    Break(
        "a way to another site is followed",
        "portal/web/access.py",
        'or wanted.startswith(("//", "/\\\\"))',
        "",
        ("tests/web", "tests/surface"),
    ),
    Break(
        "what may have arrived is called withdrawn",
        "portal/jobs/messages.py",
        "    elif row.sending_at is not None:\n        outbox.lose(",
        "    elif row.sending_at is not None and row.still_true:\n        outbox.lose(",
        ("tests/jobs/test_messages.py",),
    ),
    Break(
        "a lock command is run whose claim has passed to another",
        "portal/jobs/locks.py",
        "_load(tx, command_id) if lock_commands.begin(tx, command_id, token) else None",
        "_load(tx, command_id)",
        ("tests/jobs/test_locks.py",),
    ),
    Break(
        "a lapsed claim of a lock command is no lost answer",
        "migrations/sql/0006_lapsed_claims.sql",
        "set unknown_at = coalesce(c.claimed_at, c.unknown_at),\n        claimed_at",
        "set claimed_at",
        ("tests/jobs/test_locks.py",),
    ),
    Break(
        "a door waits behind the mail",
        "portal/doorbell.py",
        '    ("locks", "keys"),\n    ("refunds", "payments", "memberships"),\n    ("outbox",),',
        '    ("outbox", "locks", "keys"),\n    ("refunds",),\n    ("payments", "memberships"),',
        ("tests/endurance/test_lanes.py",),
    ),
    Break(
        "a job is broken into wherever it is",
        "portal/doorbell.py",
        "NO_TIMEOUT = -1",
        "NO_TIMEOUT = 120",
        ("tests/jobs/test_doorbell.py",),
    ),
    Break(
        "an act at the billing that is settled is settled again",
        LEGS,
        'if leg.progress == "done":',
        'if leg.progress == "never":',
        CARD,
    ),
    Break(
        "a subscription is asked for again under another key",
        LEGS,
        'Rejected("the membership is gone")\n    key = str(leg.id)',
        'Rejected("the membership is gone")\n    key = str(clock.now())',
        CARD,
    ),
    Break(
        "what the billing has not done is taken for done",
        "portal/policies/billing_legs.py",
        "return over or word.ends_at is not None",
        "return True",
        CARD,
    ),
    Break(
        "a sweep ends what the billing says it does not have",
        LEGS,
        'leg.kind == "end_now" and leg.wish["reason"] == "force_cancel"',
        'leg.kind in ("end_now", "set_end")',
        CARD,
    ),
    Break(
        "a membership ends here while its billing goes on",
        "portal/verbs/membership_end.py",
        'case Ends(leg=str() as leg) if membership.billing == "card":',
        'case Ends(leg=str() as leg) if membership.billing == "invoice":',
        CARD,
    ),
    Break(
        "what is billed on after its end is left to it",
        "portal/verbs/subscription_answers.py",
        'if state == "ended" and not told.over:',
        'if state == "never":',
        CARD,
    ),
    Break(
        "an older word on a subscription is followed",
        "portal/policies/forward_only.py",
        'return "earlier" if heard < known - LATENCY else "undecided"',
        'return "later"',
        CARD,
    ),
    Break(
        "a wait for a reading is ended by another word",
        "portal/verbs/subscription_mirror.py",
        "else least(subscription_mirror.next_read_at, excluded.next_read_at) end",
        "else excluded.next_read_at end",
        CARD,
    ),
    Break(
        "what a membership's end owes is not written down",
        "portal/verbs/membership_moves.py",
        "    _owe_proofs(tx, membership, now)\n",
        "",
        ("tests/verbs/test_membership_end.py",),
    ),
    Break(
        "a stay after the end of its membership is kept",
        "portal/verbs/membership_moves.py",
        "    _cancel_stays(tx, actor, membership.id, ends_at)\n",
        "",
        ("tests/verbs/test_membership_end.py", "tests/verbs/test_benefits.py"),
    ),
    Break(
        "a membership that is paused gives",
        "portal/policies/membership_benefits.py",
        "Code.MEMBERSHIP_PAUSED if membership.paused else None",
        "None",
        ("tests/policies", "tests/verbs/test_benefits.py"),
    ),
    Break(
        "money after the end of a membership is kept",
        "portal/verbs/membership_money.py",
        "in_time = paid_at <= _ended_at(tx, membership)",
        "in_time = True",
        CARD,
    ),
    Break(
        "a ticket book that is not paid pays visits",
        "portal/verbs/ticket_books.py",
        "                  where l.stay_id = b.stay_id))\n            for no key update of b",
        "                  where l.stay_id = b.stay_id) or true)\n"
        "            for no key update of b",
        (TICKETS,),
    ),
    Break(
        "a ticket is taken and not counted",
        "portal/verbs/ticket_books.py",
        "set used = b.used + 1, worth = b.worth - was.share",
        "set used = b.used, worth = b.worth",
        (TICKETS,),
    ),
    Break(
        "a late cancellation mints a visit",
        "portal/verbs/stays.py",
        "if cancellation.visit_returns(terms, stay.starts_at, now):",
        "if terms is not None:",
        (TICKETS, "tests/verbs/test_quota.py"),
    ),
    Break(
        "a cancellation takes back what was sold beside the stay",
        "portal/ledger.py",
        "          and l.item = any(:items)\n",
        "",
        (TICKETS, "tests/verbs/test_books_at_every_step.py"),
    ),
    Break(
        "a visit is taken of a month that has none left",
        "portal/verbs/quota.py",
        "and month = :month and used < granted",
        "and month = :month",
        ("tests/verbs/test_quota.py",),
    ),
    Break(
        "a day's close seals what it has not added up",
        "portal/verbs/day_close.py",
        "journal.take(tx, close_id, batch.lines)",
        "journal.take(tx, close_id, journal.batch(tx, last, opening).lines)",
        ("tests/verbs/test_day_close.py",),
    ),
)
