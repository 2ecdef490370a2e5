"""Differences: how each is written down, how it ends, and what its verb does at the far side."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import doorbell
from portal.edges.errors import Rejected
from portal.edges.locks.port import LockCode
from portal.edges.mail_archive.adapter import HttpMailArchive
from portal.edges.payments.adapter import StripePayments
from portal.jobs.house import House
from portal.models import Divergence
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.divergences import Found, OurKey
from portal.verbs import (
    divergences,
    door_differences,
    keys,
    message_differences,
    money_differences,
)
from portal.verbs.divergences import Look, Noted
from portal.verbs.healing import heal
from sandbox.seam.running import Running, eventually
from sandbox.stripe.testing import StandIn, client
from tests.cast import Booked, Cast
from tests.outside import STRIPE_KEY, Owner, codes_on_locks
from tests.verbs.books import put_payment, put_refund, while_another_writes
from tests.verbs.test_stays import HOUR, admitted, do

KINDS = (
    "payment_not_here",
    "payment_not_there",
    "payment_differs",
    "refund_not_here",
    "refund_not_there",
    "refund_differs",
    "message_not_there",
    "message_not_here",
    "code_stray",
    "code_missing",
    "code_differs",
    "code_pin_differs",
)


def put(cast: Cast, owner: Owner, kind: str, subject: Any = None, **of: Any) -> UUID:
    """An open difference of the Tokyo house."""
    values = {"facility_id": cast.tokyo.id, "kind": kind, "subject": str(subject or uuid4()), **of}
    places = ", ".join(["%s"] * len(values))
    made: UUID = owner.one(
        f"insert into divergences ({', '.join(values)}) values ({places}) returning id",
        *values.values(),
    )
    return made


def ended(owner: Owner, row: UUID) -> tuple[Any, ...]:
    found: tuple[Any, ...] = owner.row(
        "select healed_at is not null, healed_by, let_be from divergences where id = %s", row
    )
    return found


OPEN = (False, None, False)
AGREED = (True, "agreement", False)


def row_of(cast: Cast, row: UUID) -> Divergence:
    with cast.transaction(cast.tokyo.id) as tx:
        found = tx.get(Divergence, row)
    assert found is not None
    return found


def remember(cast: Cast, *found: Found, **look: Any) -> Noted:
    kinds = look.pop("kinds", [one.kind for one in found])
    with cast.transaction(cast.tokyo.id) as tx:
        return divergences.remember(tx, Look(cast.tokyo.id, kinds, found, **look))


def resolve(cast: Cast, worker: House, row: UUID) -> Outcome:
    return divergences.resolve(worker.desk(cast.tokyo.id), cast.sato.actor, row)


# Written down -----------------------------------------------------------------------------------


def test_a_difference_is_written_with_all_that_it_is_about(cast: Cast, owner: Owner) -> None:
    stay = admitted(cast, price=0)
    payment = put_payment(owner, stay)
    key, door = owner.row("select id, door_id from entry_keys")
    message = owner.one("select id from outbox limit 1")
    about, house, still_open = (payment, key, door), cast.tokyo.id, (None, None, False)
    found = Found("refund_differs", "r-1", "pending 5 JPY", "failed 5 JPY", *about)
    other = Found("message_not_here", "m-1", "dead", "taken", message_id=message)
    assert remember(cast, found, other) == Noted(["refund_differs", "message_not_here"], 0)
    assert owner.rows(
        """
        select facility_id, kind, subject, ours, theirs, payment_id, key_id, door_id, message_id,
               healed_at, healed_by, let_be
        from divergences order by kind desc
        """
    ) == [
        (
            house,
            "refund_differs",
            "r-1",
            "pending 5 JPY",
            "failed 5 JPY",
            *about,
            None,
            *still_open,
        ),
        (house, "message_not_here", "m-1", "dead", "taken", None, None, None, message, *still_open),
    ]


def test_what_is_seen_again_is_touched_and_is_not_new(cast: Cast, owner: Owner) -> None:
    found = Found("payment_differs", "p-1", "open 5 JPY", "succeeded 5 JPY")
    remember(cast, found)
    first, last = owner.row("select first_seen, last_seen from divergences")
    assert remember(cast, found, subjects=["p-1"]) == Noted([], 0)
    ((same, later, healed),) = owner.rows(
        "select first_seen, last_seen, healed_at from divergences"
    )
    assert (same, later > last, healed) == (first, True, None)


def test_a_look_heals_what_it_covers_and_no_longer_sees(cast: Cast, owner: Owner) -> None:
    door, next_door = cast.tokyo.doors["A01"], cast.tokyo.doors["A02"]
    seen = Found("code_stray", "seen", "", "set", door_id=door)
    rows = {
        name: put(cast, owner, kind, name, door_id=at)
        for name, kind, at in (
            ("seen", "code_stray", door),
            ("by subject", "code_stray", None),
            ("by door", "code_missing", door),
            ("of another door", "code_missing", next_door),
            ("of another subject", "code_stray", None),
            ("of another kind", "code_differs", door),
        )
    }
    told = remember(
        cast,
        seen,
        kinds=("code_stray", "code_missing"),
        subjects=["by subject", "of another kind"],
        door_id=door,
    )
    assert told == Noted([], 2)
    assert {name for name, row in rows.items() if ended(owner, row) == AGREED} == {
        "by subject",
        "by door",
    }
    assert [ended(owner, row) for row in rows.values()].count(OPEN) == 4
    assert remember(cast, kinds=("code_stray",), subjects=["by subject"]) == Noted([], 0)


def test_what_was_let_be_comes_back_only_when_it_reads_otherwise(cast: Cast, owner: Owner) -> None:
    found = Found("payment_differs", "p-1", "open 5 JPY", "succeeded 5 JPY")
    remember(cast, found)
    row = owner.one("select id from divergences")
    said = do(cast, divergences.let_be, row)
    assert said == Applied(Code.EVENT_DISMISSED, to="closed", subject=row)
    assert ended(owner, row) == (True, cast.sato.name, True)
    assert remember(cast, found) == Noted([], 0)
    for otherwise in (
        Found("refund_differs", "p-1", "open 5 JPY", "succeeded 5 JPY"),
        Found("payment_differs", "p-2", "open 5 JPY", "succeeded 5 JPY"),
        Found("payment_differs", "p-1", "open 6 JPY", "succeeded 5 JPY"),
    ):
        assert remember(cast, otherwise) == Noted([otherwise.kind], 0)
    owner.run("update divergences set healed_at = now(), healed_by = 'x' where healed_at is null")
    assert remember(cast, Found("payment_differs", "p-1", "open 5 JPY", "canceled 5 JPY")).new


def test_what_healed_by_itself_is_new_when_it_comes_again(cast: Cast, owner: Owner) -> None:
    found = Found("payment_differs", "p-1", "open 5 JPY", "succeeded 5 JPY")
    remember(cast, found)
    assert remember(cast, kinds=["payment_differs"], subjects=["p-1"]) == Noted([], 1)
    assert remember(cast, found) == Noted(["payment_differs"], 0)
    assert owner.one("select count(*) from divergences") == 2


# Ended ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_may_let_money_be_and_never_a_code(cast: Cast, owner: Owner, kind: str) -> None:
    row = put(cast, owner, kind)
    said = do(cast, divergences.let_be, row)
    if kind.startswith("code") or kind == "message_not_here":
        assert said == Refused(Code.NOT_PERMITTED)
        assert ended(owner, row) == OPEN
    else:
        assert said == Applied(Code.EVENT_DISMISSED, to="closed", subject=row)
        assert ended(owner, row) == (True, cast.sato.name, True)
        assert do(cast, divergences.let_be, row) == Noop(Code.EVENT_ALREADY_HANDLED)


def test_what_ended_stays_as_it_ended(cast: Cast, owner: Owner) -> None:
    row = put(cast, owner, "payment_differs")
    with cast.transaction(cast.tokyo.id) as tx:
        heal(tx, row, "first")
        heal(tx, row, "second", let_be=True)
    assert ended(owner, row) == (True, "first", False)


def test_whoever_lets_be_what_is_healing_waits_for_the_look(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    row = put(cast, owner, "payment_differs")
    who = cast.sato.actor

    def let_be() -> Any:
        with cast.transaction(cast.tokyo.id) as tx:
            return divergences.let_be(tx, who, row)

    look = "update divergences set healed_at = now(), healed_by = 'look' where id = %s", row
    assert while_another_writes(app, owner, look, let_be) == Noop(Code.EVENT_ALREADY_HANDLED)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_verb_and_one_that_finds_nothing_leaves_it_open(
    cast: Cast, owner: Owner, worker: House, kind: str
) -> None:
    row = put(cast, owner, kind)
    nobody = {
        "payment_not_here": Code.NOT_PERMITTED,
        "payment_differs": Code.NOT_PERMITTED,
        "code_stray": Code.LOCK_UNAVAILABLE,
    }
    assert resolve(cast, worker, row) == Refused(nobody.get(kind, Code.NOT_FOUND))
    assert ended(owner, row) == OPEN


def test_what_is_healed_or_not_there_is_not_resolved(
    cast: Cast, owner: Owner, worker: House
) -> None:
    row = put(cast, owner, "payment_not_here", healed_at="now", healed_by="agreement")
    assert resolve(cast, worker, row) == Noop(Code.EVENT_ALREADY_HANDLED)
    assert resolve(cast, worker, uuid4()) == Refused(Code.NOT_FOUND)
    assert do(cast, divergences.let_be, uuid4()) == Refused(Code.NOT_FOUND)


def test_a_far_side_that_is_away_is_named(cast: Cast, owner: Owner, worker: House) -> None:
    stay = cast.book(price=0)
    payment = put_payment(owner, stay)
    message = owner.one("select id from outbox")
    away = {
        put(cast, owner, "payment_not_there", payment_id=payment): Code.BILLING_UNAVAILABLE,
        put(cast, owner, "refund_not_here", payment_id=payment): Code.BILLING_UNAVAILABLE,
        put(cast, owner, "code_stray"): Code.LOCK_UNAVAILABLE,
        put(cast, owner, "message_not_here", message_id=message): Code.CHANNEL_UNAVAILABLE,
    }
    for row, code in away.items():
        assert resolve(cast, worker, row) == Refused(code)
        assert ended(owner, row) == OPEN


# Doors ------------------------------------------------------------------------------------------

DEVICE, NEXT_DEVICE = "haneda-capsule-a01", "haneda-capsule-a02"
DAY = timedelta(days=1)


def code_on_lock(
    worker: House, name: str, device: str = DEVICE, starts: timedelta = -DAY
) -> LockCode:
    """Set on the lock, or waiting there for its time."""
    now = datetime.now(UTC)
    made = worker.providers.locks.create_code(
        device_id=device, name=name, pin="907531", starts_at=now + starts, ends_at=now + 2 * DAY
    )
    wanted = "unset" if starts > timedelta() else "set"
    assert eventually(lambda: status_of(worker, made) == wanted, 10)
    return made


def status_of(worker: House, code: LockCode) -> str | None:
    now = worker.providers.locks.get_code(code.id)
    return now.status if now else None


def key_at(cast: Cast, owner: Owner, state: str = "issued", code: str | None = None) -> UUID:
    """The key of a guest in house, on A01, as its verbs would have left it."""
    stay = admitted(cast, price=0)
    key: UUID = owner.one("select id from entry_keys where stay_id = %s", stay.id)
    owner.run("set session_replication_role = replica")
    owner.run(
        "update entry_keys set state = %s, provider_code_id = %s,"
        " issued_at = case when %s in ('issued', 'missing') then now() end,"
        " revoked_at = case when %s = 'revoked' then now() end where id = %s",
        *(state, code, state, state, key),
    )
    owner.run("set session_replication_role = origin")
    owner.run("update lock_commands set done_at = now()")
    return key


def name_of(owner: Owner, key: UUID) -> str:
    found: str = owner.one("select code_name from entry_keys where id = %s", key)
    return found


def by_its_verb(cast: Cast, worker: House, verb: Any, row: UUID) -> Any:
    """The answer of the verb alone: nothing around it heals the row."""
    return verb(worker.desk(cast.tokyo.id), cast.sato.actor, row_of(cast, row))


REMOVING = Applied(Code.KEY_REVOKE_ASKED, to="removing")


def remove(cast: Cast, owner: Owner, worker: House, code: str, door: Any = None) -> Any:
    row = put(cast, owner, "code_stray", code, door_id=door or cast.tokyo.doors["A01"])
    return by_its_verb(cast, worker, door_differences.remove_stray, row)


def test_a_stray_code_of_nobody_is_removed(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    code = code_on_lock(worker, f"monban {uuid4()}")
    assert remove(cast, owner, worker, code.id) == REMOVING
    assert eventually(lambda: codes_on_locks(seam) == [], 10)
    assert owner.one("select count(*) from transitions where verb = 'remove_stray'") == 0


@pytest.mark.parametrize("state", ["revoked", "failed", "issued", "requested", "missing"])
def test_a_keys_stray_code_is_removed_and_its_record_says_so(
    cast: Cast, owner: Owner, worker: House, seam: Running, state: str
) -> None:
    key = key_at(cast, owner, state, code="another code")
    code = code_on_lock(worker, name_of(owner, key))
    assert remove(cast, owner, worker, code.id) == REMOVING
    assert eventually(lambda: codes_on_locks(seam) == [], 10)
    assert owner.rows(
        "select machine, subject_id, event, from_state, to_state, reason, actor_kind, actor_id,"
        " actor_name from transitions where verb = 'remove_stray'"
    ) == [
        ("entry_key", key, "changed", state, state, code.id, "staff", cast.sato.id, cast.sato.name)
    ]


def test_a_code_that_is_gone_or_going_is_not_removed_again(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    gone = Applied(Code.KEY_REVOKE_ASKED, to="gone")
    assert remove(cast, owner, worker, "never was") == gone
    code = code_on_lock(worker, f"monban {uuid4()}")
    seam.control("hold", {"stage": "removing"})
    worker.providers.locks.delete_code(code.id, device_id=DEVICE)
    assert remove(cast, owner, worker, code.id) == gone


@pytest.mark.parametrize("why", ["not ours by name", "another door's", "no door of this house"])
def test_a_code_that_is_not_of_this_door_and_ours_by_name_is_left_alone(
    cast: Cast, owner: Owner, worker: House, seam: Running, why: str
) -> None:
    name = "Housekeeping" if why == "not ours by name" else f"monban {uuid4()}"
    code = code_on_lock(worker, name, NEXT_DEVICE if why == "another door's" else DEVICE)
    row = put(cast, owner, "code_stray", code.id)
    if why != "no door of this house":
        door = cast.tokyo.doors["A01"]
        owner.run("update divergences set door_id = %s where id = %s", door, row)
    said = by_its_verb(cast, worker, door_differences.remove_stray, row)
    assert said == Refused(Code.NOT_FOUND)
    assert status_of(worker, code) == "set"
    assert ended(owner, row) == OPEN


def test_a_code_of_another_houses_key_is_left_alone(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    key = key_at(cast, owner)
    code = code_on_lock(worker, name_of(owner, key), "umeda-sauna-s01")
    row = put(cast, owner, "code_stray", code.id, facility_id=cast.osaka.id)
    owner.run("update divergences set door_id = %s", cast.osaka.doors["S01"])
    desk = worker.desk(cast.osaka.id)
    with cast.transaction(cast.osaka.id) as tx:
        found = tx.get(Divergence, row)
    assert found is not None
    said = door_differences.remove_stray(desk, cast.sato.actor, found)
    assert said == Refused(Code.NOT_FOUND)
    assert status_of(worker, code) == "set"


def test_a_code_that_a_living_key_speaks_for_stays(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    key = key_at(cast, owner)
    code = code_on_lock(worker, name_of(owner, key))
    owner.run("update entry_keys set provider_code_id = %s", code.id)
    said = remove(cast, owner, worker, code.id)
    assert said == Noop(Code.KEY_ALREADY_ISSUED)
    assert status_of(worker, code) == "set"
    assert ended(owner, owner.one("select id from divergences")) == AGREED


def ask(cast: Cast, owner: Owner, worker: House, key: UUID) -> Any:
    row = put(cast, owner, "code_missing", key, key_id=key, door_id=cast.tokyo.doors["A01"])
    return by_its_verb(cast, worker, door_differences.ask_lock, row)


def heard(owner: Owner) -> tuple[Any, ...]:
    """What the key knows of the lock, and how the one difference stands."""
    (row,) = owner.rows("select id from divergences")
    return (*owner.row("select state, observed from entry_keys"), ended(owner, row[0]))


@pytest.mark.parametrize("named", [True, False])
def test_a_key_whose_code_is_on_the_lock_after_all_stands(
    cast: Cast, owner: Owner, worker: House, seam: Running, named: bool
) -> None:
    """It is found by the controller's id, or by its name where we were never told one."""
    key = key_at(cast, owner)
    code = code_on_lock(worker, name_of(owner, key) if named else "renamed")
    if not named:
        owner.run("update entry_keys set provider_code_id = %s", code.id)
    assert ask(cast, owner, worker, key) == Noop(Code.KEY_ALREADY_ISSUED, subject=key)
    assert heard(owner) == ("issued", "set", AGREED)


@pytest.mark.parametrize("code", [None, "never was"])
def test_a_key_without_a_code_on_the_lock_is_missing(
    cast: Cast, owner: Owner, worker: House, seam: Running, code: str | None
) -> None:
    key = key_at(cast, owner, code=code)
    code_on_lock(worker, name_of(owner, key), NEXT_DEVICE)
    assert ask(cast, owner, worker, key) == Applied(Code.KEY_MISSING, to="missing", subject=key)
    assert heard(owner) == ("missing", "gone", OPEN)


def test_a_code_that_the_lock_lost_is_missing_with_its_error(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    key = key_at(cast, owner)
    code = code_on_lock(worker, name_of(owner, key))
    seam.control(f"codes/{code.id}/remove", {"gone": False})
    assert ask(cast, owner, worker, key) == Applied(Code.KEY_MISSING, to="missing", subject=key)
    (error,) = worker.providers.locks.list_codes(DEVICE)[0].errors
    assert heard(owner) == ("missing", f"unset:{error}", OPEN)


def test_a_code_that_waits_for_its_time_stands(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    seam.control("settings", {"load_ahead_seconds": 60})
    key = key_at(cast, owner)
    code_on_lock(worker, name_of(owner, key), starts=DAY)
    assert ask(cast, owner, worker, key) == Noop(Code.KEY_ALREADY_ISSUED, subject=key)
    assert heard(owner) == ("issued", "unset", AGREED)


def test_a_key_called_missing_whose_code_is_back_is_issued(
    cast: Cast, owner: Owner, worker: House, seam: Running
) -> None:
    key = key_at(cast, owner, "missing")
    code_on_lock(worker, name_of(owner, key))
    assert ask(cast, owner, worker, key) == Applied(Code.KEY_ISSUED, to="issued", subject=key)
    assert heard(owner) == ("issued", "set", AGREED)


def test_a_difference_without_its_key_or_door_asks_no_lock(
    cast: Cast, owner: Owner, worker: House
) -> None:
    key = key_at(cast, owner)
    for of in ({"key_id": key}, {"door_id": cast.tokyo.doors["A01"]}):
        row = put(cast, owner, "code_missing", **of)
        said = by_its_verb(cast, worker, door_differences.ask_lock, row)
        assert said == Refused(Code.NOT_FOUND)


@pytest.mark.parametrize("verb", [door_differences.order_other_digits, door_differences.set_time])
def test_a_key_that_is_issued_no_longer_needs_no_verb(
    cast: Cast, owner: Owner, worker: House, verb: Any
) -> None:
    key = key_at(cast, owner, "missing")
    before = owner.one("select count(*) from lock_commands")
    row = put(cast, owner, "code_differs", key, key_id=key)
    said = by_its_verb(cast, worker, verb, row)
    assert said == Applied(Code.EVENT_DISMISSED, to="missing", subject=key)
    nobodys = by_its_verb(cast, worker, verb, put(cast, owner, "code_differs"))
    assert nobodys == Refused(Code.NOT_FOUND)
    assert owner.one("select count(*) from lock_commands") == before


def test_the_lock_is_told_our_end_once_for_each_difference(
    cast: Cast, owner: Owner, worker: House
) -> None:
    key = key_at(cast, owner)
    row = put(cast, owner, "code_differs", key, key_id=key)
    for _ in range(2):
        said = by_its_verb(cast, worker, door_differences.set_time, row)
        assert said == Applied(Code.LOCK_ASKED_AGAIN, to="waiting", subject=key)
    assert owner.rows(
        "select kind, key_id, idempotency_key from lock_commands where done_at is null"
    ) == [("update", key, f"update:{key}:divergence {row}")]


def test_changed_digits_are_replaced_and_the_old_key_is_revoked_by_whom(
    cast: Cast, owner: Owner, worker: House
) -> None:
    key = key_at(cast, owner)
    row = put(cast, owner, "code_pin_differs", key, key_id=key)
    said = by_its_verb(cast, worker, door_differences.order_other_digits, row)
    new = owner.one("select id from entry_keys where id <> %s", key)
    assert said == Applied(Code.KEY_ORDERED, to="requested", subject=new)
    assert owner.one("select state from entry_keys where id = %s", key) == "revoking"
    assert owner.rows(
        "select subject_id, verb, actor_name from transitions where machine = 'entry_key'"
        " order by id desc limit 2"
    ) == [(new, "order", cast.sato.name), (key, "revoke", cast.sato.name)]


def test_our_keys_are_read_as_the_comparison_needs_them(cast: Cast, owner: Owner) -> None:
    key = key_at(cast, owner, code="c1")
    name, ends, mark = owner.row("select code_name, ends_at, pin_mark from entry_keys")
    told = OurKey(key, name, "issued", "c1", ends, False, mark)
    door, other = cast.tokyo.doors["A01"], cast.tokyo.doors["A02"]
    with cast.transaction(cast.tokyo.id) as tx:
        assert door_differences.keys_at(tx, door, []) == {name: told}
        assert door_differences.keys_at(tx, other, []) == {}
        assert door_differences.keys_at(tx, other, [name, "monban x"]) == {name: told}
        assert door_differences.key_named(tx, name) == told
        assert door_differences.key_named(tx, "monban x") is None
        assert door_differences.key_of_id(tx, key) == told
        assert door_differences.key_of_id(tx, uuid4()) is None
    owner.run("update lock_commands set done_at = null")
    with cast.transaction(cast.tokyo.id) as tx:
        at_work = door_differences.key_of_id(tx, key)
        assert at_work is not None
        assert at_work.at_work is True
        assert keys.revoke_all(tx, cast.sato.actor, stay_of(owner), reason="leaked") == 1
    with cast.transaction(cast.tokyo.id) as tx:
        assert door_differences.keys_at(tx, door, [])[name].state == "revoking"
        keys.observe(tx, key, status=None)
        assert door_differences.keys_at(tx, door, []) == {}
        assert door_differences.keys_at(tx, door, [name])[name].state == "revoked"


def stay_of(owner: Owner) -> UUID:
    found: UUID = owner.one("select id from stays")
    return found


@pytest.mark.parametrize("code", [None, "c1"])
def test_codes_of_other_houses_are_known_by_id_and_by_name_until_they_have_one(
    cast: Cast, owner: Owner, code: str | None
) -> None:
    name = name_of(owner, key_at(cast, owner, code=code))
    codes = {"c1": "renamed", "c2": name, "c3": f"monban {uuid4()}"}
    with cast.transaction(cast.osaka.id) as tx:
        known = door_differences.known_elsewhere(tx, codes)
    assert known == ({"renamed"} if code else {name})
    with cast.transaction(cast.tokyo.id) as tx:
        assert door_differences.known_elsewhere(tx, codes) == set()


# Money ------------------------------------------------------------------------------------------


def intent_there(stripe: StandIn, *, paid: bool = True) -> str:
    """Of 10,000 yen, which the provider has and no row of ours may know of."""
    card = {"payment_method": "pm_card_visa", "confirm": True}
    back = {"return_url": "https://example.com/back"}
    asked = {"amount": 10_000, "currency": "jpy", **(card | back if paid else {})}
    made: str = client(stripe.base, STRIPE_KEY).payment_intents.create(asked).id
    return made


def unpaid(owner: Owner, stay: Booked, intent: str | None) -> UUID:
    """An open attempt of an hour ago."""
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    return put_payment(
        owner,
        stay,
        state="open",
        intent_id=intent,
        succeeded_at=None,
        created_at=an_hour_ago,
        next_read_at=an_hour_ago,
    )


def of_payment(cast: Cast, owner: Owner, worker: House, verb: Any, payment: UUID) -> Any:
    row = put(cast, owner, "payment_differs", payment, payment_id=payment)
    return by_its_verb(cast, worker, verb, row)


def its_records(owner: Owner, subject: UUID) -> list[tuple[Any, ...]]:
    return owner.rows(
        "select verb, event, from_state, to_state, actor_name from transitions"
        " where subject_id = %s order by id",
        subject,
    )


def test_a_payment_is_asked_after_by_the_person_who_asks(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(), None)
    said = of_payment(cast, owner, worker, money_differences.ask_payment, payment)
    assert said == Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment)
    assert its_records(owner, payment) == [
        ("resolve", "provider_canceled", "open", "canceled", cast.sato.name)
    ]


def test_an_attempt_at_an_intent_that_never_was_is_over(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(), "pi_never_was")
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    assert said == Applied(Code.PAYMENT_RESOLVED, to="canceled", subject=payment)
    assert owner.row("select state, next_read_at from payments") == ("canceled", None)
    assert its_records(owner, payment) == [
        ("resolve", "provider_canceled", "open", "canceled", cast.sato.name)
    ]


@pytest.mark.parametrize("state", ["succeeded", "refund_owed", "refunded"])
def test_money_that_we_have_booked_is_not_unbooked_by_its_absence_there(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, state: str
) -> None:
    payment = put_payment(owner, cast.book(), state=state, intent_id="pi_never_was")
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    assert said == Refused(Code.PAYMENT_NOT_THERE)
    assert its_records(owner, payment) == []


def test_an_intent_that_is_there_after_all_is_heard(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = unpaid(owner, cast.book(price=10_000), intent_there(stripe, paid=False))
    said = of_payment(cast, owner, worker, money_differences.ask_lost_payment, payment)
    # It bears no name of ours: heard, and believed in nothing.
    assert said == Refused(Code.AMOUNT_MISMATCH, {"payment": str(payment)})
    assert its_records(owner, payment) == []


@pytest.mark.parametrize("change", ["state = 'processing'", "intent_id = 'pi_another'"])
def test_an_attempt_that_moved_while_the_provider_was_asked_is_not_given_up(
    cast: Cast, app: Flask, owner: Owner, worker: House, stripe: StandIn, change: str
) -> None:
    payment = unpaid(owner, cast.book(), "pi_never_was")
    row = put(cast, owner, "payment_not_there", payment, payment_id=payment)
    said = while_another_writes(
        app,
        owner,
        (f"update payments set {change} where id = %s", payment),
        lambda: by_its_verb(cast, worker, money_differences.ask_lost_payment, row),
    )
    assert said == Refused(Code.PAYMENT_NOT_THERE)
    assert its_records(owner, payment) == []


def test_a_provider_that_refuses_for_another_reason_denies_nothing(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    """The key is another account's, or revoked."""
    payment = unpaid(owner, cast.book(), "pi_never_was")
    row = put(cast, owner, "payment_not_there", payment, payment_id=payment)
    wrong = StripePayments("another key", api_base=stripe.base)
    desk = replace(worker.desk(cast.tokyo.id), payments=wrong)
    with pytest.raises(Rejected):
        money_differences.ask_lost_payment(desk, cast.sato.actor, row_of(cast, row))
    said = divergences.resolve(desk, cast.sato.actor, row)
    assert said == Refused(Code.BILLING_UNAVAILABLE)
    assert (its_records(owner, payment), ended(owner, row)) == ([], OPEN)


@pytest.mark.parametrize("verb", ["ask_lost_payment", "hear_refunds", "ask_lost_refund"])
def test_what_has_no_payment_or_no_intent_is_not_found(
    cast: Cast, owner: Owner, worker: House, verb: str
) -> None:
    payment = unpaid(owner, cast.book(), None)
    refund = put_refund(owner, payment, "pending")
    act = getattr(money_differences, verb)
    for of in ({}, {"payment_id": payment}):
        row = put(cast, owner, "refund_not_there", refund, **of)
        assert by_its_verb(cast, worker, act, row) == Refused(Code.NOT_FOUND)
        owner.run("delete from divergences")


def test_each_refund_of_the_charge_is_heard(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    hear = money_differences.hear_refunds
    assert of_payment(cast, owner, worker, hear, payment) == Noop(
        Code.REFUND_RECORDED, subject=payment
    )
    owner.run("delete from divergences")
    for amount in (700, 800):
        stripe.post("refunds", payment_intent=intent, amount=amount)
    recorded = Applied(Code.REFUND_RECORDED, to="recorded", subject=payment)
    assert of_payment(cast, owner, worker, hear, payment) == recorded
    assert owner.rows("select state, amount, reason from refunds order by amount") == [
        ("succeeded", 700, "external"),
        ("succeeded", 800, "external"),
    ]


def test_of_several_refunds_one_that_does_not_agree_is_told(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refunds_there = [
        stripe.post("refunds", payment_intent=intent, amount=amount)["id"] for amount in (700, 800)
    ]
    refund = put_refund(owner, payment, "pending", 801, provider_refund_id=refunds_there[1])
    said = of_payment(cast, owner, worker, money_differences.hear_refunds, payment)
    assert said == Refused(Code.AMOUNT_MISMATCH, {"refund": str(refund)})
    assert owner.rows("select state, amount from refunds order by amount") == [
        ("succeeded", 700),
        ("pending", 801),
    ]


def ask_lost(cast: Cast, owner: Owner, worker: House, payment: UUID, refund: UUID) -> Any:
    row = put(cast, owner, "refund_not_there", refund, payment_id=payment)
    return by_its_verb(cast, worker, money_differences.ask_lost_refund, row)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_refund_that_is_there_under_another_id_takes_it(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, by_name: bool
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refund = put_refund(owner, payment, "pending", provider_refund_id="re_never_was")
    stripe.post("refunds", payment_intent=intent, amount=300)
    there = worker.providers.payments.create_refund(
        key=str(uuid4()),
        intent_id=intent,
        amount=1000,
        metadata={"refund_id": str(refund)} if by_name else {},
    )
    if not by_name:
        owner.run("update refunds set provider_refund_id = %s", there.id)
    said = ask_lost(cast, owner, worker, payment, refund)
    assert said == Applied(Code.REFUND_RECORDED, to="recorded", subject=payment)
    assert owner.rows("select id, state, provider_refund_id from refunds") == [
        (refund, "succeeded", there.id)
    ]


@pytest.mark.parametrize("state", ["pending", "succeeded"])
def test_a_refund_that_is_nowhere_has_failed_by_the_word_of_whom(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn, state: str
) -> None:
    intent = intent_there(stripe)
    payment = put_payment(owner, cast.book(), intent_id=intent)
    refund = put_refund(owner, payment, state, provider_refund_id="re_never_was")
    stripe.post("refunds", payment_intent=intent, amount=1000)
    said = ask_lost(cast, owner, worker, payment, refund)
    assert said == Applied(Code.REFUND_FAILED, to="failed", subject=refund)
    assert owner.rows("select state, failure, provider_refund_id from refunds") == [
        ("failed", "not_at_provider", "re_never_was")
    ]
    assert its_records(owner, refund) == [
        ("refund", "provider_failed", state, "failed", cast.sato.name)
    ]


def test_a_refund_of_no_row_is_not_found(
    cast: Cast, owner: Owner, worker: House, stripe: StandIn
) -> None:
    payment = put_payment(owner, cast.book())
    assert ask_lost(cast, owner, worker, payment, uuid4()) == Refused(Code.NOT_FOUND)


# Messages ---------------------------------------------------------------------------------------


class Archive:
    """A mail server that tells what it holds as MailDev does, and was told by hand."""

    def __init__(self) -> None:
        self.holds: list[UUID] = []
        archive = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = json.dumps(archive.told()).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def told(self) -> list[dict[str, Any]]:
        """Newest first: somebody else's mail of just now, and ours of an hour ago."""
        now = datetime.now(UTC)
        return [
            {"time": now.isoformat(), "headers": {"message-id": "<1@shop.example>"}},
            *(
                {"time": (now - HOUR).isoformat(), "headers": {"message-id": f"<{one}@monban>"}}
                for one in self.holds
            ),
        ]


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive()
    yield made
    made.server.shutdown()
    made.server.server_close()


def mailed(cast: Cast, owner: Owner, ended: str = "sent_at") -> UUID:
    """A message about a stay, which has been worked at since."""
    stay = cast.book(price=0)
    owner.run(
        f"update outbox set {ended} = now(), attempts = 3, sending_at = now(),"
        " next_attempt_at = now() + interval '1 hour' where stay_id = %s",
        stay.id,
    )
    found: UUID = owner.one("select id from outbox where stay_id = %s", stay.id)
    return found


def of_message(
    cast: Cast, owner: Owner, worker: House, archive: Archive, verb: Any, message: UUID
) -> tuple[Any, UUID]:
    """The answer of the verb, and the row of the difference."""
    row = put(cast, owner, "message_not_there", message, message_id=message)
    desk = replace(worker.desk(cast.tokyo.id), mail_archive=HttpMailArchive(archive.url))
    return verb(desk, cast.sato.actor, row_of(cast, row)), row


def test_a_message_that_is_sent_again_begins_anew_and_once(
    cast: Cast, owner: Owner, worker: House, archive: Archive
) -> None:
    message = mailed(cast, owner)
    owner.run("update outbox set claimed_at = now(), claim_token = gen_random_uuid()")
    again = message_differences.send_again
    doorbell.connection().flushall()
    said, row = of_message(cast, owner, worker, archive, again, message)
    assert said == Applied(Code.MESSAGE_REQUEUED, to="waiting", subject=message)
    assert owner.row(
        "select sent_at, sending_at, claimed_at, claim_token, attempts, next_attempt_at <= now(),"
        " consumer_key from outbox"
    ) == (None, None, None, None, 0, True, f"again:{row}")
    assert len(doorbell.queue("outbox").jobs) == 1
    owner.run("delete from divergences")
    said, row = of_message(cast, owner, worker, archive, again, message)
    assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
    assert ended(owner, row) == OPEN


@pytest.mark.parametrize("verb", [message_differences.send_again, message_differences.record_sent])
def test_a_message_on_which_both_agree_by_now_is_neither_sent_nor_recorded(
    cast: Cast, owner: Owner, worker: House, archive: Archive, verb: Any
) -> None:
    message = mailed(cast, owner)
    archive.holds = [uuid4(), message]
    before = owner.row("select sent_at, consumer_key from outbox")
    said, row = of_message(cast, owner, worker, archive, verb, message)
    assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
    assert ended(owner, row) == AGREED
    assert owner.row("select sent_at, consumer_key from outbox") == before
    assert owner.one("select count(*) from consumed_effects") == 0


@pytest.mark.parametrize("state", ["dead_at", "unknown_at"])
@pytest.mark.parametrize("there", [True, False])
def test_a_message_that_did_not_end_is_sent_if_the_archive_has_it(
    cast: Cast, owner: Owner, worker: House, archive: Archive, state: str, there: bool
) -> None:
    message = mailed(cast, owner, state)
    archive.holds = [message] if there else [uuid4()]
    record = message_differences.record_sent
    said, row = of_message(cast, owner, worker, archive, record, message)
    now = owner.row(f"select sent_at is not null, {state} is not null from outbox")
    if there:
        assert said == Applied(Code.MESSAGE_RECORDED, to="sent", subject=message)
        assert (now, ended(owner, row)) == ((True, False), OPEN)
    else:
        assert said == Noop(Code.MESSAGE_NOT_WAITING, subject=message)
        assert (now, ended(owner, row)) == ((False, True), AGREED)
