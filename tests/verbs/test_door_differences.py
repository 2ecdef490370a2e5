"""Differences at a door: what is removed, asked, ordered, and what is left alone."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from portal.edges.locks.port import LockCode
from portal.jobs.house import House
from portal.models import Divergence
from portal.outcome import Applied, Code, Noop, Refused
from portal.policies.divergences import OurKey
from portal.verbs import door_differences, keys
from sandbox.seam.running import Running, eventually
from tests.cast import Cast
from tests.outside import Owner, codes_on_locks
from tests.verbs.test_differences import AGREED, OPEN, by_its_verb, ended, put
from tests.verbs.test_stays import admitted

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
