"""The adapter against Seam's own fake, over real sockets; every fault is one on the wire."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from portal.edges.errors import EdgeError, Rejected, Unknown, Unreachable
from portal.edges.locks import LockCode, Locks
from portal.edges.locks.adapter import SeamLocks
from portal.fence import TransactionOpenError, transaction_began, transaction_ended
from sandbox.seam.running import Running, eventually

TOKYO = timezone(timedelta(hours=9))
STARTS = datetime(2026, 12, 10, 15, 0, tzinfo=TOKYO)
ENDS = datetime(2026, 12, 12, 10, 0, tzinfo=TOKYO)
KEY = "seam_apikey1_token"
PIN = "048213"


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with Running("sandbox.seam", "--device", "door-1=Front", "--device", "door-2=Back") as seam:
        yield seam


@pytest.fixture
def seam(started: Running) -> Running:
    started.reset()
    return started


@pytest.fixture
def locks(seam: Running) -> Locks:
    return SeamLocks(KEY, endpoint=seam.url)


def impatient(seam: Running) -> Locks:
    return SeamLocks(KEY, endpoint=seam.url, connect_seconds=1, read_seconds=0.7)


def make(locks: Locks, **changes: Any) -> LockCode:
    wanted: dict[str, Any] = {
        "device_id": "door-1",
        "name": "stay 7f",
        "pin": PIN,
        "starts_at": STARTS,
        "ends_at": ENDS,
    }
    return locks.create_code(**{**wanted, **changes})


def became(locks: Locks, code: LockCode, status: str) -> bool:
    def look() -> bool:
        now = locks.get_code(code.id)
        return now is not None and now.status == status

    return eventually(look)


def gone(locks: Locks, code: LockCode) -> bool:
    return eventually(lambda: locks.get_code(code.id) is None)


WRITES: dict[str, tuple[str, Callable[[Locks, LockCode], object]]] = {
    "create": ("/access_codes/create", lambda locks, _: make(locks, name="other", pin="731906")),
    "update": (
        "/access_codes/update",
        lambda locks, code: locks.update_code(code.id, starts_at=STARTS, ends_at=ENDS),
    ),
    "delete": (
        "/access_codes/delete",
        lambda locks, code: locks.delete_code(code.id, device_id="door-1"),
    ),
}
READS: dict[str, Callable[[Locks, LockCode], object]] = {
    "find": lambda locks, _: locks.find_code("door-1", "stay 7f"),
    "get": lambda locks, code: locks.get_code(code.id),
    "list": lambda locks, _: locks.list_codes("door-1"),
    "device": lambda locks, _: locks.device("door-1"),
}
UNCLEAR = ["refuse", "do_then_drop", "error_500_before", "error_500_after", "stall"]


def test_a_created_code_is_being_set_and_then_set(locks: Locks) -> None:
    code = make(locks)
    assert code.status == "setting"
    assert (code.name, code.device_id, code.pin, code.errors) == ("stay 7f", "door-1", PIN, ())
    assert code.starts_at == STARTS
    assert code.starts_at is not None
    assert code.starts_at.utcoffset() == timedelta(0)
    assert became(locks, code, "set")


def test_a_pin_keeps_its_leading_zero(seam: Running, locks: Locks) -> None:
    make(locks, pin="0007")
    assert [code["code"] for code in seam.control("codes")] == ["0007"]


def test_e5_the_controller_receives_instants(seam: Running, locks: Locks) -> None:
    make(
        locks,
        starts_at=datetime(2026, 10, 10, 15, tzinfo=TOKYO),
        ends_at=datetime(2026, 10, 12, 10, tzinfo=TOKYO),
    )
    (sent,) = seam.control("requests?path=create")
    assert sent["body"]["starts_at"] == "2026-10-10T06:00:00Z"
    assert sent["body"]["ends_at"] == "2026-10-12T01:00:00Z"


@pytest.mark.parametrize("zone", [UTC, TOKYO, timezone(timedelta(hours=-8))])
def test_e5_any_zone_is_the_same_instant(seam: Running, locks: Locks, zone: timezone) -> None:
    code = make(locks)
    locks.update_code(code.id, starts_at=STARTS.astimezone(zone), ends_at=ENDS.astimezone(zone))
    (sent,) = seam.control("requests?path=update")
    assert sent["body"]["starts_at"] == "2026-12-10T06:00:00Z"
    assert sent["body"]["ends_at"] == "2026-12-12T01:00:00Z"


def test_e5_a_local_time_is_never_sent(seam: Running, locks: Locks) -> None:
    code = make(locks)
    local = STARTS.replace(tzinfo=None)
    with pytest.raises(ValueError):
        make(locks, pin="111222", starts_at=local)
    with pytest.raises(ValueError):
        locks.update_code(code.id, starts_at=STARTS, ends_at=local)
    assert [seen["path"] for seen in seam.control("requests")] == ["/access_codes/create"]


def test_find_looks_only_on_its_device_and_by_the_whole_name(locks: Locks) -> None:
    make(locks, device_id="door-2")
    make(locks, name="stay 7f and more", pin="111222")
    assert locks.find_code("door-1", "stay 7f") is None
    mine = make(locks, pin="333444")
    found = locks.find_code("door-1", "stay 7f")
    assert found is not None
    assert found.id == mine.id
    assert {code.device_id for code in locks.list_codes("door-1")} == {"door-1"}


def test_find_prefers_the_code_that_stays(seam: Running, locks: Locks) -> None:
    seam.control("hold", {"stage": "removing"})
    old = make(locks)
    locks.delete_code(old.id, device_id="door-1")
    new = make(locks, pin="555000")
    found = locks.find_code("door-1", "stay 7f")
    assert found is not None
    assert found.id == new.id


def test_update_keeps_the_pin_and_moves_the_end(locks: Locks) -> None:
    code = make(locks)
    later = ENDS + timedelta(days=2)
    changed = locks.update_code(code.id, starts_at=STARTS, ends_at=later)
    assert changed.ends_at == later
    assert (changed.id, changed.pin) == (code.id, PIN)


def test_update_of_a_lost_code_says_so(locks: Locks) -> None:
    make(locks)
    with pytest.raises(Rejected) as refused:
        locks.update_code("no-such-code", starts_at=STARTS, ends_at=ENDS)
    assert refused.value.code == "code_gone"


def test_an_accepted_update_that_cannot_be_read_back_is_unknown(
    seam: Running, locks: Locks
) -> None:
    code = make(locks)
    seam.fault("error_500_before", "/access_codes/get")
    with pytest.raises(Unknown):
        locks.update_code(code.id, starts_at=STARTS, ends_at=ENDS + timedelta(days=1))
    assert seam.counts()["POST /access_codes/update"] == 1


def test_g5_delete_is_accepted_first_and_gone_later(seam: Running, locks: Locks) -> None:
    code = make(locks)
    seam.control("hold", {"stage": "removing"})
    locks.delete_code(code.id, device_id="door-1")
    assert became(locks, code, "removing")
    seam.control("hold", {"stage": "removing", "held": False})
    assert gone(locks, code)


def test_g5_delete_of_a_gone_code_is_a_success(seam: Running, locks: Locks) -> None:
    make(locks)  # another code on the device must not be taken for it
    locks.delete_code("no-such-code", device_id="door-1")
    assert len(seam.control("codes")) == 1


def test_g4_a_duplicate_pin_is_told_apart(locks: Locks) -> None:
    make(locks)
    with pytest.raises(Rejected) as refused:
        make(locks, name="another stay")
    assert refused.value.code == "duplicate_code"


def test_g4_a_duplicate_found_on_the_device_is_an_error_of_the_code(
    seam: Running, locks: Locks
) -> None:
    seam.control("refuse_codes", {"error_code": "duplicate_code_on_device"})
    code = make(locks)
    assert became(locks, code, "unset")
    now = locks.get_code(code.id)
    assert now is not None
    assert now.errors == ("duplicate_code_on_device",)


def test_g13_a_change_behind_our_back_shows_as_an_error(seam: Running, locks: Locks) -> None:
    code = make(locks)
    assert became(locks, code, "set")
    seam.control(f"codes/{code.id}/modify", {"code": "999111"})
    now = locks.get_code(code.id)
    assert now is not None
    assert now.errors == ("conflicting_external_modification",)
    seam.control(f"codes/{code.id}/remove", {"gone": True})
    assert locks.get_code(code.id) is None


def test_device_tells_whether_it_is_there(seam: Running, locks: Locks) -> None:
    seam.control("devices/door-1", {"online": False, "battery_level": 0.25, "max_codes": 5})
    door = locks.device("door-1")
    assert door is not None
    assert (door.name, door.online, door.battery, door.max_codes) == ("Front", False, 0.25, 5)
    assert locks.device("no-such-door") is None


def test_an_unknown_device_refuses_a_code(locks: Locks) -> None:
    with pytest.raises(Rejected) as refused:
        make(locks, device_id="no-such-door")
    assert refused.value.code == "device_not_found"


def test_a_wrong_key_is_refused(seam: Running) -> None:
    with pytest.raises(Rejected) as refused:
        make(SeamLocks("seam_wrong_key", endpoint=seam.url))
    assert refused.value.code == "unauthorized"


@pytest.mark.parametrize("mode", UNCLEAR)
@pytest.mark.parametrize("write", WRITES)
def test_an_unclear_write_is_unknown_and_sent_once(
    seam: Running, locks: Locks, write: str, mode: str
) -> None:
    code = make(locks)
    path, call = WRITES[write]
    before = len(seam.control(f"requests?path={path}"))
    seam.fault(mode, path, seconds=5)
    with pytest.raises(Unknown):
        call(impatient(seam) if mode == "stall" else locks, code)
    assert len(seam.control(f"requests?path={path}")) == before + 1


@pytest.mark.parametrize("mode", UNCLEAR)
@pytest.mark.parametrize("read", READS)
def test_an_unclear_read_changed_nothing(seam: Running, locks: Locks, read: str, mode: str) -> None:
    code = make(locks)
    seam.fault(mode, method="GET", seconds=5)
    with pytest.raises(Unreachable):
        READS[read](impatient(seam) if mode == "stall" else locks, code)


def test_g10_a_code_made_without_an_answer_is_found_by_its_name(
    seam: Running, locks: Locks
) -> None:
    seam.fault("do_then_drop", "create")
    with pytest.raises(Unknown):
        make(locks)
    found = locks.find_code("door-1", "stay 7f")
    assert found is not None
    assert found.pin == PIN
    assert seam.counts() == {"POST /access_codes/create": 1}


@pytest.mark.parametrize("call", [*[w[1] for w in WRITES.values()], *READS.values()])
def test_a_rate_limit_says_when_to_come_back(
    seam: Running, locks: Locks, call: Callable[[Locks, LockCode], object]
) -> None:
    code = make(locks)
    seam.fault("rate_limit", seconds=7)
    with pytest.raises(Unreachable) as waiting:
        call(locks, code)
    assert waiting.value.retry_after == 7


def test_a_closed_port_did_nothing(seam: Running, locks: Locks) -> None:
    code = make(locks)
    seam.control("unlisten", {"seconds": 1.5})
    for call in [*[w[1] for w in WRITES.values()], *READS.values()]:
        with pytest.raises(Unreachable):
            call(locks, code)
    assert eventually(lambda: reachable(locks))


def reachable(locks: Locks) -> bool:
    try:
        return locks.device("door-1") is not None
    except Unreachable:
        return False


@pytest.mark.parametrize("endpoint", ["http://no-such-host.invalid", "http://127.0.0.1:1"])
def test_a_host_that_is_not_there_did_nothing(endpoint: str) -> None:
    with pytest.raises(Unreachable):
        make(SeamLocks(KEY, endpoint=endpoint))


def test_nothing_blocks_longer_than_its_time(seam: Running) -> None:
    seam.fault("stall", seconds=20)
    began = time.monotonic()
    with pytest.raises(Unknown):
        make(impatient(seam))
    assert time.monotonic() - began < 3


def test_down_for_everything(seam: Running, locks: Locks) -> None:
    seam.control("down", {"down": True})
    with pytest.raises(Unreachable):
        locks.device("door-1")
    with pytest.raises(Unknown):
        make(locks)
    seam.control("down", {"down": False})
    assert locks.device("door-1") is not None


@contextmanager
def answering(*raw: bytes) -> Iterator[str]:
    """A server that gives these answers one after the other, and then the last one for ever."""
    answers = list(raw)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.recv(65536)
                    client.sendall(answers.pop(0) if len(answers) > 1 else answers[0])

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def reply(status: str, body: str, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


def test_a_page_that_says_404_is_not_a_removed_code() -> None:
    with answering(reply("404 Not Found", "<h1>nginx</h1>", "text/html")) as endpoint:
        locks = SeamLocks(KEY, endpoint=endpoint)
        with pytest.raises(Rejected):
            locks.get_code("c1")
        with pytest.raises(Rejected):
            locks.delete_code("c1", device_id="d1")


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"access_code": {}}',
        '{"access_code": 5}',
        "[]",
        "nonsense",
        '{"access_code": {"errors": 1}}',
    ],
)
def test_an_unreadable_answer_is_not_a_success(body: str) -> None:
    with answering(reply("200 OK", body)) as endpoint:
        locks = SeamLocks(KEY, endpoint=endpoint)
        with pytest.raises(Unknown):
            make(locks)
        with pytest.raises(Unreachable):
            locks.get_code("c1")


def test_half_an_answer_is_unknown() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"
    with answering(half) as endpoint, pytest.raises(Unknown):
        make(SeamLocks(KEY, endpoint=endpoint))


@pytest.mark.parametrize("status", [408, 502, 503, 504])
def test_what_a_gateway_says_about_a_write_is_unknown(status: int) -> None:
    with answering(reply(f"{status} Odd", "<h1>odd</h1>", "text/html")) as endpoint:
        with pytest.raises(Unknown) as unclear:
            make(SeamLocks(KEY, endpoint=endpoint))
        assert unclear.value.code == f"http_{status}"


def page(name: str, *, more: bool) -> bytes:
    code = {"access_code_id": name, "device_id": "d1", "name": name, "code": "1", "status": "set"}
    pagination = {"has_next_page": more, "next_page_cursor": "next" if more else None}
    return reply("200 OK", json.dumps({"access_codes": [code], "pagination": pagination}))


def test_a_code_on_a_later_page_is_found() -> None:
    with answering(page("one", more=True), page("two", more=False)) as endpoint:
        found = SeamLocks(KEY, endpoint=endpoint).find_code("d1", "two")
    assert found is not None
    assert found.id == "two"


def test_a_list_without_an_end_does_not_mean_absent() -> None:
    with answering(page("one", more=True)) as endpoint, pytest.raises(Unreachable):
        SeamLocks(KEY, endpoint=endpoint).find_code("d1", "two")


def test_the_pin_appears_nowhere_but_in_the_request(
    seam: Running, locks: Locks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    code = make(locks)
    assert PIN not in repr(code)
    for mode in ["refuse", "do_then_drop", "error_500_before", "rate_limit"]:
        seam.fault(mode, "create")
    problems = []
    for _ in range(6):
        try:
            make(locks)
        except EdgeError as problem:
            problems.append(problem)
    assert {type(problem) for problem in problems} == {Unknown, Unreachable, Rejected}
    for problem in problems:
        assert PIN not in "".join(traceback.format_exception(problem))
        assert problem.__cause__ is None
        assert problem.__context__ is None
    assert PIN not in caplog.text


def test_no_call_leaves_while_a_transaction_is_open(seam: Running, locks: Locks) -> None:
    code = make(locks)
    before = len(seam.control("requests"))
    transaction_began()
    try:
        for call in [*[w[1] for w in WRITES.values()], *READS.values()]:
            with pytest.raises(TransactionOpenError):
                call(locks, code)
    finally:
        transaction_ended()
    assert len(seam.control("requests")) == before
