"""Door keys end to end: the verb orders, the job carries, only the controller's word moves."""

import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask import Flask

from portal import clock, inbox, lock_commands, seal
from portal.db import transaction
from portal.jobs import drain, locks
from portal.jobs.house import House
from portal.outcome import Applied, Code, Conflict, Noop, Refused
from portal.queries import attention
from portal.verbs import keys, stay_changes, stays
from sandbox.seam.running import Running, eventually
from tests.cast import Booked, Cast
from tests.outside import Owner, codes_on_locks, recorded, settle_locks, work
from tests.verbs.test_stays import HOUR, admitted, do

CREATE, UPDATE, DELETE = "/access_codes/create", "/access_codes/update", "/access_codes/delete"


def states(owner: Owner) -> list[str]:
    return [row[0] for row in owner.rows("select state from entry_keys order by created_at, id")]


def commands(owner: Owner) -> list[tuple[Any, ...]]:
    return owner.rows(
        "select kind, done_at is not null, dead_at is not null, unknown_at is not null, attempts"
        " from lock_commands order by no"
    )


def issued(cast: Cast, worker: House, owner: Owner, **more: Any) -> Booked:
    stay = admitted(cast, **more)
    assert settle_locks(worker, owner, lambda: "issued" in states(owner))
    return stay


def gone(worker: House, owner: Owner, seam: Running) -> bool:
    """Everything is revoked here and nothing is left on the lock."""
    return bool(
        settle_locks(
            worker,
            owner,
            lambda: codes_on_locks(seam) == [] and {"revoked"} >= set(states(owner)) - {"failed"},
        )
    )


def pin_of(owner: Owner) -> str:
    return seal.unseal(
        owner.one("select pin_sealed from entry_keys order by created_at desc limit 1")
    )


# Set --------------------------------------------------------------------------------------------


def test_g1_accepted_is_not_set(cast: Cast, worker: House, seam: Running, owner: Owner) -> None:
    seam.control("hold", {"stage": "setting"})
    admitted(cast)
    work(worker, "locks")
    owner.make_due()
    work(worker, "keys")
    assert states(owner) == ["requested"]
    assert owner.one("select observed from entry_keys") == "setting"
    assert owner.one("select count(*) from outbox where event_type = 'entry_key_issued'") == 0
    seam.control("hold", {"stage": "setting", "held": False})
    assert settle_locks(worker, owner, lambda: states(owner) == ["issued"])
    for _ in range(3):
        owner.make_due()
        work(worker, "keys")
    assert owner.one("select count(*) from outbox where event_type = 'entry_key_issued'") == 1
    assert owner.one("select issued_at is not null from entry_keys")


def test_e5_the_lock_has_the_instants_and_the_pin(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    clock.set_source(lambda: datetime(2026, 12, 10, 6, 30, tzinfo=UTC))
    stay = cast.book(
        price=0,
        starts_at=datetime(2026, 12, 10, 6, 0, tzinfo=UTC),
        ends_at=datetime(2026, 12, 12, 1, 0, tzinfo=UTC),
    )
    do(cast, stays.admit, stay.id, 1)
    work(worker, "locks")
    (code,) = codes_on_locks(seam)
    assert code["starts_at"].startswith("2026-12-10T06:00:00")
    assert code["ends_at"].startswith("2026-12-12T01:00:00")
    assert code["code"] == pin_of(owner)
    assert code["device_id"] == "haneda-capsule-a01"


def test_g11_lead_and_lag_are_the_locks_alone(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    clock.set_source(lambda: datetime(2026, 12, 10, 6, 30, tzinfo=UTC))
    starts, ends = datetime(2026, 12, 10, 6, tzinfo=UTC), datetime(2026, 12, 12, 1, tzinfo=UTC)
    stay = cast.book(price=0, starts_at=starts, ends_at=ends)
    owner.run("update facilities set key_lead_minutes = 20, key_lag_minutes = 10")
    do(cast, stays.admit, stay.id, 1)
    work(worker, "locks")
    (code,) = codes_on_locks(seam)
    assert code["starts_at"].startswith("2026-12-10T05:40:00")
    assert code["ends_at"].startswith("2026-12-12T01:10:00")
    assert owner.row("select starts_at, ends_at from stays") == (starts, ends)


def test_g4_a_duplicate_gets_a_new_pin_and_leaves_nothing_behind(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.control("refuse_codes", {"error_code": "duplicate_code_on_device", "times": 2})
    stay = admitted(cast)
    assert settle_locks(worker, owner, lambda: "issued" in states(owner))
    assert states(owner) == ["failed", "failed", "issued"]
    pins = {seal.unseal(row[0]) for row in owner.rows("select pin_sealed from entry_keys")}
    assert len(pins) == 3
    assert settle_locks(worker, owner, lambda: len(codes_on_locks(seam)) == 1)
    assert codes_on_locks(seam)[0]["code"] == pin_of(owner)
    assert owner.one("select count(*) from outbox where event_type = 'entry_key_issued'") == 1
    do(cast, stays.depart, stay.id, 2)
    assert gone(worker, owner, seam)


def test_g4_duplicates_without_end_wait_for_a_person(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.control("refuse_codes", {"error_code": "duplicate_code_on_device", "times": 50})
    stay = admitted(cast)
    wanted = ["failed"] * (keys.DUPLICATES_BORNE + 1)
    assert settle_locks(worker, owner, lambda: states(owner) == wanted)
    owner.make_due()
    work(worker, "locks", "keys")
    assert states(owner) == wanted
    assert owner.one("select failure from entry_keys limit 1") == "duplicate_code_on_device"
    assert stay is not None


@pytest.mark.parametrize("mode", ["do_then_drop", "error_500_after", "do_then_stall"])
def test_g10_an_ambiguous_create_is_one_code(
    cast: Cast, worker: House, seam: Running, owner: Owner, mode: str
) -> None:
    seam.fault(mode, CREATE, seconds=3)
    stay = admitted(cast)
    work(worker, "locks")
    assert commands(owner) == [("set", False, False, True, 1)]
    assert settle_locks(worker, owner, lambda: states(owner) == ["issued"])
    assert len(codes_on_locks(seam)) == 1
    assert commands(owner)[0][:4] == ("set", True, False, False)
    do(cast, stays.depart, stay.id, 2)
    assert gone(worker, owner, seam)


def arrive_late(worker: House, owner: Owner) -> None:
    """The request that hung somewhere is carried out."""
    name, starts, ends = owner.row("select code_name, starts_at, ends_at from entry_keys")
    worker.providers.locks.create_code(
        device_id="haneda-capsule-a01", name=name, pin="480217", starts_at=starts, ends_at=ends
    )


def test_g10_a_lost_set_that_arrives_after_check_out_is_removed(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    """The request hangs somewhere; the guest leaves; nothing is on the lock yet."""
    seam.fault("stall", CREATE, seconds=2)
    stay = admitted(cast)
    work(worker, "locks")
    do(cast, stays.depart, stay.id, 2)
    owner.make_due()
    work(worker, "locks", "keys")
    owner.make_due()
    work(worker, "locks", "keys")
    assert states(owner) == ["revoking"]
    arrive_late(worker, owner)
    assert gone(worker, owner, seam)
    assert states(owner) == ["revoked"]


def test_g10_a_set_whose_worker_was_killed_may_arrive_after_check_out_and_is_removed(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    """The request of the dead worker hangs somewhere; a lapsed claim is a lost answer."""
    stay = admitted(cast)
    with transaction(None) as tx:
        lock_commands.claim(tx, uuid4())
    do(cast, stays.depart, stay.id, 2)
    owner.run("update lock_commands set claimed_at = now() - interval '61 seconds'"
              " where claimed_at is not null")  # fmt: skip
    for _ in range(3):
        work(worker, "locks", "keys")
        owner.make_due()
    assert states(owner) == ["revoking"]
    arrive_late(worker, owner)
    assert gone(worker, owner, seam)
    assert states(owner) == ["revoked"]


def test_a_lost_set_is_believed_lost_after_its_time(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.fault("stall", CREATE, seconds=2)
    stay = admitted(cast)
    work(worker, "locks")
    do(cast, stays.depart, stay.id, 2)
    owner.make_due()
    work(worker, "locks")
    owner.run("update lock_commands set unknown_at = unknown_at - interval '3 minutes'")
    owner.make_due()
    work(worker, "locks")
    assert states(owner) == ["revoked"]


def test_a_controller_that_is_down_at_check_in_comes_back(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.control("down", {"down": True})
    stay = admitted(cast)
    assert owner.one("select state from stays") == "admitted"
    for _ in range(3):
        owner.make_due()
        work(worker, "locks")
    assert states(owner) == ["requested"]
    kind, done, dead, _, tried = commands(owner)[0]
    assert (kind, done, dead, tried) == ("set", False, False, 3)
    assert owner.one("select last_error is not null from lock_commands")
    seam.control("down", {"down": False})
    assert settle_locks(worker, owner, lambda: states(owner) == ["issued"])
    assert len(codes_on_locks(seam)) == 1
    assert stay is not None


def test_a_command_given_up_goes_back_to_work_when_asked(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.control("down", {"down": True})
    admitted(cast)
    owner.run("update lock_commands set attempts = 19")
    work(worker, "locks")
    assert commands(owner)[0][:3] == ("set", False, True)
    command = owner.one("select id from lock_commands")
    seam.control("down", {"down": False})
    owner.make_due()
    work(worker, "locks")
    assert states(owner) == ["requested"]
    said = do(cast, keys.ask_again, command)
    assert said == Applied(Code.LOCK_ASKED_AGAIN, to="waiting", subject=command)
    assert do(cast, keys.ask_again, command) == Noop(Code.LOCK_NOT_STUCK)
    assert do(cast, keys.ask_again, uuid4()) == Refused(Code.NOT_FOUND)
    assert do(cast, keys.ask_again, command, house=cast.osaka.id) == Refused(Code.NOT_FOUND)
    assert settle_locks(worker, owner, lambda: states(owner) == ["issued"])


def test_a_broken_command_holds_up_no_other(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    admitted(cast)
    admitted(cast, space="A02")
    first = owner.one("select key_id from lock_commands order by no limit 1")
    owner.run("update entry_keys set pin_sealed = 'not sealed by us' where id = %s", first)
    assert settle_locks(worker, owner, lambda: sorted(states(owner)) == ["issued", "requested"])
    assert "BrokenSeal" in owner.one("select last_error from lock_commands order by no limit 1")


# Update -----------------------------------------------------------------------------------------


def change(cast: Cast, owner: Owner, stay: Booked, by: timedelta) -> Any:
    starts, ends, version = owner.row("select starts_at, ends_at, version from stays")
    said = do(cast, stay_changes.change_times, stay.id, version, starts, ends + by, 0)
    assert isinstance(said, Applied), said
    return ends + by


@pytest.mark.parametrize("by", [timedelta(days=2), -HOUR])
def test_g7_the_same_pin_until_another_time(
    cast: Cast, worker: House, seam: Running, owner: Owner, by: timedelta
) -> None:
    stay = issued(cast, worker, owner)
    (before,) = codes_on_locks(seam)
    ends = change(cast, owner, stay, by)
    assert settle_locks(
        worker,
        owner,
        lambda: (
            datetime.fromisoformat(codes_on_locks(seam)[0]["ends_at"])
            == ends.replace(microsecond=0)
        ),
    )
    (after,) = codes_on_locks(seam)
    assert (after["access_code_id"], after["code"]) == (before["access_code_id"], before["code"])
    assert states(owner) == ["issued"]
    told = owner.rows("select event_type from outbox where event_type ~ 'changed'")
    assert told == [("entry_key_changed",)]


def test_g7_an_unclear_update_is_read_back_and_not_repeated(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    clock.set_source(lambda: datetime.now(UTC).replace(microsecond=0))
    stay = issued(cast, worker, owner)
    change(cast, owner, stay, timedelta(days=1))
    seam.fault("do_then_drop", UPDATE)
    work(worker, "locks")
    assert commands(owner)[-1] == ("update", False, False, True, 1)
    owner.make_due()
    work(worker, "locks")
    assert commands(owner)[-1][:4] == ("update", True, False, False)
    assert seam.counts()[f"POST {UPDATE}"] == 1
    assert owner.one("select count(*) from outbox where event_type = 'entry_key_changed'") == 1


def test_g7_an_update_that_never_arrived_is_sent_again(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    ends = change(cast, owner, stay, timedelta(days=1))
    seam.fault("error_500_before", UPDATE)
    work(worker, "locks")
    owner.make_due()
    work(worker, "locks")
    got = datetime.fromisoformat(codes_on_locks(seam)[0]["ends_at"])
    assert got == ends.replace(microsecond=0)


def test_a_change_before_the_code_is_set_sets_the_new_time(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = admitted(cast)
    ends = change(cast, owner, stay, timedelta(days=1))
    assert settle_locks(worker, owner, lambda: states(owner) == ["issued"])
    (code,) = codes_on_locks(seam)
    assert datetime.fromisoformat(code["ends_at"]) == ends.replace(microsecond=0)


# Remove -----------------------------------------------------------------------------------------


def test_only_the_controllers_word_makes_a_key_revoked(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    seam.control("hold", {"stage": "removing"})
    do(cast, stays.depart, stay.id, 2)
    work(worker, "locks")
    owner.make_due()
    work(worker, "keys")
    assert states(owner) == ["revoking"]
    following = cast.book(
        price=0, starts_at=clock.now() + timedelta(days=1), ends_at=clock.now() + timedelta(days=2)
    )
    tomorrow = clock.now() + timedelta(days=1, hours=1)
    clock.set_source(lambda: tomorrow)
    said = do(cast, stays.admit, following.id, 1)
    assert said == Refused(Code.SPACE_QUARANTINED)
    clock.set_source(None)
    seam.control("hold", {"stage": "removing", "held": False})
    assert gone(worker, owner, seam)
    clock.set_source(lambda: tomorrow)
    assert isinstance(do(cast, stays.admit, following.id, 1), Applied)


def test_g5_a_removal_that_fails_three_times_is_tried_until_it_is_gone(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    seam.fault("error_500_before", DELETE, times=3)
    do(cast, stays.depart, stay.id, 2)
    for tried in range(1, 4):
        owner.make_due()
        work(worker, "locks")
        assert states(owner) == ["revoking"]
        assert commands(owner)[-1] == ("remove", False, False, True, tried)
    assert gone(worker, owner, seam)
    assert recorded(owner, owner.one("select id from entry_keys"))[-2:] == [
        ("revoke_asked", "issued", "revoking"),
        ("removed_from_lock", "revoking", "revoked"),
    ]


def test_g5_not_found_on_a_delete_is_a_removal(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    (code,) = codes_on_locks(seam)
    seam.control(f"codes/{code['access_code_id']}/remove", {"gone": True})
    do(cast, stays.depart, stay.id, 2)
    work(worker, "locks")
    assert states(owner) == ["revoked"]


def test_g5_a_removal_that_was_accepted_but_not_done_is_asked_for_again(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    (code,) = codes_on_locks(seam)
    seam.control("hold", {"stage": "removing"})
    do(cast, stays.depart, stay.id, 2)
    work(worker, "locks")
    seam.control(f"codes/{code['access_code_id']}/modify", {"status": "set"})
    owner.make_due()
    work(worker, "keys", "locks")
    assert seam.counts()[f"POST {DELETE}"] == 2
    owner.make_due()
    work(worker, "keys", "locks")
    assert seam.counts()[f"POST {DELETE}"] == 2
    seam.control("hold", {"stage": "removing", "held": False})
    assert gone(worker, owner, seam)


def test_a_removal_never_overtakes_the_setting(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = admitted(cast)
    do(cast, stays.depart, stay.id, 2)
    owner.run(
        "update lock_commands set next_attempt_at = now() + interval '1 hour' where kind = 'set'"
    )
    with transaction(None) as tx:
        assert lock_commands.claim(tx, uuid4()) == []
    owner.make_due()
    with transaction(None) as tx:
        (claimed,) = lock_commands.claim(tx, uuid4())
    assert owner.one("select kind from lock_commands where id = %s", claimed[0]) == "set"
    owner.run(
        "update lock_commands set claimed_at = now() - interval '2 minutes' where kind = 'set'"
    )
    assert gone(worker, owner, seam)
    assert seam.counts().get(f"POST {CREATE}", 0) == 0


# Behind our back --------------------------------------------------------------------------------


@pytest.mark.parametrize("forgotten", [True, False])
def test_g13_a_code_removed_behind_our_back_is_missing_and_not_set_again(
    cast: Cast, worker: House, seam: Running, owner: Owner, forgotten: bool
) -> None:
    stay = issued(cast, worker, owner)
    (code,) = codes_on_locks(seam)
    seam.control(f"codes/{code['access_code_id']}/remove", {"gone": forgotten})
    owner.make_due()
    work(worker, "keys", "locks")
    assert states(owner) == ["missing"]
    assert owner.one("select failure is not null from entry_keys")
    assert seam.counts()[f"POST {CREATE}"] == 1
    said = do(cast, keys.reissue, stay.id, 2)
    assert isinstance(said, Applied)
    assert said.code == Code.KEY_ORDERED
    assert settle_locks(
        worker,
        owner,
        lambda: states(owner) == ["revoked", "issued"] and len(codes_on_locks(seam)) == 1,
    )


def test_g13_a_modified_code_is_flagged(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    issued(cast, worker, owner)
    (code,) = codes_on_locks(seam)
    seam.control(f"codes/{code['access_code_id']}/modify", {"code": "999111"})
    owner.make_due()
    work(worker, "keys")
    assert "conflicting_external_modification" in owner.one("select observed from entry_keys")


def lock_event(kind: str, code_id: str | None) -> None:
    with transaction(None) as tx:
        inbox.receive(
            tx,
            "seam",
            event_id=str(uuid4()),
            kind=kind,
            created=clock.now(),
            payload=(b'{"access_code_id": "%s"}' % code_id.encode()) if code_id else b"{}",
            headers={},
        )


def test_g13_a_late_set_event_does_not_revive_a_removed_key(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = issued(cast, worker, owner)
    code = owner.one("select provider_code_id from entry_keys")
    do(cast, stays.depart, stay.id, 2)
    assert gone(worker, owner, seam)
    lock_event("access_code.removed_from_device", code)
    lock_event("access_code.set_on_device", code)
    work(worker, "inbox", "keys", "locks")
    assert states(owner) == ["revoked"]
    assert {row[0] for row in owner.rows("select state from webhook_events")} == {"completed"}


def test_an_event_makes_its_key_due_at_once(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    seam.control("hold", {"stage": "setting"})
    admitted(cast)
    work(worker, "locks")
    owner.run("update entry_keys set next_poll_at = now() + interval '1 hour'")
    seam.control("hold", {"stage": "setting", "held": False})
    assert eventually(lambda: codes_on_locks(seam)[0]["status"] == "set")
    work(worker, "keys")
    assert states(owner) == ["requested"]
    lock_event("access_code.set_on_device", owner.one("select provider_code_id from entry_keys"))
    lock_event("access_code.set_on_device", "somebody-elses")
    lock_event("access_code.set_on_device", None)
    lock_event("device.disconnected", None)
    work(worker, "inbox", "keys")
    assert states(owner) == ["issued"]
    assert owner.rows("select outcome, count(*) from webhook_events group by 1 order by 1") == [
        ("applied", 1),
        ("ignored", 3),
    ]


# Reissue, moving, secrets -----------------------------------------------------------------------


def test_reissue_is_for_a_guest_in_house(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    stay = cast.book(price=0)
    assert do(cast, keys.reissue, stay.id, 1) == Refused(Code.STAY_NOT_IN_HOUSE)
    assert do(cast, keys.reissue, uuid4(), 1) == Refused(Code.NOT_FOUND)
    do(cast, stays.admit, stay.id, 1)
    assert isinstance(do(cast, keys.reissue, stay.id, 1), Conflict)
    first = pin_of(owner)
    assert isinstance(do(cast, keys.reissue, stay.id, 2), Applied)
    assert pin_of(owner) != first
    assert sorted(states(owner)) == ["requested", "revoking"]
    assert settle_locks(worker, owner, lambda: sorted(states(owner)) == ["issued", "revoked"])


def test_two_people_reissue_at_once_and_one_new_code_is_made(
    cast: Cast, app: Flask, owner: Owner
) -> None:
    from tests.outside import at_once

    stay = admitted(cast)
    said = at_once(app, *[lambda: do(cast, keys.reissue, stay.id, 2)] * 4)
    assert sum(isinstance(one, Applied) for one in said) == 1
    assert sum(isinstance(one, Conflict) for one in said) == 3
    assert sorted(states(owner)) == ["requested", "revoking"]


def test_one_pin_is_not_twice_on_a_door_at_a_time(
    cast: Cast, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator repeats itself; the database refuses, and another number is drawn."""
    drawn = iter(["480217", "480217", "135790"])
    monkeypatch.setattr(seal, "new_pin", lambda: next(drawn))
    stay = admitted(cast)
    assert isinstance(do(cast, keys.reissue, stay.id, 2), Applied)
    pins = [seal.unseal(row[0]) for row in owner.rows("select pin_sealed from entry_keys")]
    assert sorted(pins) == ["135790", "480217"]


def test_the_pin_is_nowhere_but_sealed(
    cast: Cast,
    worker: House,
    seam: Running,
    owner: Owner,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    seam.fault("do_then_drop", CREATE)
    seam.control("refuse_codes", {"error_code": "duplicate_code_on_device"})
    stay = admitted(cast)
    assert settle_locks(worker, owner, lambda: "issued" in states(owner))
    do(cast, stays.depart, stay.id, 2)
    assert gone(worker, owner, seam)
    pins = [seal.unseal(row[0]) for row in owner.rows("select pin_sealed from entry_keys")]
    assert len(pins) == 2
    kept = [capfd.readouterr().err, caplog.text]
    for table in (
        "outbox",
        "transitions",
        "lock_commands",
        "webhook_events",
        "entry_keys",
        "stays",
    ):
        kept += [str(row) for row in owner.rows(f"select t::text from {table} t")]
    for pin in pins:
        assert re.fullmatch(r"\d{6}", pin)
        # The microseconds of an instant have six digits, too.
        assert not any(re.search(rf"(?<![\d.]){pin}(?!\d)", text) for text in kept)


def test_two_workers_do_not_run_one_command(
    cast: Cast, worker: House, seam: Running, app: Flask, owner: Owner
) -> None:
    from tests.outside import at_once

    for space in ("A01", "A02", "A03", "B01"):
        admitted(cast, space=space)
    at_once(app, *[lambda: drain.drain("locks")] * 3)
    assert seam.counts()[f"POST {CREATE}"] == 4
    assert len(codes_on_locks(seam)) == 4
    assert {row[4] for row in commands(owner)} == {1}


def test_a_worker_that_lost_its_claim_settles_nothing(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    admitted(cast)
    mine: UUID = uuid4()
    with transaction(None) as tx:
        ((command, house),) = lock_commands.claim(tx, mine)
    owner.run("update lock_commands set claimed_at = now() - interval '2 minutes'")
    work(worker, "locks")
    before = commands(owner)
    locks.run(worker.desk(house), command, mine)
    assert commands(owner) == before
    assert len(codes_on_locks(seam)) == 1


def test_a_batch_that_outlives_its_lease_does_not_run_what_passed_to_another(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    """Ten slow commands take longer than one lease: the claim is asked anew before each. Looking
    for the code by its name would not help two workers who look at the same moment."""
    admitted(cast)
    mine: UUID = uuid4()
    with transaction(None) as tx:
        ((command, house),) = lock_commands.claim(tx, mine)
    owner.run("update lock_commands set claimed_at = now() - interval '59 seconds'")
    with worker.desk(house).transaction() as tx:
        assert lock_commands.begin(tx, command, mine)
    work(worker, "locks")
    assert seam.counts().get(f"POST {CREATE}", 0) == 0
    owner.run("update lock_commands set claimed_at = now() - interval '61 seconds'")
    with transaction(None) as tx:
        assert [row[0] for row in lock_commands.claim(tx, uuid4())] == [command]
    locks.run(worker.desk(house), command, mine)
    assert seam.counts().get(f"POST {CREATE}", 0) == 0


def test_g8_a_full_door_evicts_nobody_and_a_freed_place_is_taken(
    cast: Cast, worker: House, seam: Running, owner: Owner
) -> None:
    """The guest whose code found no place is seen by a person; nobody else's code is pushed out.
    Once a place is free, the code that the person orders is set."""
    first = issued(cast, worker, owner)
    seam.control("devices/haneda-capsule-a01", {"max_codes": 1})
    owner.run("update spaces set door_id = (select door_id from spaces where code = 'A01')"
              " where code = 'A02' and facility_id = %s", cast.tokyo.id)  # fmt: skip
    second = cast.book(price=0, space="A02")
    do(cast, stays.admit, second.id, 1)
    assert settle_locks(worker, owner, lambda: sorted(states(owner)) == ["failed", "issued"], 30)
    reason = "select failure from entry_keys where state = 'failed'"
    assert owner.one(reason) == "no_space_for_access_code_on_device"
    with cast.transaction(cast.tokyo.id) as tx:
        assert [row.stay_id for row in attention.look(tx, clock.now()).broken_keys] == [second.id]
    do(cast, stays.depart, first.id, 2)
    assert settle_locks(worker, owner, lambda: "revoked" in states(owner), 30)
    do(cast, keys.reissue, second.id, 2)
    assert settle_locks(worker, owner, lambda: "issued" in states(owner), 30)
    assert [one["status"] for one in codes_on_locks(seam)].count("set") == 1
