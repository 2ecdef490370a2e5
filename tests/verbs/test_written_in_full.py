"""What verbs write, column by column: the record, the folio's line, the letter, the row itself.

Other tests ask what a verb decides. A timeline, a folio and a letter are read long after, and rely
on every column: who, by which verb, why, in whose house, under which request.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from portal import clock, doorbell, log, seal
from portal.db import Actor
from portal.edges.locks.port import LockDevice
from portal.edges.payments.port import Refund as ProviderRefund
from portal.edges.payments.port import RefundStatus
from portal.jobs.house import House
from portal.machines.refund import MACHINE as REFUND
from portal.machines.refund import State
from portal.machines.stay import MACHINE as STAY
from portal.models import Payment
from portal.money import Money
from portal.move import Moved, move
from portal.outcome import Applied, Code, Conflict, Noop, Refused, Standing
from portal.verbs import (
    attention,
    cash,
    doors,
    keys,
    payment_answers,
    refund_answers,
    refunds,
    refunds_owed,
    stay_changes,
    stays,
)
from portal.verbs.guests import NewGuest
from sandbox.seam.running import Running
from sandbox.stripe.testing import StandIn
from tests.cast import Booked, Cast
from tests.outside import Owner, deliver, pay
from tests.verbs.books import another_writes, answer, put_payment, put_refund
from tests.verbs.nearby import Nearby
from tests.verbs.test_payments import begun, opened, record
from tests.verbs.test_stays import HOUR, create, do, wanted

REQUEST = "the-one-request"


@pytest.fixture(autouse=True)
def one_request() -> Iterator[None]:
    with log.request(REQUEST):
        yield


@pytest.fixture
def now(cast: Cast) -> datetime:
    """Our clock stands still at this instant."""
    instant = clock.now().replace(microsecond=0)
    clock.set_source(lambda: instant)
    return instant


def by(actor: Actor) -> tuple[Any, ...]:
    return actor.kind, actor.id, actor.name, REQUEST


PROVIDER = Actor("provider", None, "card provider")
LOCK = Actor("provider", None, "lock controller")


def records(owner: Owner, subject: Any) -> list[tuple[Any, ...]]:
    """(verb, event, from, to, reason, kind, id and name of the actor, request) of a row."""
    return owner.rows(
        """
        select verb, event, from_state, to_state, reason, actor_kind, actor_id, actor_name,
               request_id
        from transitions where subject_id = %s order by id
        """,
        subject,
    )


def lines(owner: Owner, stay: UUID) -> list[tuple[Any, ...]]:
    """Of a folio, without the price that it begins with."""
    return owner.rows(
        """
        select kind, amount, currency, payment_id, refund_id, form_key, memo, actor_kind, actor_id,
               actor_name, request_id
        from ledger_lines where stay_id = %s order by id offset 1
        """,
        stay,
    )


def letters(owner: Owner, kind: str) -> list[tuple[Any, ...]]:
    return owner.rows(
        """
        select stay_id, dedupe_key, consumer_key, channel, recipient, locale, payload, priority,
               request_id
        from outbox where event_type = %s order by created_at
        """,
        kind,
    )


# Stays ------------------------------------------------------------------------------------------


HANAKO = NewGuest(
    name="髙橋 ﾊﾅｺ",
    kana="たかはし はなこ",
    email="hanako@guest.example",
    phone="+819012345678",
    phone_typed="０９０-1234-5678",
    locale="en",
    line_user_id="U-hanako",
)


def test_a_guest_is_kept_as_entered_and_found_by_any_spelling(cast: Cast, owner: Owner) -> None:
    create(cast, wanted(cast, guest=HANAKO))
    assert owner.row(
        """
        select facility_id, name, kana, search_key, email, phone, phone_digits, line_user_id,
               preferred_locale
        from guests
        """
    ) == (
        cast.tokyo.id,
        "髙橋 ﾊﾅｺ",
        "たかはし はなこ",
        "高橋ハナコ タカハシハナコ",
        "hanako@guest.example",
        "+819012345678",
        "09012345678",
        "U-hanako",
        "en",
    )


def test_a_booking_is_kept_as_it_was_entered(cast: Cast, owner: Owner) -> None:
    form = wanted(
        cast,
        plan_id=cast.tokyo.plans["night"],
        deposit_due=2000,
        source="web",
        note="arrives late",
    )
    said = create(cast, form)
    code, hashed, sealed, *kept = owner.row(
        """
        select s.code, s.token_hash, s.token_sealed, s.id, s.facility_id, s.guest_id = g.id,
               s.space_id, s.space_no = p.no, s.plan_id, s.source, s.starts_at, s.ends_at,
               s.currency, s.deposit_due, s.note, s.form_key, s.state, s.version
        from stays s, guests g, spaces p where p.id = s.space_id
        """
    )
    assert said == Applied(Code.STAY_CREATED, to="reserved", subject=kept[0])
    assert kept[1:] == [
        cast.tokyo.id,
        True,
        form.space_id,
        True,
        form.plan_id,
        "web",
        form.starts_at,
        form.ends_at,
        "JPY",
        2000,
        "arrives late",
        form.form_key,
        "reserved",
        1,
    ]
    assert len(code) == 8
    assert seal.token_hash(seal.unseal(sealed)) == hashed


def test_a_booking_is_recorded_and_charged(cast: Cast, owner: Owner, now: datetime) -> None:
    stay, house, who = cast.book().id, cast.tokyo.id, by(cast.sato.actor)
    assert records(owner, stay) == [("create", "created", None, "reserved", None, *who)]
    assert owner.row("select machine, facility_id, at from transitions") == ("stay", house, now)
    assert owner.row(
        "select facility_id, stay_id, kind, amount, currency, payment_id, refund_id, form_key,"
        " memo, actor_kind, actor_id, actor_name, request_id, at from ledger_lines"
    ) == (house, stay, "charge", 6000, "JPY", None, None, None, "", *who, now)


def test_the_letter_of_a_booking_goes_where_the_guest_reads(cast: Cast, owner: Owner) -> None:
    stay = cast.book(guest={**cast.emma, "line_user_id": "U-emma"}).id
    fact = f"stay_created:{stay}"
    assert letters(owner, "stay_created") == [
        (stay, fact, fact, "line", "U-emma", "en", {}, 2, REQUEST)
    ]
    assert owner.one("select facility_id from outbox") == cast.tokyo.id


def test_digits_come_from_the_number_where_nothing_was_typed(cast: Cast, owner: Owner) -> None:
    create(cast, wanted(cast, guest=NewGuest(name="A", phone="+447700900123")))
    create(cast, wanted(cast, guest=NewGuest(name="B"), space_id=cast.tokyo.spaces["A02"]))
    assert owner.rows("select phone_digits, kana from guests order by name") == [
        ("447700900123", ""),
        ("", ""),
    ]


def test_the_longest_stay_and_the_largest_price_are_taken(cast: Cast, owner: Owner) -> None:
    starts = clock.now()
    form = wanted(
        cast,
        starts_at=starts,
        ends_at=starts + timedelta(days=366),
        price=99_999_999,
        deposit_due=99_999_999,
    )
    assert isinstance(create(cast, form), Applied)


def test_an_admission_is_recorded_as_its_clerks(cast: Cast, owner: Owner) -> None:
    stay = cast.book(price=0)
    do(cast, stays.admit, stay.id, 1)
    assert records(owner, stay.id)[1:] == [
        ("admit", "admitted", "reserved", "admitted", None, *by(cast.sato.actor))
    ]


def test_each_verb_of_a_stay_leaves_its_own_record(cast: Cast, owner: Owner, now: datetime) -> None:
    who = by(cast.sato.actor)
    came = cast.book(price=0)
    do(cast, stays.admit, came.id, 1)
    do(cast, stays.depart, came.id, 2)
    assert records(owner, came.id)[1:] == [
        ("admit", "admitted", "reserved", "admitted", None, *who),
        ("depart", "departed", "admitted", "departed", None, *who),
    ]
    assert owner.row("select admitted_at, departed_at from stays") == (now, now)
    away = cast.book(price=0, space="A02")
    do(cast, stays.mark_no_show, away.id, 1)
    do(cast, stays.reinstate, away.id, 2)
    do(cast, stays.cancel, away.id, 3)
    assert records(owner, away.id)[1:] == [
        ("mark_no_show", "no_show", "reserved", "no_show", None, *who),
        ("reinstate", "reinstated", "no_show", "reserved", None, *who),
        ("cancel", "cancelled", "reserved", "cancelled", None, *who),
    ]
    assert owner.one("select cancelled_at from stays where id = %s", away.id) == now


def test_an_answer_names_what_came_of_the_stay(cast: Cast) -> None:
    stay = cast.book(price=0)
    assert do(cast, stays.mark_no_show, stay.id, 1) == Applied(
        Code.STAY_NO_SHOW, to="no_show", subject=stay.id
    )
    assert do(cast, stays.reinstate, stay.id, 2) == Applied(
        Code.STAY_REINSTATED, to="reserved", subject=stay.id
    )
    assert do(cast, stays.cancel, stay.id, 3) == Applied(
        Code.STAY_CANCELLED, to="cancelled", subject=stay.id
    )
    came = cast.book(price=0)
    do(cast, stays.admit, came.id, 1)
    assert do(cast, stays.depart, came.id, 2) == Applied(
        Code.STAY_DEPARTED, to="departed", subject=came.id
    )


def test_a_refusal_says_when_and_how_much(cast: Cast, now: datetime) -> None:
    stay = cast.book(starts_at=now + HOUR, ends_at=now + 2 * HOUR)
    assert do(cast, stays.mark_no_show, stay.id, 1) == Refused(
        Code.STAY_NOT_YET_LATE, {"starts_at": now + HOUR}
    )
    assert do(cast, stays.cancel, stay.id, 1, 6001) == Refused(
        Code.FEE_EXCEEDS_PRICE, {"amount": Money(6000, "JPY")}
    )
    clock.set_source(lambda: now + HOUR)
    assert isinstance(do(cast, stays.mark_no_show, stay.id, 1), Applied)
    clock.set_source(lambda: now + 2 * HOUR)
    assert do(cast, stays.reinstate, stay.id, 2) == Refused(
        Code.STAY_WINDOW_OVER, {"ended_at": now + 2 * HOUR}
    )


def test_a_conflict_tells_what_the_stay_is_now(cast: Cast, now: datetime) -> None:
    stay = cast.book(price=0)
    do(cast, stays.cancel, stay.id, 1)
    standing = Standing("stay", "cancelled", 2, now, cast.sato.name)
    assert do(cast, stays.admit, stay.id, 1) == Conflict(Code.STAY_STATE_CHANGED, standing)
    with cast.transaction(cast.tokyo.id) as tx:
        assert stays.standing(tx, STAY, uuid4()) == Standing("stay", "gone", 0)


def test_the_gates_refusal_is_kept_in_full(cast: Cast, owner: Owner, now: datetime) -> None:
    stay = cast.book(price=700)
    assert do(cast, stays.admit, stay.id, 1) == Refused(
        Code.BALANCE_DUE, {"amount": Money(700, "JPY")}
    )
    assert owner.row(
        "select facility_id, stay_id, code, rule, length(digest), actor_kind, actor_id, actor_name,"
        " request_id, at from gate_audits"
    ) == (cast.tokyo.id, stay.id, "BALANCE_DUE", "settled", 64, *by(cast.sato.actor), now)


def test_a_cancelled_stays_folio_and_letter(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    do(cast, stays.cancel, stay.id, 1, 1500)
    rest = ("JPY", None, None, None, "", *by(cast.sato.actor))
    assert lines(owner, stay.id) == [("charge_reversed", -6000, *rest), ("fee", 1500, *rest)]
    ((_, fact, consumer, *_, payload, priority, _request),) = letters(owner, "stay_cancelled")
    assert fact == consumer == f"stay_cancelled:{stay.id}"
    assert (payload, priority) == ({"fee": 1500, "currency": "JPY"}, 2)


# Changes within a stay --------------------------------------------------------------------------


def test_a_move_is_noted_and_its_key_replaced(cast: Cast, owner: Owner) -> None:
    stay = cast.book(price=0)
    do(cast, stays.admit, stay.id, 1)
    said = do(cast, stay_changes.move_to, stay.id, 2, cast.tokyo.spaces["A02"])
    assert said == Applied(Code.STAY_MOVED, to="admitted", subject=stay.id)
    who = by(cast.sato.actor)
    assert records(owner, stay.id)[-1] == (
        "move_to",
        "changed",
        "admitted",
        "admitted",
        "A01 → A02",
        *who,
    )
    old, new = owner.rows("select id, space_id from entry_keys order by created_at")
    assert (old[1], new[1]) == (cast.tokyo.spaces["A01"], cast.tokyo.spaces["A02"])
    assert records(owner, old[0])[-1] == (
        "revoke",
        "revoke_asked",
        "requested",
        "revoking",
        "moved",
        *who,
    )
    assert owner.row(
        "select s.space_id = p.id, s.space_no = p.no from stays s, spaces p where p.code = 'A02'"
    ) == (True, True)


def test_other_times_are_noted_priced_and_told(cast: Cast, owner: Owner, now: datetime) -> None:
    stay = cast.book(starts_at=now, ends_at=now + 10 * HOUR)
    said = do(cast, stay_changes.change_times, stay.id, 1, now, now + 12 * HOUR, 800)
    assert said == Applied(Code.STAY_TIMES_CHANGED, to="reserved", subject=stay.id)
    who = by(cast.sato.actor)
    was = f"{now.isoformat()}/{(now + 10 * HOUR).isoformat()}"
    to = f"{now.isoformat()}/{(now + 12 * HOUR).isoformat()}"
    assert records(owner, stay.id)[-1] == (
        "change_times",
        "changed",
        "reserved",
        "reserved",
        f"{was} → {to}",
        *who,
    )
    ((_, fact, *_, payload, _priority, _request),) = letters(owner, "stay_changed")
    assert (fact, payload) == (f"stay_changed:{stay.id}:2", {})
    do(cast, stay_changes.change_times, stay.id, 2, now, now + 11 * HOUR, -300)
    rest = ("JPY", None, None, None, "times changed", *who)
    assert lines(owner, stay.id) == [("charge", 800, *rest), ("charge_reversed", -300, *rest)]


def test_a_stay_of_a_year_for_nothing_is_possible(cast: Cast, now: datetime) -> None:
    stay = cast.book(starts_at=now, ends_at=now + HOUR)
    year = now + timedelta(days=366)
    change = stay_changes.change_times
    assert isinstance(do(cast, change, stay.id, 1, now, year, -6000), Applied)
    assert do(cast, change, stay.id, 2, now, year + timedelta(seconds=1), 0) == Refused(
        Code.STAY_TIMES_IMPOSSIBLE
    )
    assert isinstance(do(cast, change, stay.id, 2, now, year, 99_999_999), Applied)
    assert do(cast, change, stay.id, 3, now, year, 1) == Refused(Code.PRICE_BELOW_ZERO)


def test_a_guest_in_house_is_not_sent_away_by_a_change(cast: Cast, now: datetime) -> None:
    stay = cast.book(price=0, starts_at=now - HOUR, ends_at=now + HOUR)
    do(cast, stays.admit, stay.id, 1)
    change = stay_changes.change_times
    assert do(cast, change, stay.id, 2, now - HOUR, now, 0) == Refused(Code.STAY_TIMES_IMPOSSIBLE)


# Cash -------------------------------------------------------------------------------------------


def test_cash_is_booked_with_its_form(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    into, out = uuid4(), uuid4()
    assert do(cast, cash.take, stay.id, 6000, into) == Applied(
        Code.CASH_TAKEN, to="booked", subject=stay.id
    )
    assert do(cast, cash.take, stay.id, 1, uuid4()) == Noop(Code.NOTHING_DUE, subject=stay.id)
    do(cast, stays.cancel, stay.id, 1)
    assert do(cast, cash.hand_back, stay.id, 6001, out) == Refused(
        Code.CASH_EXCEEDS_OWED, {"amount": Money(6000, "JPY")}
    )
    assert do(cast, cash.hand_back, stay.id, 6000, out) == Applied(
        Code.CASH_RETURNED, to="booked", subject=stay.id
    )
    assert do(cast, cash.hand_back, stay.id, 6000, out) == Noop(
        Code.CASH_ALREADY_BOOKED, subject=stay.id
    )
    who = by(cast.sato.actor)
    assert lines(owner, stay.id) == [
        ("cash", -6000, "JPY", None, None, into, "", *who),
        ("charge_reversed", -6000, "JPY", None, None, None, "", *who),
        ("cash_returned", 6000, "JPY", None, None, out, "", *who),
    ]


# Keys -------------------------------------------------------------------------------------------


def test_a_key_is_ordered_for_the_door_and_the_time(
    cast: Cast, owner: Owner, now: datetime
) -> None:
    stay = cast.book(price=0, starts_at=now - HOUR, ends_at=now + HOUR)
    owner.run("update facilities set key_lead_minutes = 7, key_lag_minutes = 11")
    do(cast, stays.admit, stay.id, 1)
    key, name, sealed, mark, *kept = owner.row(
        """
        select k.id, k.code_name, k.pin_sealed, k.pin_mark, k.facility_id, k.stay_id, k.space_id,
               k.door_id = d.id, k.door_no = d.no, k.starts_at, k.ends_at, k.state
        from entry_keys k join spaces p on p.id = k.space_id join doors d on d.id = p.door_id
        """
    )
    assert kept == [
        cast.tokyo.id,
        stay.id,
        cast.tokyo.spaces["A01"],
        True,
        True,
        now - HOUR - timedelta(minutes=7),
        now + HOUR + timedelta(minutes=11),
        "requested",
    ]
    assert name == f"monban {key}"
    assert seal.mark(seal.unseal(sealed)) == mark


def test_an_order_is_recorded_and_put_before_the_lock_worker(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    assert records(owner, key) == [
        ("order", "created", None, "requested", None, *by(cast.sato.actor))
    ]
    assert owner.row(
        "select facility_id, kind, key_id, idempotency_key, request_id from lock_commands"
    ) == (cast.tokyo.id, "set", key, f"set:{key}", REQUEST)


def test_a_revoked_key_says_why(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    stay, who = owner.one("select id from stays"), by(cast.sato.actor)
    assert do(cast, keys.reissue, stay, 2).code is Code.KEY_ORDERED
    asked = ("revoke", "revoke_asked", "requested", "revoking")
    assert records(owner, key)[-1] == (*asked, "reissued", *who)
    do(cast, stays.depart, stay, 3)
    newest = owner.one("select id from entry_keys where id <> %s", key)
    assert records(owner, newest)[-1] == (*asked, "departed", *who)


def key_of(cast: Cast, owner: Owner) -> UUID:
    """Ordered for a guest who was just admitted."""
    stay = cast.book(price=0)
    do(cast, stays.admit, stay.id, 1)
    found: UUID = owner.one("select id from entry_keys where stay_id = %s", stay.id)
    return found


def observe(cast: Cast, key: UUID, **word: Any) -> Any:
    with cast.transaction(cast.tokyo.id) as tx:
        return keys.observe(tx, key, **word)


SEEN = "select state, observed, observed_at, provider_code_id, issued_at, revoked_at, failure"


def test_the_controllers_word_is_kept_at_each_step(cast: Cast, owner: Owner, now: datetime) -> None:
    key = key_of(cast, owner)
    look = f"{SEEN} from entry_keys"
    assert observe(cast, key, status="setting", code_id="c1") == Noop(
        Code.KEY_NOT_CONFIRMED, subject=key
    )
    assert owner.row(look) == ("requested", "setting", now, "c1", None, None, None)
    assert observe(cast, key, status="set", consumer_key="event:1") == Applied(
        Code.KEY_ISSUED, to="issued", subject=key
    )
    assert owner.row(look) == ("issued", "set", now, "c1", now, None, None)
    ((_, fact, consumer, _, _, _, payload, priority, _),) = letters(owner, "entry_key_issued")
    assert (fact, consumer) == (f"entry_key_issued:{key}", "event:1")
    assert (payload, priority) == ({"key_id": str(key)}, 0)
    assert observe(cast, key, status="unset", errors=("low_battery", "x")) == Applied(
        Code.KEY_MISSING, to="missing", subject=key
    )
    assert owner.row(look)[1] == "unset:low_battery:x"
    assert owner.row(look)[6] == "low_battery"
    clock.set_source(lambda: now + HOUR)
    observe(cast, key, status="set")
    assert owner.row(look)[4] == now
    assert len(letters(owner, "entry_key_issued")) == 1
    observe(cast, key, status=None)
    assert owner.row(look)[6] == "gone"
    with cast.transaction(cast.tokyo.id) as tx:
        stay = owner.one("select stay_id from entry_keys")
        assert keys.revoke_all(tx, cast.sato.actor, stay, reason="leaked") == 1
    assert observe(cast, key, status=None) == Applied(Code.KEY_REVOKED, to="revoked", subject=key)
    assert owner.row(look)[:6] == ("revoked", "gone", now + HOUR, "c1", now, now + HOUR)
    said = [(record[0], record[1], record[4], *record[5:]) for record in records(owner, key)]
    assert said[1] == ("observe", "set_on_lock", "set", *by(LOCK))
    assert said[2] == ("observe", "vanished_from_lock", "unset:low_battery:x", *by(LOCK))
    assert said[-1] == ("observe", "removed_from_lock", "gone", *by(LOCK))


def test_a_key_that_the_lock_refused_says_why(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    with cast.transaction(cast.tokyo.id) as tx:
        assert keys.refuse(tx, key, "device_offline") == Applied(
            Code.KEY_FAILED, to="failed", subject=key
        )
    assert owner.row(f"{SEEN} from entry_keys")[1::5] == (
        "unset:device_offline:code_invalid",
        "device_offline",
    )
    # Nobody knows a code of it, so there is none to remove, and no other to try.
    assert owner.rows("select kind from lock_commands") == [("set",)]


@pytest.mark.parametrize("errors", [("code_invalid",), ("duplicate_code_on_device",)])
def test_a_code_that_was_refused_is_told_to_nobody(
    cast: Cast, owner: Owner, errors: tuple[str, ...]
) -> None:
    observe(cast, key_of(cast, owner), status="unset", errors=errors)
    assert letters(owner, "entry_key_issued") == []


def test_a_refused_code_that_the_controller_keeps_is_removed(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    observe(cast, key, status="unset", errors=("code_invalid",), code_id="c1")
    assert owner.rows("select kind, key_id from lock_commands order by no") == [
        ("set", key),
        ("remove", key),
    ]
    assert owner.one("select count(*) from entry_keys") == 1


def test_what_no_key_answers_to_is_not_found(cast: Cast) -> None:
    assert observe(cast, uuid4(), status="set") == Refused(Code.NOT_FOUND)
    with cast.transaction(cast.tokyo.id) as tx:
        keys.say_changed(tx, uuid4())
        keys.insist(tx, uuid4())


def test_a_changed_end_is_told_once_for_each_end(cast: Cast, owner: Owner, now: datetime) -> None:
    key = key_of(cast, owner)
    with cast.transaction(cast.tokyo.id) as tx:
        keys.say_changed(tx, key)
    assert letters(owner, "entry_key_changed") == []
    observe(cast, key, status="set", code_id="c1")
    with cast.transaction(cast.tokyo.id) as tx:
        keys.say_changed(tx, key)
        keys.say_changed(tx, key)
    ((_, fact, consumer, _, _, _, payload, priority, _),) = letters(owner, "entry_key_changed")
    assert fact == consumer == f"entry_key_changed:{key}:2"
    assert (payload, priority) == ({"key_id": str(key)}, 0)


def test_a_removal_that_is_owed_is_ordered_again_and_no_other(
    cast: Cast, owner: Owner, now: datetime
) -> None:
    key = key_of(cast, owner)
    with cast.transaction(cast.tokyo.id) as tx:
        keys.insist(tx, key)
        keys.revoke_all(tx, cast.sato.actor, owner.one("select id from stays"), reason="leaked")
        keys.insist(tx, key)
    assert owner.rows("select kind from lock_commands order by no") == [("set",), ("remove",)]
    owner.run("update lock_commands set done_at = now()")
    with cast.transaction(cast.tokyo.id) as tx:
        keys.insist(tx, key)
    assert owner.rows("select kind, key_id, idempotency_key from lock_commands order by no")[
        2:
    ] == [("remove", key, f"remove:{key}:{now.isoformat()}")]


def test_a_compare_and_set_that_lost_says_none(cast: Cast, owner: Owner) -> None:
    stay = cast.book(price=0)
    with cast.transaction(cast.tokyo.id) as tx:
        told = {"event": "cancelled", "actor": cast.sato.actor, "verb": "cancel"}
        assert move(tx, STAY, stay.id, from_state="no_show", **told) is None
        assert move(tx, STAY, stay.id, from_state="reserved", seen=2, **told) is None
        kept = {"note": "", "source": "web"}
        assert move(tx, STAY, stay.id, from_state="reserved", only_if=kept, **told) is None
        kept["source"] = "desk"
        also = {"cancelled_at": clock.now(), "note": "by phone"}
        assert move(
            tx,
            STAY,
            stay.id,
            from_state="reserved",
            seen=1,
            only_if=kept,
            also=also,
            reason="asked",
            **told,
        ) == Moved("cancelled", 2)
    assert owner.row("select state, note, version from stays") == ("cancelled", "by phone", 2)
    assert records(owner, stay.id)[1:] == [
        ("cancel", "cancelled", "reserved", "cancelled", "asked", *by(cast.sato.actor))
    ]


def keys_of(owner: Owner) -> list[tuple[Any, ...]]:
    """(state, end, version) of every key, in their order."""
    return owner.rows("select state, ends_at, version from entry_keys order by created_at, id")


def test_a_key_of_an_early_guest_holds_from_now(cast: Cast, owner: Owner, now: datetime) -> None:
    stay = cast.book(price=0, starts_at=now + HOUR, ends_at=now + 5 * HOUR)
    owner.run("update facilities set early_minutes = 60, key_lead_minutes = 3")
    do(cast, stays.admit, stay.id, 1)
    assert owner.one("select starts_at from entry_keys") == now - timedelta(minutes=3)


def test_a_new_code_is_for_those_whose_time_is_not_over(
    cast: Cast, owner: Owner, now: datetime
) -> None:
    stay, other = cast.book(price=0, ends_at=now + HOUR), cast.book(price=0, space="A02")
    for one in (stay, other):
        do(cast, stays.admit, one.id, 1)
    standing = Standing("stay", "admitted", 2, now, cast.sato.name)
    assert do(cast, keys.reissue, stay.id, 1) == Conflict(Code.STALE_PAGE, standing)
    said = do(cast, keys.reissue, stay.id, 2)
    ordered = "select id from entry_keys where stay_id = %s and state = 'requested'"
    newest = owner.one(ordered, stay.id)
    assert said == Applied(Code.KEY_ORDERED, to="requested", subject=newest)
    assert owner.rows("select id = %s, version from stays order by created_at", stay.id) == [
        (True, 3),
        (False, 2),
    ]
    assert [state for state, *_ in keys_of(owner)] == ["revoking", "requested", "requested"]
    clock.set_source(lambda: now + HOUR)
    assert do(cast, keys.reissue, stay.id, 3) == Refused(
        Code.STAY_WINDOW_OVER, {"ended_at": now + HOUR}
    )


@pytest.mark.parametrize("issued", [True, False])
def test_the_guest_hears_of_a_new_end_once_with_the_key_or_without(
    cast: Cast, owner: Owner, now: datetime, issued: bool
) -> None:
    """Of a code that is on the lock the guest hears when the lock has agreed; of one that is not
    yet, with the code. So a letter about the stay is for the second alone."""
    other = cast.book(price=0, space="A02", starts_at=now, ends_at=now + 5 * HOUR)
    stay = cast.book(price=0, starts_at=now, ends_at=now + HOUR)
    owner.run("update facilities set key_lag_minutes = 11")
    for one in (other, stay):
        do(cast, stays.admit, one.id, 1)
    key = owner.one("select id from entry_keys where stay_id = %s", stay.id)
    if issued:
        observe(cast, key, status="set", code_id="c1")
    before = keys_of(owner)
    assert isinstance(
        do(cast, stay_changes.change_times, stay.id, 2, now, now + 2 * HOUR, 0), Applied
    )
    look = "select state, ends_at, version from entry_keys where id = %s"
    state, end, version = owner.row(look, key)
    assert (state, end) == ("issued" if issued else "requested", now + timedelta(minutes=131))
    assert owner.rows(
        "select kind, key_id, idempotency_key from lock_commands order by no offset 2"
    ) == [("update", key, f"update:{key}:{version}")]
    assert [row for row in before if row in keys_of(owner)] == [before[0]]
    assert len(letters(owner, "stay_changed")) == (0 if issued else 1)


def test_a_code_of_another_name_replaces_the_one_we_knew(cast: Cast, owner: Owner) -> None:
    key, look = key_of(cast, owner), "select provider_code_id from entry_keys"
    observe(cast, key, status="setting", code_id="c1")
    observe(cast, key, status="setting")
    assert owner.one(look) == "c1"
    observe(cast, key, status="set", code_id="c2")
    assert owner.one(look) == "c2"


def test_what_is_seen_of_one_key_is_written_to_that_one(cast: Cast, owner: Owner) -> None:
    first = key_of(cast, owner)
    stay = cast.book(price=0, space="A02")
    do(cast, stays.admit, stay.id, 1)
    observe(cast, first, status="setting", code_id="c1")
    look = "select id = %s, observed, provider_code_id from entry_keys order by created_at"
    assert owner.rows(look, first) == [(True, "setting", "c1"), (False, None, None)]


def test_of_two_who_hear_of_one_key_the_second_sees_what_the_first_wrote(
    cast: Cast, owner: Owner
) -> None:
    key = key_of(cast, owner)
    with another_writes(owner, "update entry_keys set state = 'issued', issued_at = now()"):
        said = observe(cast, key, status="set", code_id="c1")
    assert said == Noop(Code.KEY_NOT_CONFIRMED, subject=key)
    assert letters(owner, "entry_key_issued") == []


def test_a_key_that_vanished_without_a_reason_is_said_to_be_gone(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    observe(cast, key, status="set", code_id="c1")
    assert observe(cast, key, status="unset") == Noop(Code.KEY_NOT_CONFIRMED, subject=key)
    assert observe(cast, key, status=None) == Applied(Code.KEY_MISSING, to="missing", subject=key)
    assert owner.row(f"{SEEN} from entry_keys")[1::5] == ("gone", "gone")


def test_every_live_key_of_a_stay_and_no_other_is_revoked(cast: Cast, owner: Owner) -> None:
    first = key_of(cast, owner)
    stay = owner.one("select stay_id from entry_keys")
    other = cast.book(price=0, space="A02")
    do(cast, stays.admit, other.id, 1)
    for _ in range(2):
        do(cast, keys.reissue, stay, owner.one("select version from stays where id = %s", stay))
    newest = owner.one("select id from entry_keys where stay_id = %s and state = 'requested'", stay)
    observe(cast, newest, status="set", code_id="c1")
    observe(cast, newest, status=None)
    assert observe(cast, first, status=None).to == "revoked"
    with cast.transaction(cast.tokyo.id) as tx:
        assert keys.revoke_all(tx, cast.sato.actor, stay, reason="leaked") == 1
        assert keys.revoke_all(tx, cast.sato.actor, stay, reason="leaked") == 0
    assert records(owner, newest)[-1] == (
        "revoke",
        "revoke_asked",
        "missing",
        "revoking",
        "leaked",
        *by(cast.sato.actor),
    )
    assert owner.rows("select state from entry_keys where stay_id = %s", other.id) == [
        ("requested",)
    ]


def duplicates(cast: Cast, owner: Owner) -> int:
    """The device calls each code its own as long as another is ordered; how many it refused."""
    refused = 0
    while key := owner.one("select id from entry_keys where state = 'requested'"):
        observe(cast, key, status="unset", errors=("duplicate_code_on_device",))
        refused += 1
        assert refused < 20
    return refused


def test_duplicates_are_borne_three_times_and_then_wait_for_a_person(
    cast: Cast, owner: Owner
) -> None:
    first = key_of(cast, owner)
    assert duplicates(cast, owner) == 4
    second = owner.one("select id from entry_keys where id <> %s order by created_at", first)
    assert records(owner, second)[0] == (
        "order",
        "created",
        None,
        "requested",
        None,
        *by(Actor("system", None, "monban")),
    )
    other = cast.book(price=0, space="A02")
    do(cast, stays.admit, other.id, 1)
    assert duplicates(cast, owner) == 4


def test_nobody_who_left_gets_another_code(cast: Cast, owner: Owner) -> None:
    key = key_of(cast, owner)
    owner.run("set session_replication_role = replica")
    owner.run("update stays set state = 'departed', departed_at = now()")
    owner.run("set session_replication_role = origin")
    observe(cast, key, status="unset", errors=("duplicate_code_on_device",))
    assert owner.rows("select state from entry_keys") == [("failed",)]


@pytest.mark.parametrize(("taken", "found"), [(7, True), (8, False)])
def test_eight_codes_are_tried_before_it_is_called_a_fault(
    cast: Cast, owner: Owner, monkeypatch: pytest.MonkeyPatch, taken: int, found: bool
) -> None:
    """The generator gives the number of a code that is on the door already, so many times."""
    drawn = iter(["480217", *["480217"] * taken, "135790"])
    monkeypatch.setattr(seal, "new_pin", lambda: next(drawn))
    key_of(cast, owner)
    stay = owner.one("select id from stays")
    if found:
        assert isinstance(do(cast, keys.reissue, stay, 2), Applied)
        return
    with pytest.raises(RuntimeError, match="no free code"):
        do(cast, keys.reissue, stay, 2)
    assert [state for state, *_ in keys_of(owner)] == ["requested"]


def commands_of(owner: Owner) -> list[tuple[Any, ...]]:
    return owner.rows(
        "select attempts, dead_at is not null, unknown_at is not null, next_attempt_at <= now(),"
        " done_at is not null from lock_commands order by no"
    )


@pytest.mark.parametrize(
    ("stuck", "after"),
    [("dead_at = now()", (0, False, False)), ("unknown_at = now()", (9, False, True))],
)
def test_a_stuck_command_goes_to_work_at_once_and_no_other(
    cast: Cast, owner: Owner, stuck: str, after: tuple[Any, ...]
) -> None:
    """What was given up begins its count anew; what may have been done keeps it, and its doubt."""
    key_of(cast, owner)
    do(cast, stays.admit, cast.book(price=0, space="A02").id, 1)
    owner.run(
        f"update lock_commands set {stuck}, attempts = 9,"
        " next_attempt_at = now() + interval '1 hour'"
    )
    doorbell.connection().flushall()
    before = commands_of(owner)
    command = owner.one("select id from lock_commands order by no limit 1")
    assert do(cast, keys.ask_again, command) == Applied(
        Code.LOCK_ASKED_AGAIN, to="waiting", subject=command
    )
    assert commands_of(owner) == [(*after, True, False), before[1]]
    assert len(doorbell.queue("locks").jobs) == 1
    doorbell.connection().flushall()
    owner.run("update lock_commands set done_at = now(), dead_at = null")
    assert do(cast, keys.ask_again, command) == Noop(Code.LOCK_NOT_STUCK)
    assert do(cast, keys.ask_again, uuid4()) == Refused(Code.NOT_FOUND)
    assert len(doorbell.queue("locks").jobs) == 0


def test_a_record_is_of_its_house_its_machine_and_its_instant(
    cast: Cast, owner: Owner, now: datetime
) -> None:
    """Of a row that was made, moved and changed: each of the three writers."""
    stay = cast.book(price=0)
    do(cast, stay_changes.move_to, stay.id, 1, cast.tokyo.spaces["A02"])
    do(cast, stays.cancel, stay.id, 2)
    assert owner.rows(
        "select event, facility_id, machine, subject_id, at from transitions order by id"
    ) == [
        (event, cast.tokyo.id, "stay", stay.id, now)
        for event in ("created", "changed", "cancelled")
    ]


# Payments and refunds, with the provider --------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "source", "purpose", "amount"),
    [
        ("deposit", "desk", "reservation_deposit", 4000),
        ("balance", "desk", "reservation_balance", 9000),
        ("balance", "walk_in", "walk_in", 9000),
    ],
)
def test_the_provider_is_asked_for_what_the_row_says(
    cast: Cast, nearby: Nearby, owner: Owner, part: str, source: str, purpose: str, amount: int
) -> None:
    stay = cast.book(price=9000, deposit_due=4000, source=source)
    payment = begun(cast, nearby, stay, part)
    code, *kept, secret = owner.row(
        """
        select code, p.id, p.facility_id, purpose, subject_id, stay_id, attempt, amount, p.currency,
               p.state, p.version, idempotency_key, intent_id, livemode, decline_code, last_error,
               next_read_at - p.created_at = '2 min', client_secret_sealed
        from payments p join stays s on s.id = stay_id
        """
    )
    key = f"{purpose}:{stay.id}:1"
    assert kept == [
        payment,
        stay.facility_id,
        *(purpose, stay.id, stay.id, 1, amount, "JPY", "open", 1, key),
        *("pi_1", True, None, None, True),
    ]
    assert seal.unseal(secret) == "a secret"
    assert nearby.asked == [
        {
            "key": key,
            "amount": amount,
            "currency": "JPY",
            "metadata": {
                "payment_id": str(payment),
                "purpose": purpose,
                "subject": str(stay.id),
                "facility": str(stay.facility_id),
            },
            "description": f"Monban {code}",
        }
    ]


def test_an_attempt_is_recorded_as_its_openers(cast: Cast, nearby: Nearby, owner: Owner) -> None:
    payment = begun(cast, nearby, cast.book())
    assert records(owner, payment) == [
        ("open_payment", "created", None, "open", None, *by(cast.sato.actor))
    ]


def test_a_payment_moves_by_the_providers_word(
    cast: Cast, nearby: Nearby, owner: Owner, now: datetime
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    assert record(cast, stay, payment, nearby.paid("pi_1")) == Applied(
        Code.PAYMENT_RECORDED, to="succeeded"
    )
    assert owner.row(
        "select state, version, intent_id, livemode, decline_code, next_read_at, succeeded_at"
        " from payments"
    ) == ("succeeded", 2, "pi_1", True, None, None, now)
    assert records(owner, payment)[1:] == [
        ("record_intent", "provider_succeeded", "open", "succeeded", None, *by(PROVIDER))
    ]


@pytest.mark.parametrize(("part", "kind"), [("deposit", "deposit"), ("balance", "payment")])
def test_a_payment_is_a_line_of_the_folio(
    cast: Cast, nearby: Nearby, owner: Owner, part: str, kind: str
) -> None:
    stay = cast.book(deposit_due=6000)
    payment = begun(cast, nearby, stay, part)
    record(cast, stay, payment, nearby.paid("pi_1"))
    assert lines(owner, stay.id) == [(kind, -6000, "JPY", payment, None, None, "", *by(PROVIDER))]


@pytest.mark.parametrize("event_id", [None, "evt_1"])
def test_the_receipt_of_a_payment(
    cast: Cast, nearby: Nearby, owner: Owner, event_id: str | None
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    record(cast, stay, payment, nearby.paid("pi_1"), event_id)
    ((whose, fact, consumer, *_, payload, priority, _),) = letters(owner, "payment_received")
    assert (whose, fact) == (stay.id, f"payment_received:{payment}")
    assert consumer == ("evt_1:payment_received" if event_id else fact)
    assert (payload, priority) == ({"payment_id": str(payment)}, 1)


def test_of_two_cards_for_one_bill_the_second_goes_back(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    """Part of the deposit's bill was settled in cash meanwhile: 5000 of 6000 is over."""
    stay = cast.book(deposit_due=6000)
    payment = begun(cast, nearby, stay, "deposit")
    do(cast, cash.take, stay.id, 5000, uuid4())
    record(cast, stay, payment, nearby.paid("pi_1"))
    assert owner.rows("select payment_id, amount, reason, state from refunds") == [
        (payment, 5000, "surplus", "asked")
    ]
    assert owner.one("select state from payments") == "succeeded"
    assert len(letters(owner, "payment_received")) == 1


def test_a_payment_that_is_wholly_over_is_owed_and_not_thanked_for(
    cast: Cast, nearby: Nearby, owner: Owner
) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    do(cast, cash.take, stay.id, 6000, uuid4())
    record(cast, stay, payment, nearby.paid("pi_1"))
    assert owner.rows("select payment_id, amount, reason from refunds") == [
        (payment, 6000, "surplus")
    ]
    assert owner.one("select state from payments") == "refund_owed"
    assert letters(owner, "payment_received") == []


def test_a_single_yen_of_card_money_is_owed_back(cast: Cast, nearby: Nearby, owner: Owner) -> None:
    stay = cast.book()
    payment = begun(cast, nearby, stay)
    record(cast, stay, payment, nearby.paid("pi_1"))
    starts, ends = owner.row("select starts_at, ends_at from stays")
    do(cast, stay_changes.change_times, stay.id, 1, starts, ends, -1)
    do(cast, stays.cancel, stay.id, 2, 5998)
    assert (
        owner.rows("select payment_id, amount, reason from refunds")
        == [(payment, 1, "cancellation")] * 2
    )


@pytest.fixture
def card(cast: Cast, worker: House, stripe: StandIn, owner: Owner) -> Booked:
    """A stay of 10,000 yen, paid by card."""
    stay = cast.book(price=10_000)
    pay(stripe, opened(worker, cast, owner, stay))
    deliver(worker)
    return stay


def test_money_that_landed_is_booked_and_told(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, card: Booked
) -> None:
    payment = owner.one("select id from payments")
    assert records(owner, payment)[1][:8] == (
        "record_intent",
        "provider_succeeded",
        "open",
        "succeeded",
        None,
        *by(PROVIDER)[:3],
    )
    assert owner.row(
        "select next_read_at, succeeded_at is not null, livemode, decline_code from payments"
    ) == (None, True, False, None)
    ((kind, amount, currency, of, refund, form, memo, *who),) = lines(owner, card.id)
    assert (kind, amount, currency, of) == ("payment", -10_000, "JPY", payment)
    assert (refund, form, memo) == (None, None, "")
    assert who[:3] == list(by(PROVIDER)[:3])
    event = owner.one("select event_id from webhook_events where type = 'payment_intent.succeeded'")
    ((_, fact, consumer, _, _, _, payload, priority, _),) = letters(owner, "payment_received")
    assert (fact, consumer) == (f"payment_received:{payment}", f"{event}:payment_received")
    assert (payload, priority) == ({"payment_id": str(payment)}, 1)


def test_a_refund_is_written_sent_booked_and_told(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, card: Booked
) -> None:
    payment, form = owner.one("select id from payments"), uuid4()
    desk = worker.desk(card.facility_id)
    said = refunds.ask(desk, cast.sato.actor, payment, 2500, form, lowers_price=True)
    assert isinstance(said, Applied)
    refund = said.subject
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=refund)
    (there,) = stripe.get("objects")["refund"]
    assert there["metadata"] == {
        "refund_id": str(refund),
        "payment_id": str(payment),
        "facility": str(card.facility_id),
    }
    assert owner.row(
        """
        select facility_id, payment_id, stay_id, amount, currency, reason, form_key, lowers_price,
               provider_refund_id, failure, claimed_at, claim_token,
               next_attempt_at - created_at = '60 s'
        from refunds
        """
    ) == (
        card.facility_id,
        payment,
        card.id,
        2500,
        "JPY",
        "staff",
        form,
        True,
        there["id"],
        None,
        None,
        None,
        True,
    )
    assert records(owner, refund) == [
        ("refund", "created", None, "asked", None, *by(cast.sato.actor)),
        ("refund", "provider_succeeded", "asked", "succeeded", None, *by(PROVIDER)),
    ]
    assert lines(owner, card.id)[1:] == [
        ("refund", 2500, "JPY", None, refund, None, "", *by(PROVIDER)),
        ("charge_reversed", -2500, "JPY", None, None, None, "concession", *by(PROVIDER)),
    ]
    ((_, fact, *_, payload, priority, _),) = letters(owner, "refund_sent")
    assert (fact, payload) == (f"refund_sent:{refund}", {"amount": 2500, "currency": "JPY"})
    assert priority == 1
    failed = replace(desk.payments.retrieve_refund(there["id"]), status="failed")
    failed = replace(failed, failure_reason="lost_or_stolen_card")
    with cast.transaction(card.facility_id) as tx:
        later = refund_answers.record(tx, PROVIDER, refund, failed)
        assert later == Applied(Code.REFUND_FAILED, to="failed", subject=refund)
        again = refund_answers.record(tx, PROVIDER, refund, failed)
        assert again == Noop(Code.REFUND_RECORDED, subject=refund)
        nobodys = refund_answers.record(tx, PROVIDER, uuid4(), failed)
        assert nobodys == Refused(Code.NOT_FOUND)
    assert owner.one("select failure from refunds") == "lost_or_stolen_card"
    who = by(PROVIDER)
    assert lines(owner, card.id)[3:] == [
        ("refund_reversed", -2500, "JPY", None, refund, None, "", *who),
        ("charge", 2500, "JPY", None, None, None, "concession reversed", *who),
    ]
    ((_, fact, *_, payload, priority, _),) = letters(owner, "refund_failed")
    assert (fact, payload) == (f"refund_failed:{refund}", {"amount": 2500, "currency": "JPY"})
    assert priority == 2


def test_a_cancelled_stays_card_money_is_owed_by_its_reason(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, card: Booked
) -> None:
    do(cast, stays.cancel, card.id, 1, 1000)
    assert owner.rows("select amount, reason, state, form_key from refunds") == [
        (9000, "cancellation", "asked", None)
    ]
    assert owner.one("select state from payments") == "succeeded"
    refund = owner.one("select id from refunds")
    assert records(owner, refund) == [
        ("refund", "created", None, "asked", None, *by(cast.sato.actor))
    ]


def test_a_wholly_owed_payment_says_so_until_it_is_back(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, card: Booked
) -> None:
    do(cast, stays.cancel, card.id, 1)
    payment, refund = owner.row("select payment_id, id from refunds")
    who = by(cast.sato.actor)
    assert records(owner, payment)[-1] == (
        "refund",
        "refund_owed",
        "succeeded",
        "refund_owed",
        None,
        *who,
    )
    said = refunds.send(worker.desk(card.facility_id), cast.sato.actor, refund)
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=refund)
    assert records(owner, payment)[-1] == (
        "refund",
        "refunded_in_full",
        "refund_owed",
        "refunded",
        None,
        *by(PROVIDER),
    )


def test_a_repriced_stays_card_money_is_owed(
    cast: Cast, worker: House, stripe: StandIn, owner: Owner, card: Booked
) -> None:
    starts, ends = owner.row("select starts_at, ends_at from stays")
    do(cast, stay_changes.change_times, card.id, 1, starts, ends, -400)
    assert owner.rows("select amount, reason from refunds") == [(400, "cancellation")]


# Refunds, as they stand in the books -------------------------------------------------------------


def test_a_failed_refund_that_is_let_be_keeps_who_and_why(
    cast: Cast, owner: Owner, now: datetime
) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), "failed", failure="expired_card")
    said = do(cast, attention.let_be, refund)
    assert said == Applied(Code.EVENT_DISMISSED, to="closed", subject=refund)
    assert owner.rows(
        "select facility_id, source_kind, source_id, title, error, at, closed_at, closed_by,"
        " closed_how from dead_letters"
    ) == [
        (
            cast.tokyo.id,
            "refund",
            refund,
            "refund",
            "expired_card",
            now,
            now,
            cast.sato.name,
            "dismissed",
        )
    ]
    assert records(owner, refund) == [
        ("let_be", "changed", "failed", "failed", "", *by(cast.sato.actor))
    ]
    again = do(cast, attention.let_be, refund)
    assert again == Noop(Code.EVENT_ALREADY_HANDLED, subject=refund)
    assert do(cast, attention.let_be, uuid4()) == Refused(Code.NOT_FOUND)
    assert (len(records(owner, refund)), owner.one("select count(*) from dead_letters")) == (1, 1)


def test_a_refund_that_failed_without_a_word_is_let_be(cast: Cast, owner: Owner) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), "failed")
    assert isinstance(do(cast, attention.let_be, refund), Applied)
    assert owner.rows("select error from dead_letters") == [("",)]


@pytest.mark.parametrize("state", ["asked", "unknown", "pending", "succeeded"])
def test_a_refund_that_has_not_failed_waits_for_nobody(
    cast: Cast, owner: Owner, state: str
) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), state)
    said = do(cast, attention.let_be, refund)
    assert said == Noop(Code.EVENT_ALREADY_HANDLED, subject=refund)
    assert owner.one("select count(*) from dead_letters") == 0


def test_whoever_is_second_to_let_a_refund_be_waits_for_the_first(cast: Cast, owner: Owner) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), "failed")
    with another_writes(owner, "update refunds set state = 'succeeded' where id = %s", refund):
        said = do(cast, attention.let_be, refund)
    assert said == Noop(Code.EVENT_ALREADY_HANDLED, subject=refund)


BECOMES = {
    "asked": ("pending", "pending", "succeeded", "failed", "failed"),
    "unknown": ("pending", "pending", "succeeded", "failed", "failed"),
    "pending": (None, None, "succeeded", "failed", "failed"),
    "succeeded": (None, None, None, "failed", "failed"),
    "failed": (None, None, None, None, None),
}
"""By our state, and by the provider's word: pending, requires_action, succeeded, failed, canceled.
"""


def test_every_word_of_the_provider_has_its_meaning_in_every_state() -> None:
    heard = refund_answers._EVENTS
    assert {
        state: tuple(
            REFUND.target(state, heard[state][word]) if word in heard.get(state, ()) else None
            for word in get_args(RefundStatus)
        )
        for state in get_args(State)
    } == BECOMES


def test_only_a_failed_refund_gives_back_what_can_be_returned() -> None:
    assert {*refunds_owed.COUNTED, "failed"} == set(get_args(State))


def test_the_provider_goes_by_one_name_in_every_record() -> None:
    assert refund_answers.PROVIDER == payment_answers.PROVIDER == PROVIDER


@pytest.mark.parametrize("state", BECOMES)
def test_what_each_word_of_the_provider_makes_of_a_refund(
    cast: Cast, owner: Owner, state: str
) -> None:
    payment = put_payment(owner, cast.book())
    words = ("pending", "requires_action", "succeeded", "failed", "canceled")
    for word, to in zip(words, BECOMES[state], strict=True):
        refund = put_refund(owner, payment, state, claimed_at=clock.now(), claim_token=uuid4())
        said = do(cast, refund_answers.record, refund, answer(word, id=f"re_{word}"))
        row = owner.row(
            "select state, provider_refund_id, claimed_at, claim_token from refunds where id = %s",
            refund,
        )
        if to is None:
            assert said == Noop(Code.REFUND_RECORDED, subject=refund)
            assert (row[0], row[1], row[3] is None) == (state, None, False)
            assert records(owner, refund) == []
        else:
            code = Code.REFUND_FAILED if to == "failed" else Code.REFUND_SENT
            assert said == Applied(code, to=to, subject=refund)
            assert row == (to, f"re_{word}", None, None)
            ((verb, _, was, becomes, why, *who),) = records(owner, refund)
            assert (verb, was, becomes, why) == ("refund", state, to, None)
            assert tuple(who) == by(cast.sato.actor)


@pytest.mark.parametrize("state", ["asked", "unknown", "pending", "succeeded"])
def test_a_payment_no_longer_counts_as_returned_once_its_refund_has_failed(
    cast: Cast, owner: Owner, state: str
) -> None:
    payment = put_payment(owner, cast.book(), state="refund_owed")
    do(cast, refund_answers.record, put_refund(owner, payment, state), answer("failed"))
    assert records(owner, payment) == [
        ("refund", "refund_withdrawn", "refund_owed", "succeeded", None, *by(cast.sato.actor))
    ]


def test_a_concession_lowers_the_price_and_raises_it_again_when_it_fails(
    cast: Cast, owner: Owner
) -> None:
    stay = cast.book()
    refund = put_refund(owner, put_payment(owner, stay), "pending", lowers_price=True)
    do(cast, refund_answers.record, refund, answer())
    do(cast, refund_answers.record, refund, answer("failed"))
    who = by(cast.sato.actor)
    assert lines(owner, stay.id) == [
        ("refund", 1000, "JPY", None, refund, None, "", *who),
        ("charge_reversed", -1000, "JPY", None, None, None, "concession", *who),
        ("refund_reversed", -1000, "JPY", None, refund, None, "", *who),
        ("charge", 1000, "JPY", None, None, None, "concession reversed", *who),
    ]


@pytest.mark.parametrize("other", [{"amount": 1001}, {"currency": "USD"}])
def test_a_word_on_other_money_moves_nothing(
    cast: Cast, owner: Owner, other: dict[str, Any]
) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), "pending")
    said = do(cast, refund_answers.record, refund, answer(**other))
    assert said == Refused(Code.AMOUNT_MISMATCH, {"refund": str(refund)})
    assert owner.one("select state from refunds") == "pending"


@pytest.mark.parametrize("state", ["pending", "succeeded"])
def test_a_refund_that_the_provider_never_had_is_lost_and_taken_back(
    cast: Cast, owner: Owner, state: str
) -> None:
    stay = cast.book()
    payment = put_payment(owner, stay, amount=1000, state="refund_owed")
    refund = put_refund(owner, payment, state)
    said = do(cast, refund_answers.lost, refund, "not_there")
    assert said == Applied(Code.REFUND_FAILED, to="failed", subject=refund)
    assert owner.row("select state, failure from refunds") == ("failed", "not_there")
    who = by(cast.sato.actor)
    assert records(owner, refund) == [("refund", "provider_failed", state, "failed", None, *who)]
    assert records(owner, payment) == [
        ("refund", "refund_withdrawn", "refund_owed", "succeeded", None, *who)
    ]
    back = ("refund_reversed", -1000, "JPY", None, refund, None, "", *who)
    assert lines(owner, stay.id) == ([back] if state == "succeeded" else [])
    assert len(letters(owner, "refund_failed")) == (1 if state == "succeeded" else 0)


@pytest.mark.parametrize("state", ["asked", "unknown", "failed"])
def test_a_refund_that_was_never_accepted_is_not_lost(cast: Cast, owner: Owner, state: str) -> None:
    payment = put_payment(owner, cast.book(), state="refund_owed")
    refund = put_refund(owner, payment, state)
    said = do(cast, refund_answers.lost, refund, "not_there")
    assert said == Noop(Code.REFUND_RECORDED, subject=refund)
    assert do(cast, refund_answers.lost, uuid4(), "not_there") == Refused(Code.NOT_FOUND)
    assert owner.one("select state from refunds") == state
    assert owner.one("select state from payments") == "refund_owed"


def test_a_word_that_comes_while_a_refund_is_called_lost_is_not_undone(
    cast: Cast, owner: Owner
) -> None:
    refund = put_refund(owner, put_payment(owner, cast.book()), "pending")
    with another_writes(owner, "update refunds set state = 'failed' where id = %s", refund):
        said = do(cast, refund_answers.lost, refund, "not_there")
    assert said == Noop(Code.REFUND_RECORDED, subject=refund)


def hear(cast: Cast, payment: UUID, said: ProviderRefund) -> Any:
    with cast.transaction(cast.tokyo.id) as tx:
        return refund_answers.hear(tx, payment, said)


def test_a_refund_of_the_dashboard_is_a_row_of_its_own(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    payment = put_payment(owner, stay)
    said = hear(cast, payment, answer(amount=700))
    refund = owner.one("select id from refunds")
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=refund)
    assert owner.rows(
        "select facility_id, payment_id, stay_id, amount, currency, state, reason, form_key,"
        " lowers_price, provider_refund_id from refunds"
    ) == [
        (
            cast.tokyo.id,
            payment,
            stay.id,
            700,
            "JPY",
            "succeeded",
            "external",
            None,
            False,
            "re_1",
        )
    ]
    assert records(owner, refund) == [
        ("refund", "created", None, "asked", None, *by(PROVIDER)),
        ("refund", "provider_succeeded", "asked", "succeeded", None, *by(PROVIDER)),
    ]
    assert hear(cast, payment, answer(amount=700)) == Noop(Code.REFUND_RECORDED, subject=refund)
    assert owner.one("select count(*) from refunds") == 1


def test_a_refund_is_ours_by_its_name_or_by_the_providers_id(cast: Cast, owner: Owner) -> None:
    payment = put_payment(owner, cast.book())
    named = put_refund(owner, payment, "asked")
    known = put_refund(owner, payment, "pending", provider_refund_id="re_known")
    said = hear(cast, payment, answer(id="re_named", metadata={"refund_id": str(named)}))
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=named)
    said = hear(cast, payment, answer(id="re_known"))
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=known)
    assert {record[5:] for one in (named, known) for record in records(owner, one)} == {
        by(PROVIDER)
    }
    assert owner.one("select count(*) from refunds") == 2


def test_another_payments_refund_is_found_by_the_providers_id_alone(
    cast: Cast, owner: Owner
) -> None:
    stay = cast.book()
    first, second = put_payment(owner, stay), put_payment(owner, stay)
    refund = put_refund(owner, first, "pending", provider_refund_id="re_known")
    with cast.transaction(cast.tokyo.id) as tx:
        said = refund_answers.record_external(tx, second, answer(id="re_known"))
    assert said == Applied(Code.REFUND_SENT, to="succeeded", subject=refund)
    assert owner.one("select count(*) from refunds") == 1
    assert records(owner, refund)[0][5:] == by(PROVIDER)


def test_a_refund_of_no_payment_or_of_other_money_is_not_taken_in(cast: Cast, owner: Owner) -> None:
    payment = put_payment(owner, cast.book())
    assert hear(cast, uuid4(), answer()) == Refused(Code.NOT_FOUND)
    assert hear(cast, payment, answer(currency="USD")) == Refused(
        Code.AMOUNT_MISMATCH, {"payment": str(payment)}
    )
    assert owner.one("select count(*) from refunds") == 0


def test_the_last_part_closes_a_payment_and_its_failure_opens_it_again(
    cast: Cast, owner: Owner
) -> None:
    payment = put_payment(owner, cast.book(), amount=2000)
    put_refund(owner, payment, "succeeded")
    refund = put_refund(owner, payment, "pending")
    do(cast, refund_answers.record, refund, answer())
    who = by(cast.sato.actor)
    closed = [
        ("refund", "refund_owed", "succeeded", "refund_owed", None, *who),
        ("refund", "refunded_in_full", "refund_owed", "refunded", None, *who),
    ]
    assert records(owner, payment) == closed
    do(cast, refund_answers.record, refund, answer("failed"))
    assert records(owner, payment) == [
        *closed,
        ("refund", "refund_withdrawn", "refunded", "succeeded", None, *who),
    ]


def test_a_part_that_is_back_leaves_the_payment_as_it_is(cast: Cast, owner: Owner) -> None:
    payment = put_payment(owner, cast.book(), amount=2001)
    put_refund(owner, payment, "succeeded")
    refund = put_refund(owner, payment, "pending")
    do(cast, refund_answers.record, refund, answer())
    do(cast, refund_answers.record, refund, answer("failed"))
    assert records(owner, payment) == []


def owe(cast: Cast, payment: UUID, amount: int) -> tuple[Any, set[Any]]:
    """Its answer, and which bells it rang."""
    with cast.transaction(cast.tokyo.id) as tx:
        said = refunds_owed.owe(tx, cast.sato.actor, payment, amount, reason="surplus")
        return said, tx.rings


def test_what_the_house_owes_is_put_and_rung_for(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    payment = put_payment(owner, stay)
    _, rings = owe(cast, payment, 3000)
    assert rings == {"refunds"}
    refund = owner.one("select id from refunds")
    assert owner.row(
        "select facility_id, payment_id, stay_id, amount, currency, state, reason from refunds"
    ) == (cast.tokyo.id, payment, stay.id, 3000, "JPY", "asked", "surplus")
    who = by(cast.sato.actor)
    assert records(owner, refund) == [("refund", "created", None, "asked", None, *who)]
    assert records(owner, payment) == []


def test_all_of_a_payment_is_owed_at_once_or_not_at_all(cast: Cast, owner: Owner) -> None:
    payment = put_payment(owner, cast.book())
    _, rings = owe(cast, payment, 10_001)
    assert owner.rows("select amount from refunds") == [(10_000,)]
    who = by(cast.sato.actor)
    assert records(owner, payment) == [
        ("refund", "refund_owed", "succeeded", "refund_owed", None, *who)
    ]
    assert rings == {"refunds"}
    _, rings = owe(cast, payment, 1)
    assert (rings, owner.one("select count(*) from refunds")) == (set(), 1)


@pytest.mark.parametrize("state", ["asked", "unknown", "pending", "succeeded"])
def test_what_is_on_its_way_back_is_not_owed_again(cast: Cast, owner: Owner, state: str) -> None:
    payment = put_payment(owner, cast.book())
    put_refund(owner, payment, state, 9999)
    put_refund(owner, payment, "failed", 5000)
    owe(cast, payment, 3000)
    assert owner.rows("select amount from refunds where reason = 'surplus'") == [(1,)]
    assert owner.one("select state from payments") == "succeeded"


def test_money_is_owed_back_over_the_newest_payments_first(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    now = clock.now()
    old, new, open_, third = (
        put_payment(owner, stay, amount, succeeded_at=now - age * HOUR, **more)
        for amount, age, more in (
            (3000, 3, {}),
            (2000, 1, {}),
            (9000, 0, {"state": "refunded"}),
            (1000, 2, {}),
        )
    )
    put_refund(owner, new, "failed", 2000)
    put_refund(owner, third, "pending", 400, lowers_price=True)
    with cast.transaction(cast.tokyo.id) as tx:
        refunds_owed.owe_back(tx, cast.sato.actor, stay.id, 2601, reason="cancellation")
    assert owner.rows(
        "select payment_id, amount, reason from refunds where state = 'asked' order by amount desc"
    ) == [(new, 2000, "cancellation"), (third, 600, "cancellation"), (old, 1, "cancellation")]
    assert open_


def test_what_is_in_flight_is_not_owed_back_again(cast: Cast, owner: Owner) -> None:
    stay = cast.book()
    payment = put_payment(owner, stay)
    for state, amount in (("asked", 1), ("unknown", 20), ("pending", 300), ("succeeded", 4000)):
        put_refund(owner, payment, state, amount)
    put_refund(owner, payment, "asked", 500, lowers_price=True)
    with cast.transaction(cast.tokyo.id) as tx:
        assert refunds_owed.in_flight(tx, stay.id) == 321
        assert refunds_owed.in_flight(tx, uuid4()) == 0
        for amount in (300, 321, 1321):
            refunds_owed.owe_back(tx, cast.sato.actor, stay.id, amount, reason="cancellation")
    assert owner.rows("select amount from refunds where reason = 'cancellation'") == [(1000,)]


@pytest.mark.parametrize(
    ("state", "left"),
    [("succeeded", 5679), ("refund_owed", 5679), ("refunded", 0), ("canceled", 0), ("open", 0)],
)
def test_only_money_that_we_hold_can_be_returned(
    cast: Cast, owner: Owner, state: str, left: int
) -> None:
    held = state in ("succeeded", "refund_owed", "refunded")
    at = clock.now() if held else None
    payment = put_payment(owner, cast.book(), state=state, succeeded_at=at)
    for one, amount in (("asked", 1), ("unknown", 20), ("pending", 300), ("succeeded", 4000)):
        put_refund(owner, payment, one, amount)
    put_refund(owner, payment, "failed", 50_000)
    with cast.transaction(cast.tokyo.id) as tx:
        row = tx.get(Payment, payment)
        assert row is not None
        assert refunds_owed.refundable(tx, row) == left
        assert refunds_owed.returned(tx, payment) == 4000


# Doors ------------------------------------------------------------------------------------------


def test_a_lock_that_is_asked_is_remembered(
    cast: Cast, worker: House, seam: Running, owner: Owner, now: datetime
) -> None:
    key = key_of(cast, owner)
    owner.run("update entry_keys set provider_code_id = 'c1', next_poll_at = now() + '1 day'")
    door = cast.tokyo.doors["A01"]
    said = doors.ask(worker.desk(cast.tokyo.id), cast.sato.actor, door)
    assert said == Applied(Code.LOCK_ANSWERED, to="online", subject=door)
    online, battery, asked = owner.row(
        "select online, battery, asked_at from doors where id = %s", door
    )
    device = worker.providers.locks.device(
        owner.one("select device_id from doors where id = %s", door)
    )
    assert device is not None
    level = None if device.battery is None else round(device.battery * 100)
    assert (online, battery, asked) == (True, level, now)
    assert owner.one("select next_poll_at <= now() from entry_keys where id = %s", key)
    assert doors.ask(worker.desk(cast.tokyo.id), cast.sato.actor, uuid4()) == Refused(
        Code.NOT_FOUND
    )
    owner.run("update doors set device_id = 'nowhere' where id = %s", door)
    assert doors.ask(worker.desk(cast.tokyo.id), cast.sato.actor, door) == Refused(
        Code.LOCK_NOT_THERE
    )
    assert owner.row("select online, battery from doors where id = %s", door) == (False, None)


def test_a_controller_that_is_away_cannot_be_asked(cast: Cast, worker: House) -> None:
    door = cast.tokyo.doors["A01"]
    assert doors.ask(worker.desk(cast.tokyo.id), cast.sato.actor, door) == Refused(
        Code.LOCK_UNAVAILABLE
    )


@dataclass(frozen=True)
class Lock:
    """A controller that says this of every lock, and of no code anything."""

    online: bool
    battery: float | None

    def device(self, device_id: str) -> LockDevice | None:
        return LockDevice(device_id, "", online=self.online, battery=self.battery, max_codes=None)


@pytest.mark.parametrize(
    ("online", "battery", "kept"), [(True, 0.424, 42), (False, 1.0, 100), (False, None, None)]
)
def test_what_the_controller_says_of_a_lock_is_kept_of_that_lock(
    cast: Cast, worker: House, owner: Owner, online: bool, battery: float | None, kept: int | None
) -> None:
    key_of(cast, owner)
    do(cast, stays.admit, cast.book(price=0, space="A02").id, 1)
    owner.run("update entry_keys set provider_code_id = id::text, next_poll_at = now() + '1 day'")
    doorbell.connection().flushall()
    lock: Any = Lock(online, battery)
    desk = replace(worker.desk(cast.tokyo.id), locks=lock)
    door = cast.tokyo.doors["A01"]
    assert doors.ask(desk, cast.sato.actor, door) == Applied(
        Code.LOCK_ANSWERED, to="online" if online else "offline", subject=door
    )
    assert owner.rows("select online, battery from doors where asked_at is not null") == [
        (online, kept)
    ]
    assert owner.rows("select door_id from entry_keys where next_poll_at <= now()") == [(door,)]
    assert len(doorbell.queue("keys").jobs) == 1
