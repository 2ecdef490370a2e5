"""Differences: how each is written down and how it ends, whatever its kind."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from portal.jobs.house import House
from portal.models import Divergence
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies.divergences import Found
from portal.verbs import (
    divergences,
)
from portal.verbs.divergences import Look, Noted
from portal.verbs.healing import heal
from tests.cast import Cast
from tests.outside import Owner
from tests.verbs.books import another_writes, put_payment
from tests.verbs.test_stays import admitted, do

KINDS = (
    "payment_not_here",
    "payment_not_there",
    "payment_differs",
    "refund_not_here",
    "refund_not_there",
    "refund_differs",
    "dispute_differs",
    "message_not_there",
    "message_not_here",
    "code_stray",
    "code_missing",
    "code_differs",
    "code_pin_differs",
    "subscription_not_here",
    "subscription_not_there",
    "subscription_differs",
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


def by_its_verb(cast: Cast, worker: House, verb: Any, row: UUID) -> Any:
    """The answer of the verb alone: nothing around it heals the row."""
    return verb(worker.desk(cast.tokyo.id), cast.sato.actor, row_of(cast, row))


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
    if kind.startswith("code") or kind in ("message_not_here", "subscription_differs"):
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


def test_whoever_lets_be_what_is_healing_waits_for_the_look(cast: Cast, owner: Owner) -> None:
    row, who = put(cast, owner, "payment_differs"), cast.sato.actor
    look = "update divergences set healed_at = now(), healed_by = 'look' where id = %s"
    with another_writes(owner, look, row), cast.transaction(cast.tokyo.id) as tx:
        assert divergences.let_be(tx, who, row) == Noop(Code.EVENT_ALREADY_HANDLED)


def test_every_kind_has_a_verb_and_somebody_who_may_be_away() -> None:
    assert set(divergences._VERBS) == set(KINDS)
    assert set(divergences._AWAY) == {kind.partition("_")[0] for kind in KINDS}


def test_what_may_be_let_be_is_money_and_mail_that_never_left() -> None:
    never = {"message_not_here", "subscription_differs"}
    assert {*divergences.MAY_BE, *never} == {kind for kind in KINDS if not kind.startswith("code")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_verb_and_one_that_finds_nothing_leaves_it_open(
    cast: Cast, owner: Owner, worker: House, kind: str
) -> None:
    row = put(cast, owner, kind)
    nobody = {
        "payment_not_here": Code.NOT_PERMITTED,
        "subscription_not_here": Code.NOT_PERMITTED,
        "payment_differs": Code.NOT_PERMITTED,
        "dispute_differs": Code.NOT_PERMITTED,
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
