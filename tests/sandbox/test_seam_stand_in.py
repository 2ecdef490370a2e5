"""The stand-in of Seam by itself: time, holds, webhooks, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from portal.edges.locks import verify
from sandbox.seam.running import ROOT, Running, eventually

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
SOON = datetime.now(UTC).replace(microsecond=0)


class Inbox:
    """A receiver of webhooks that answers as it is told and keeps what came."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, dict[str, str]]] = []
        self.answers: list[int] = []
        inbox = self

        class Receive(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.got.append((body, dict(self.headers.items())))
                self.send_response(inbox.answers.pop(0) if inbox.answers else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Receive)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/seam"

    def types(self) -> list[str]:
        return [json.loads(body)["event_type"] for body, _ in self.got]


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.server.shutdown()
    inbox.server.server_close()


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with Running("sandbox.seam", "--device", "door-1=Front") as seam:
        yield seam


@pytest.fixture
def seam(started: Running, inbox: Inbox) -> Running:
    started.reset()
    started.control("webhooks", {"url": inbox.url, "secret": SECRET})
    return started


def ask(seam: Running, path: str, body: dict[str, Any], key: str = "seam_apikey1_token") -> Any:
    request = urllib.request.Request(
        seam.url + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        return json.load(answer)


def create(seam: Running, name: str = "stay", code: str = "048213", days: int = 1) -> str:
    body = {
        "device_id": "door-1",
        "name": name,
        "code": code,
        "starts_at": (SOON + timedelta(days=days)).isoformat(),
        "ends_at": (SOON + timedelta(days=days + 1)).isoformat(),
    }
    made: str = ask(seam, "/access_codes/create", body)["access_code"]["access_code_id"]
    return made


def status(seam: Running, code_id: str) -> str | None:
    codes = {code["access_code_id"]: code for code in seam.control("codes")}
    return codes[code_id]["status"] if code_id in codes else None


def becomes(seam: Running, code_id: str, wanted: str | None) -> bool:
    return eventually(lambda: status(seam, code_id) == wanted)


def states(seam: Running) -> list[str]:
    """What became of each webhook."""
    return [one["state"] for one in seam.control("webhooks")["deliveries"]]


def arrived(inbox: Inbox, *types: str) -> bool:
    return eventually(lambda: set(types) <= set(inbox.types()))


def test_a_life_of_a_code_is_told_by_signed_webhooks(seam: Running, inbox: Inbox) -> None:
    code_id = create(seam)
    assert becomes(seam, code_id, "set")
    ask(seam, "/access_codes/delete", {"access_code_id": code_id})
    assert becomes(seam, code_id, None)
    assert arrived(
        inbox,
        "access_code.created",
        "access_code.set_on_device",
        "access_code.removed_from_device",
        "access_code.deleted",
    )
    for body, headers in inbox.got:
        event = verify(body, headers, [SECRET], datetime.now(UTC))
        assert event.payload["access_code_id"] == code_id


def test_seams_own_sdk_accepts_the_webhook(seam: Running, inbox: Inbox) -> None:
    from seam import SeamWebhook  # type: ignore[attr-defined]

    create(seam)
    assert arrived(inbox, "access_code.set_on_device")
    body, headers = inbox.got[-1]
    event = SeamWebhook(SECRET).verify(body.decode(), headers)
    assert event.event_type == "access_code.set_on_device"


def test_a_webhook_is_repeated_until_it_is_accepted(seam: Running, inbox: Inbox) -> None:
    inbox.answers = [500, 503]
    create(seam)
    assert arrived(inbox, "access_code.created", "access_code.set_on_device")
    assert eventually(lambda: len(inbox.got) >= 4)
    ids = [headers["svix-id"] for _, headers in inbox.got]
    assert len(set(ids)) < len(ids)


def test_codes_are_held_and_released(seam: Running) -> None:
    seam.control("hold", {"stage": "setting"})
    code_id = create(seam)
    assert not eventually(lambda: status(seam, code_id) != "setting", seconds=0.6)
    seam.control("hold", {"stage": "setting", "held": False})
    assert becomes(seam, code_id, "set")
    seam.control("hold", {"stage": "removing", "device_id": "door-1"})
    ask(seam, "/access_codes/delete", {"access_code_id": code_id})
    assert not eventually(lambda: status(seam, code_id) != "removing", seconds=0.6)
    seam.control("hold", {"stage": "removing", "device_id": "door-1", "held": False})
    assert becomes(seam, code_id, None)


def test_an_offline_door_waits(seam: Running, inbox: Inbox) -> None:
    seam.control("devices/door-1", {"online": False})
    code_id = create(seam)
    assert not eventually(lambda: status(seam, code_id) == "set", seconds=0.6)
    seam.control("devices/door-1", {"online": True})
    assert becomes(seam, code_id, "set")
    assert arrived(inbox, "device.disconnected", "device.connected")


def test_g2_a_far_code_stays_unset_without_errors(seam: Running, inbox: Inbox) -> None:
    seam.control("settings", {"load_ahead_seconds": 72 * 3600})
    code_id = create(seam, days=30)
    assert not eventually(lambda: status(seam, code_id) != "unset", seconds=0.6)
    assert seam.control("codes")[0]["errors"] == []
    assert arrived(inbox, "access_code.scheduled_on_device")
    seam.control("settings", {"now": (SOON + timedelta(days=28)).isoformat()})
    assert becomes(seam, code_id, "set")


def test_g8_a_full_door_refuses(seam: Running, inbox: Inbox) -> None:
    seam.control("devices/door-1", {"max_codes": 1})
    assert becomes(seam, create(seam, "one", "111222"), "set")
    second = create(seam, "two", "333444")
    assert becomes(seam, second, "unset")
    errors = [code["errors"] for code in seam.control("codes")][1]
    assert [error["error_code"] for error in errors] == ["no_space_for_access_code_on_device"]
    assert arrived(inbox, "access_code.failed_to_set_on_device")


def test_g13_events_can_come_late_and_backwards(seam: Running, inbox: Inbox) -> None:
    seam.control("webhooks", {"mode": "hold"})
    create(seam)
    # The lock takes a code a moment before that is told.
    assert eventually(lambda: states(seam) == ["held", "held"])
    assert inbox.got == []
    seam.control("webhooks", {"mode": "deliver", "order": "backwards"})
    assert eventually(lambda: inbox.types() == ["access_code.set_on_device", "access_code.created"])


def test_lost_webhooks_can_still_be_listed(seam: Running, inbox: Inbox) -> None:
    seam.control("webhooks", {"mode": "drop"})
    create(seam)
    since = {"since": (SOON - timedelta(days=1)).isoformat()}

    def kinds() -> list[str]:
        return [event["event_type"] for event in ask(seam, "/events/list", since)["events"]]

    assert eventually(lambda: kinds() == ["access_code.created", "access_code.set_on_device"])
    assert inbox.got == []


def test_an_event_can_be_delivered_twice(seam: Running, inbox: Inbox) -> None:
    create(seam)
    assert arrived(inbox, "access_code.set_on_device")
    event_id = json.loads(inbox.got[0][0])["event_id"]
    seam.control("webhooks/resend", {"event_id": event_id})
    assert eventually(lambda: len(inbox.got) == 3)
    assert inbox.got[2][1]["svix-id"] == inbox.got[0][1]["svix-id"]


def test_the_door_lists_its_verbs(seam: Running) -> None:
    verbs = seam.control("")["verbs"]
    assert "POST /_control/hold" in verbs
    assert all(verbs.values())


def test_any_event_can_be_made_up(seam: Running, inbox: Inbox) -> None:
    order = {"event_type": "lock.unlocked", "device_id": "door-1", "method": "keycode"}
    seam.control("events", order)
    assert arrived(inbox, "lock.unlocked")


@pytest.mark.parametrize("gone", [False, True])
def test_g13_removed_in_the_vendors_app(seam: Running, inbox: Inbox, gone: bool) -> None:
    code_id = create(seam)
    assert becomes(seam, code_id, "set")
    seam.control(f"codes/{code_id}/remove", {"gone": gone})
    assert status(seam, code_id) == (None if gone else "unset")
    assert arrived(inbox, "access_code.deleted_external_to_seam")


def test_devices_are_added_under_the_ids_of_the_demo(seam: Running) -> None:
    added = seam.control("devices", {"device_id": "door-9", "name": "Cellar"})
    again = seam.control("devices", {"device_id": "door-9", "name": "Cellar"})
    assert added["device_id"] == again["device_id"] == "door-9"
    assert len(seam.control("devices")) == 2
    seam.reset()
    assert [device["device_id"] for device in seam.control("devices")] == ["door-1"]


def test_writes_are_counted_whether_answered_or_not(seam: Running) -> None:
    seam.fault("error_500_after", "create")
    seam.fault("error_500_before", "create")
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError):
            create(seam)
    create(seam, code="777000")
    assert seam.counts() == {"POST /access_codes/create": 2}


def test_the_key_is_checked(seam: Running) -> None:
    code_id = create(seam)
    for path in ["/access_codes/get", "/access_codes/delete"]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(seam, path, {"access_code_id": code_id}, key="seam_wrong")
        assert refused.value.code == 401
    assert becomes(seam, code_id, "set")


def test_the_locks_remember_over_a_restart(tmp_path: Path) -> None:
    start = (
        "sandbox.seam",
        "--state-file",
        str(tmp_path / "seam.json"),
        "--device",
        "door-1=Front",
    )
    with Running(*start) as seam:
        seam.control("devices", {"device_id": "door-9", "name": "Cellar"})
        code_id = create(seam)
        assert becomes(seam, code_id, "set")
        seam.control("hold", {"stage": "removing"})
        ask(seam, "/access_codes/delete", {"access_code_id": code_id})
        kept = create(seam, "two", "333444")
        assert becomes(seam, kept, "set")
    with Running(*start) as seam:
        assert {d["device_id"] for d in seam.control("devices")} == {"door-1", "door-9"}
        assert becomes(seam, code_id, None)
        assert status(seam, kept) == "set"
        assert create(seam, "three", "555666") not in (code_id, kept)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_does_not_stay_without_the_fake() -> None:
    seam = Running("sandbox.seam").start()
    assert seam.process is not None
    (child,) = children(seam.process.pid)
    os.kill(child, signal.SIGKILL)
    assert seam.process.wait(10) != 0
    seam.stop()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_takes_its_child_along(number: signal.Signals) -> None:
    # Whoever runs the tests in the background may have them ignore it, and a child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seam = Running("sandbox.seam").start()
    assert seam.process is not None
    (child,) = children(seam.process.pid)
    seam.process.send_signal(number)
    seam.process.wait(10)
    assert eventually(lambda: not alive(child))
    seam.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ends_with_its_parent() -> None:
    program = (
        "import os, time; from sandbox.seam.running import Running;"
        "r = Running('sandbox.seam').start(); print(r.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    (child,) = children(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    look: Callable[[], bool] = lambda: not alive(pid) and not alive(child)  # noqa: E731
    assert eventually(look)
