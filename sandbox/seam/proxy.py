"""The public face: Seam's API passed on to the fake, and the control door beside it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from sandbox.faults import Door
from sandbox.seam.controller import EVERYWHERE, Controller, Refusal

PASSED_ON = ("authorization", "content-type", "seam-workspace", "accept")


class Proxy:
    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.fake = controller.fake
        self.door = Door(error_body)
        self.door.on_reset.append(controller.reset)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.door.middleware()])
        app.add_routes(
            [
                *self.door.routes(),
                web.get("/_control/api_key", self.api_key),
                web.get("/_control/codes", self.codes),
                web.post("/_control/codes/{id}/modify", self.modify),
                web.post("/_control/codes/{id}/remove", self.remove),
                web.post("/_control/hold", self.hold),
                web.post("/_control/refuse_codes", self.refuse_codes),
                web.post("/_control/settings", self.settings),
                web.get("/_control/devices", self.devices),
                web.post("/_control/devices", self.add_device),
                web.post("/_control/devices/{id}", self.change_device),
                web.post("/_control/events", self.emit),
                web.get("/_control/webhooks", self.show_webhooks),
                web.post("/_control/webhooks", self.set_webhooks),
                web.post("/_control/webhooks/resend", self.resend),
                web.post("/access_codes/create", self.create),
                web.post("/access_codes/update", self.update),
                web.route("*", "/access_codes/delete", self.delete),
                web.route("*", "/{path:.*}", self.forward),
            ]
        )
        return app

    # Seam's API

    async def forward(self, request: web.Request) -> web.Response:
        status, headers, body = await self._ask(request)
        return web.Response(status=status, headers=headers, body=body)

    async def create(self, request: web.Request) -> web.Response:
        status, headers, body = await self._ask(request)
        if status == 200:
            code = await self.controller.created(json.loads(body)["access_code"])
            body = json.dumps({"access_code": code, "ok": True}).encode()
        return web.Response(status=status, headers=headers, body=body)

    async def update(self, request: web.Request) -> web.Response:
        status, headers, body = await self._ask(request)
        if status == 200:
            await self.controller.updated((await request.json())["access_code_id"])
        return web.Response(status=status, headers=headers, body=body)

    async def delete(self, request: web.Request) -> web.Response:
        """Accepted, not done: the code is `removing` first. The fake would forget it at once."""
        code_id = await asked_code(request)
        if code_id is None or await self.controller.find(code_id) is None:
            return await self.forward(request)
        wanted = json.dumps({"access_code_id": code_id}).encode()
        status, headers, body = await self.fake.ask(
            "POST", "/access_codes/get", passed_on(request), wanted
        )
        if status == 200:
            await self.controller.removal_asked(code_id)
            body = b'{"ok": true}'
        return web.Response(status=status, headers=headers, body=body)

    async def _ask(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        return await self.fake.ask(
            request.method, request.path_qs, passed_on(request), await request.read()
        )

    # The control door

    async def api_key(self, _: web.Request) -> web.Response:
        """The key that the portal uses."""
        return web.json_response({"api_key": self.fake.api_key})

    async def codes(self, request: web.Request) -> web.Response:
        """?device_id=…: every code as the controller has it, PIN included."""
        wanted = request.query.get("device_id")
        found = await self.fake.read("access_codes")
        return web.json_response([c for c in found if wanted in (None, c["device_id"])])

    async def modify(self, request: web.Request) -> web.Response:
        """{"code", "name", "starts_at", …}: changed in the vendor's app."""
        changes = await request.json()
        return await self._tried(self.controller.modify(request.match_info["id"], changes))

    async def remove(self, request: web.Request) -> web.Response:
        """{"gone": bool}: removed in the vendor's app; gone: Seam answers 404 from now on."""
        asked = await request.json() if request.can_read_body else {}
        gone = bool(asked.get("gone", False))
        return await self._tried(self.controller.remove(request.match_info["id"], gone=gone))

    async def _tried(self, doing: Any) -> web.Response:
        try:
            await doing
        except LookupError as missing:
            return web.json_response({"error": str(missing)}, status=404)
        return web.json_response({"ok": True})

    async def hold(self, request: web.Request) -> web.Response:
        """{"stage": "setting"|"removing", "held": bool, "device_id": optional}"""
        asked = await request.json()
        if asked.get("stage") not in ("setting", "removing"):
            return web.json_response({"error": "stage is setting or removing"}, status=400)
        pair = (asked["stage"], asked.get("device_id") or EVERYWHERE)
        held = self.controller.held
        (held.add if asked.get("held", True) else held.discard)(pair)
        return web.json_response({"held": sorted(held)})

    async def refuse_codes(self, request: web.Request) -> web.Response:
        """{"error_code": "duplicate_code_on_device", "times": 1, "device_id": optional}"""
        asked = await request.json()
        error_code = asked.get("error_code", "duplicate_code_on_device")
        device_id = asked.get("device_id") or EVERYWHERE
        self.controller.refusals.append(Refusal(error_code, device_id, int(asked.get("times", 1))))
        return web.json_response([vars(refusal) for refusal in self.controller.refusals])

    async def settings(self, request: web.Request) -> web.Response:
        """{"settle_seconds": float, "load_ahead_seconds": float|null, "now": ISO time|null}"""
        asked = await request.json()
        controller = self.controller
        controller.settle_seconds = float(asked.get("settle_seconds", controller.settle_seconds))
        if "load_ahead_seconds" in asked:
            ahead = asked["load_ahead_seconds"]
            controller.load_ahead = None if ahead is None else timedelta(seconds=ahead)
        if "now" in asked:
            controller.offset = offset_of(asked["now"])
        return web.json_response({"ok": True, "now": controller.now().isoformat()})

    async def devices(self, _: web.Request) -> web.Response:
        """Every device as the fake has it."""
        return web.json_response(await self.fake.read("devices"))

    async def add_device(self, request: web.Request) -> web.Response:
        """{"name": str, "device_id": optional, "max_codes": optional}"""
        asked = await request.json()
        device_id, name = asked.get("device_id"), asked.get("name", "Door")
        there = [d for d in await self.fake.read("devices") if d["device_id"] == device_id]
        device = (
            there[0]
            if there
            else await self.controller.add_device(device_id, name, max_codes=asked.get("max_codes"))
        )
        return web.json_response({"device_id": device["device_id"], "device": device})

    async def change_device(self, request: web.Request) -> web.Response:
        """{"online": bool, "battery_level": 0…1, "max_codes": int}, each optional"""
        asked, device_id = await request.json(), request.match_info["id"]
        if not any(d["device_id"] == device_id for d in await self.fake.read("devices")):
            return web.json_response({"error": f"there is no device {device_id}"}, status=404)
        names = {"battery_level": "battery_level", "max_codes": "max_active_codes_supported"}
        changes = {names[key]: value for key, value in asked.items() if key in names}
        if "battery_level" in changes:
            changes["battery"] = {"level": changes["battery_level"], "status": "good"}
        if changes:
            await self.controller.change_device(device_id, changes)
        if "online" in asked:
            await self.controller.set_online(device_id, online=bool(asked["online"]))
        return web.json_response({"ok": True})

    async def emit(self, request: web.Request) -> web.Response:
        """{"event_type": …, "device_id": optional, …}: any event, true or not, late or not."""
        asked = await request.json()
        await self.controller.emit(asked.pop("event_type"), asked.pop("device_id", None), **asked)
        return web.json_response({"ok": True})

    async def show_webhooks(self, _: web.Request) -> web.Response:
        """Where webhooks go, and what became of each."""
        hooks = self.controller.webhooks
        seen = [delivery.seen() for delivery in hooks.deliveries]
        return web.json_response({"url": hooks.url, "mode": hooks.mode, "deliveries": seen})

    async def set_webhooks(self, request: web.Request) -> web.Response:
        """{"url", "secret", "mode": deliver|hold|drop, "order": "backwards"}, each optional"""
        asked, hooks = await request.json(), self.controller.webhooks
        hooks.url = asked.get("url", hooks.url)
        hooks.secret = asked.get("secret", hooks.secret)
        hooks.mode = asked.get("mode", hooks.mode)
        if hooks.mode == "deliver":
            hooks.release(backwards=asked.get("order") == "backwards")
        return await self.show_webhooks(request)

    async def resend(self, request: web.Request) -> web.Response:
        """{"event_id": …}: the same event once more, as after a lost answer."""
        count = self.controller.webhooks.resend((await request.json())["event_id"])
        return web.json_response({"resent": count})


def passed_on(request: web.Request) -> dict[str, str]:
    return {name: request.headers[name] for name in PASSED_ON if name in request.headers}


async def asked_code(request: web.Request) -> str | None:
    """The code that a delete names, in the body or (Seam allows it) in the query."""
    try:
        named = json.loads(await request.read() or b"{}").get("access_code_id")
    except (ValueError, AttributeError):
        return None
    return named or request.query.get("access_code_id")


def offset_of(now: str | None) -> timedelta:
    return datetime.fromisoformat(now) - datetime.now(UTC) if now else timedelta()


def error_body(status: int) -> dict[str, Any]:
    """Seam's own shape of an error."""
    kinds = {429: ("rate_limit_exceeded", "Too many requests")}
    kind, message = kinds.get(status, ("internal_server_error", "Internal server error"))
    return {"error": {"type": kind, "message": message}, "ok": False}
