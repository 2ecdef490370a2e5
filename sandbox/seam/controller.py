"""What a real lock system adds to the fake: time. Codes are being set, refused, removed.

The fake creates a code and leaves it `unset` for ever, and forgets a deleted one at once. Here a
code goes setting → set and removing → gone by itself after `settle_seconds`, unless somebody
holds it, the device is offline, full, or was told to refuse.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox.seam.fake import ACCOUNT, WORKSPACE, Fake
from sandbox.seam.memory import keep, recall
from sandbox.seam.webhooks import Webhooks

TICK = 0.05
EVERYWHERE = "*"
MESSAGES = {
    "duplicate_code_on_device": "Duplicate access code detected on device.",
    "no_space_for_access_code_on_device": "No space for access code on device.",
    "conflicting_external_modification": "Code was modified or removed externally.",
}
Code = dict[str, Any]


@dataclass
class Waiting:
    """A code that is on its way. `stage`: setting, removing or scheduled."""

    stage: str
    device_id: str
    starts_at: datetime | None
    due: float


@dataclass
class Refusal:
    """The next `remaining` codes on this device (or any) end `unset` with this error."""

    error_code: str
    device_id: str
    remaining: int


class Controller:
    """State of the locks. Only this class changes a code's status or emits an event."""

    def __init__(
        self,
        fake: Fake,
        webhook_url: str | None,
        webhook_secret: str | None,
        file: Path | None = None,
    ) -> None:
        self.fake, self.file = fake, file
        self.settle_seconds = 0.2
        self.load_ahead: timedelta | None = None
        self.offset = timedelta()
        self.webhooks = Webhooks(webhook_url, webhook_secret, self.now)
        self.waiting: dict[str, Waiting] = {}
        self.held: set[tuple[str, str]] = set()
        self.offline: set[str] = set()
        self.refusals: list[Refusal] = []
        self.devices_at_start: dict[str, str] = {}
        self._told = 0
        self._telling = asyncio.Lock()
        self._loop: asyncio.Task[None] | None = None

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    async def start(self, devices: dict[str, str]) -> None:
        self.devices_at_start = dict(devices)
        known = await self._recall()
        for device_id, name in devices.items():
            if device_id not in known:
                await self.add_device(device_id, name)
        self._loop = asyncio.create_task(self._run())

    async def _recall(self) -> set[str]:
        """What the last run left, with the codes that were on their way. Returns the devices."""
        state = await recall(self.fake, self.file)
        self._told = len(state["events"])
        for code in state["access_codes"]:
            if code["status"] in ("setting", "removing"):
                self._await(code, code["status"])
        devices = state["devices"]
        self.offline = {d["device_id"] for d in devices if not d["properties"]["online"]}
        return {device["device_id"] for device in devices}

    async def stop(self) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await keep(self.fake, self.file)
        await self.webhooks.close()

    async def reset(self) -> None:
        """Back to the devices of the start, no code, no event, no hold, the real clock."""
        await self.webhooks.forget()
        self.waiting.clear()
        self.held.clear()
        self.offline.clear()
        self.refusals.clear()
        self.settle_seconds, self.load_ahead, self.offset = 0.2, None, timedelta()
        self._told = 0
        await self.fake.call("setState", {"access_codes": [], "devices": [], "events": []})
        for device_id, name in self.devices_at_start.items():
            await self.add_device(device_id, name)

    # Devices

    async def add_device(
        self, device_id: str | None, name: str, *, max_codes: int | None = None
    ) -> dict[str, Any]:
        made: dict[str, Any] = await self.fake.call(
            "addDevice",
            {
                **({"device_id": device_id} if device_id else {}),
                "device_type": "august_lock",
                "display_name": name,
                "name": name,
                "connected_account_id": ACCOUNT,
                "workspace_id": WORKSPACE,
                "can_remotely_lock": True,
                "can_remotely_unlock": True,
                "can_program_online_access_codes": True,
                "properties": {
                    "manufacturer": "august",
                    "locked": True,
                    "battery_level": 0.9,
                    "battery": {"level": 0.9, "status": "full"},
                    **({"max_active_codes_supported": max_codes} if max_codes else {}),
                },
            },
        )
        return made

    async def set_online(self, device_id: str, *, online: bool) -> None:
        await self.change_device(device_id, {"online": online})
        (self.offline.discard if online else self.offline.add)(device_id)
        await self.emit("device.connected" if online else "device.disconnected", device_id)

    async def change_device(self, device_id: str, properties: dict[str, Any]) -> None:
        await self.fake.call("updateDevice", {"device_id": device_id, "properties": properties})

    # What the API did

    async def created(self, code: Code) -> Code:
        """A code was accepted: it is being set now, or it waits for its day."""
        stage = "setting" if self._near(instant(code, "starts_at")) else "scheduled"
        changed = await self._change(code, status="setting" if stage == "setting" else "unset")
        if stage == "scheduled":
            await self.emit_for("access_code.scheduled_on_device", changed)
        self._await(changed, stage)
        await self.tell()
        return changed

    async def updated(self, code_id: str) -> None:
        code = await self.find(code_id)
        if code is None:
            return
        changed = await self._change(code, status="setting", errors=[])
        await self.emit_for("access_code.changed", changed)
        self._await(changed, "setting")

    async def removal_asked(self, code_id: str) -> None:
        code = await self.find(code_id)
        if code is None:
            return
        await self._change(code, status="removing")
        self._await(code, "removing")

    # Behind the portal's back

    async def modify(self, code_id: str, changes: dict[str, Any]) -> None:
        """Somebody changed the code in the vendor's app."""
        code = await self._existing(code_id)
        error = error_of("conflicting_external_modification", change_type="modified")
        changed = await self._change(code, errors=[error], **changes)
        await self.emit_for("access_code.modified_external_to_seam", changed)

    async def remove(self, code_id: str, *, gone: bool) -> None:
        """Somebody removed it there. `gone`: Seam forgets it too and answers 404."""
        code = await self._existing(code_id)
        self.waiting.pop(code_id, None)
        if gone:
            await self.fake.call("deleteAccessCode", code_id)
        else:
            error = error_of("conflicting_external_modification", change_type="removed")
            await self._change(code, status="unset", errors=[error])
        await self.emit_for("access_code.deleted_external_to_seam", code)

    # The loop that moves codes on

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            await said(keep(self.fake, self.file))
            for code_id, waiting in list(self.waiting.items()):
                if self._ready(waiting):
                    await said(self._settle(code_id, waiting))

    def _ready(self, waiting: Waiting) -> bool:
        if waiting.stage == "scheduled":
            return self._near(waiting.starts_at)
        held = {(waiting.stage, waiting.device_id), (waiting.stage, EVERYWHERE)} & self.held
        return not held and waiting.device_id not in self.offline and time.monotonic() > waiting.due

    async def _settle(self, code_id: str, waiting: Waiting) -> None:
        if self.waiting.get(code_id) is not waiting:
            return
        del self.waiting[code_id]
        code = await self.find(code_id)
        if code is None:
            return
        if waiting.stage == "removing":
            await self._removed(code)
        elif waiting.stage == "scheduled":
            await self._change(code, status="setting")
            self._await(code, "setting")
        else:
            await self._set(code)

    async def _set(self, code: Code) -> None:
        if error_code := await self._refusal(code):
            code = await self._change(code, status="unset", errors=[error_of(error_code)])
            await self.emit_for("access_code.failed_to_set_on_device", code, errors=code["errors"])
            return
        code = await self._change(code, status="set", errors=[])
        await self.emit_for("access_code.set_on_device", code, code=code["code"])

    async def _removed(self, code: Code) -> None:
        await self.fake.call("deleteAccessCode", code["access_code_id"])
        await self.emit_for("access_code.removed_from_device", code)
        await self.emit_for("access_code.deleted", code)

    async def _refusal(self, code: Code) -> str | None:
        for refusal in self.refusals:
            if refusal.remaining > 0 and refusal.device_id in (code["device_id"], EVERYWHERE):
                refusal.remaining -= 1
                return refusal.error_code
        devices = await self.fake.read("devices")
        device = next(d for d in devices if d["device_id"] == code["device_id"])
        room = device["properties"].get("max_active_codes_supported")
        if room is not None and await self._others_on(code) >= room:
            return "no_space_for_access_code_on_device"
        return None

    async def _others_on(self, code: Code) -> int:
        return sum(
            other["device_id"] == code["device_id"]
            and other["access_code_id"] != code["access_code_id"]
            and other["status"] in ("set", "removing")
            for other in await self.fake.read("access_codes")
        )

    def _near(self, starts_at: datetime | None) -> bool:
        if self.load_ahead is None or starts_at is None:
            return True
        return starts_at - self.now() <= self.load_ahead

    def _await(self, code: Code, stage: str) -> None:
        self.waiting[code["access_code_id"]] = Waiting(
            stage,
            code["device_id"],
            instant(code, "starts_at"),
            time.monotonic() + self.settle_seconds,
        )

    # The fake's database and its events

    async def find(self, code_id: str) -> Code | None:
        for code in await self.fake.read("access_codes"):
            if code["access_code_id"] == code_id:
                return code
        return None

    async def _existing(self, code_id: str) -> Code:
        code = await self.find(code_id)
        if code is None:
            raise LookupError(f"there is no code {code_id}")
        return code

    async def _change(self, code: Code, /, **changes: Any) -> Code:
        changed: Code = await self.fake.call(
            "updateAccessCode", {"access_code_id": code["access_code_id"], **changes}
        )
        return changed

    async def emit_for(self, event_type: str, code: Code, /, **extra: Any) -> None:
        await self.emit(
            event_type, code["device_id"], access_code_id=code["access_code_id"], **extra
        )

    async def emit(self, event_type: str, device_id: str | None, **extra: Any) -> None:
        """Put an event into the fake's list, where the portal can also find it by asking."""
        stamp = self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        order = {
            "event_type": event_type,
            "workspace_id": WORKSPACE,
            "connected_account_id": ACCOUNT,
            "device_id": device_id,
            "created_at": stamp,
            "occurred_at": stamp,
            **extra,
        }
        await self.fake.call("addEvent", order)
        await self.tell()

    async def tell(self) -> None:
        """Send a webhook for every event of the fake's list that none was sent for yet."""
        async with self._telling:
            fresh = await self.fake.read("events", self._told)
            self._told += len(fresh)
            for event in fresh:
                self.webhooks.send(event)


async def said(step: Coroutine[Any, Any, None]) -> None:
    """Do one step of the loop. One odd code must not stop the locks, nor go unnoticed."""
    try:
        await step
    except Exception:
        traceback.print_exc()


def instant(code: Code, key: str) -> datetime | None:
    text = code.get(key)
    return datetime.fromisoformat(text) if text else None


def error_of(error_code: str, **extra: Any) -> dict[str, Any]:
    return {
        "error_code": error_code,
        "message": MESSAGES.get(error_code, error_code.replace("_", " ")),
        "is_access_code_error": True,
        "created_at": datetime.now(UTC).isoformat(),
        **extra,
    }
