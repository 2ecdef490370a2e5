"""Failure modes and the control door that the stand-ins of Seam and LINE share.

A `Door` sits in front of every request that is not for `/_control/…`: it records the request,
then lets it through or spoils it as somebody asked through the control door. What it spoils, it
spoils on the wire: the client sees a real reset, a real silence, a real 500.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MODES = {
    "refuse": "the connection is cut, nothing is done",
    "do_then_drop": "the work is done, the connection is cut instead of an answer",
    "error_500_before": "500, nothing is done",
    "error_500_after": "the work is done, the answer is 500",
    "stall": "nothing is done and nothing is answered for `seconds`, then the connection is cut",
    "slow": "nothing is done for `seconds`, then everything, and it is answered well",
    "do_then_stall": "the work is done, then silence for `seconds`, then the connection is cut",
    "rate_limit": "429 with Retry-After `seconds`, nothing is done",
}
DOES_THE_WORK = {"do_then_drop", "error_500_after", "do_then_stall"}
WRITES = {"POST", "PUT", "PATCH", "DELETE"}


@dataclass
class Fault:
    """One order to spoil the next `remaining` requests that match."""

    mode: str
    method: str = ".*"
    path: str = ".*"
    remaining: int = 1
    seconds: float = 60.0

    def matches(self, request: web.Request) -> bool:
        return (
            self.remaining > 0
            and re.fullmatch(self.method, request.method, re.I) is not None
            and re.search(self.path, request.path) is not None
        )


@dataclass
class Seen:
    """One request as it arrived. `outcome` is the status, or the mode that spoiled it."""

    at: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    outcome: str = "pending"
    done: bool = False


class Door:
    """Counts, records and spoils the requests of one stand-in.

    `error_body(status)` gives the provider's own JSON for a made-up error. A handler may set
    `request["done"] = False` to say that it answered well without having done anything.
    """

    def __init__(self, error_body: Callable[[int], Any]) -> None:
        self.error_body = error_body
        self.down = False
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.released = asyncio.Event()
        self.on_reset: list[Callable[[], Awaitable[None]]] = []
        self.listener: Listener | None = None

    @property
    def done(self) -> Counter[str]:
        """How often each write was really carried out, answered or not."""
        return Counter(f"{seen.method} {seen.path}" for seen in self.seen if seen.done)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/_control/", self.help),
            web.get("/_control/faults", self.show_faults),
            web.post("/_control/faults", self.add_fault),
            web.delete("/_control/faults", self.clear_faults),
            web.post("/_control/down", self.set_down),
            web.post("/_control/unlisten", self.unlisten),
            web.get("/_control/requests", self.show_requests),
            web.get("/_control/counts", self.show_counts),
            web.post("/_control/reset", self.reset),
        ]

    def middleware(self) -> Any:
        @web.middleware
        async def watch(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path.startswith("/_control"):
                return await handler(request)
            seen = await record(request)
            self.seen.append(seen)
            return await self.pass_on(request, handler, seen)

        return watch

    async def pass_on(
        self, request: web.Request, handler: Handler, seen: Seen
    ) -> web.StreamResponse:
        mode, seconds = self.order_for(request)
        if mode == "slow":
            await self.wait(seconds)
            mode = ""
        if mode in DOES_THE_WORK or not mode:
            answer = await handler(request)
            seen.outcome = str(answer.status)
            seen.done = request.method in WRITES and answer.status < 300
            seen.done = request.get("done", seen.done)
            if not mode:
                return answer
        seen.outcome = mode
        return await self.spoil(request, mode, seconds)

    def order_for(self, request: web.Request) -> tuple[str, float]:
        if self.down:
            return "refuse", 0
        for fault in self.faults:
            if fault.matches(request):
                fault.remaining -= 1
                return fault.mode, fault.seconds
        return "", 0

    async def spoil(self, request: web.Request, mode: str, seconds: float) -> web.Response:
        if mode.startswith("error_500"):
            return web.json_response(self.error_body(500), status=500)
        if mode == "rate_limit":
            headers = {"Retry-After": str(int(seconds))}
            return web.json_response(self.error_body(429), status=429, headers=headers)
        if mode.endswith("stall"):
            await self.wait(seconds)
        return cut(request)

    async def wait(self, seconds: float) -> None:
        """So long, or until the faults are cleared."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.released.wait(), seconds)

    async def help(self, request: web.Request) -> web.Response:
        """This list."""
        verbs = {
            f"{route.method} {route.resource.canonical}": (route.handler.__doc__ or "").strip()
            for route in request.app.router.routes()
            if route.resource and route.resource.canonical.startswith("/_control")
            if route.method != "HEAD"
        }
        return web.json_response({"verbs": verbs, "modes": MODES})

    async def show_faults(self, _: web.Request) -> web.Response:
        """Orders that still wait, and whether everything is down."""
        waiting = [vars(fault) for fault in self.faults if fault.remaining > 0]
        return web.json_response({"down": self.down, "faults": waiting, "modes": MODES})

    async def add_fault(self, request: web.Request) -> web.Response:
        """{"mode", "method": regex, "path": regex, "times": 1, "seconds": …}"""
        asked = await request.json()
        if asked.get("mode") not in MODES:
            return web.json_response({"error": f"mode is one of {sorted(MODES)}"}, status=400)
        default = 1.0 if asked["mode"] == "rate_limit" else 60.0
        self.faults.append(
            Fault(
                asked["mode"],
                asked.get("method", ".*"),
                asked.get("path", ".*"),
                int(asked.get("times", 1)),
                float(asked.get("seconds", default)),
            )
        )
        return await self.show_faults(request)

    async def clear_faults(self, request: web.Request) -> web.Response:
        """Nothing is spoilt any more; what is stalled ends now."""
        self.faults.clear()
        self.down = False
        self.released.set()  # whoever is being stalled is let go now
        self.released = asyncio.Event()
        return await self.show_faults(request)

    async def set_down(self, request: web.Request) -> web.Response:
        """{"down": bool}: every connection is taken and cut, except the control door's."""
        self.down = bool((await request.json())["down"])
        return await self.show_faults(request)

    async def unlisten(self, request: web.Request) -> web.Response:
        """{"seconds": float}: the port is closed meanwhile, connections are truly refused."""
        seconds = float((await request.json())["seconds"])
        if self.listener is None:
            return web.json_response({"error": "not listening by itself"}, status=400)
        await self.listener.close_for(seconds)
        return web.json_response({"ok": True})

    async def show_requests(self, request: web.Request) -> web.Response:
        """?path=…: every request with its body, its outcome, and whether it was carried out."""
        wanted = request.query.get("path", "")
        return web.json_response([vars(seen) for seen in self.seen if wanted in seen.path])

    async def show_counts(self, _: web.Request) -> web.Response:
        """{"POST /path": how many writes were really carried out, answered or not}"""
        return web.json_response(dict(self.done))

    async def reset(self, request: web.Request) -> web.Response:
        """{}: as after the start."""
        await self.clear_faults(request)
        self.seen.clear()
        for forget in self.on_reset:
            await forget()
        return web.json_response({"ok": True})


async def record(request: web.Request) -> Seen:
    raw = await request.read()
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = raw.decode(errors="replace")
    headers = {name.lower(): value for name, value in request.headers.items()}
    at = datetime.now(UTC).isoformat()
    return Seen(at, request.method, request.path, dict(request.query), headers, body)


def cut(request: web.Request) -> web.Response:
    """Reset the connection. The response only satisfies the framework; nobody receives it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


class Listener:
    """The public port of a stand-in, which can be closed for a while and opened again."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self.runner, self.port = runner, port
        self.site: web.TCPSite | None = None
        self.reopening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        site = web.TCPSite(self.runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.site, self.port = site, self.runner.addresses[0][1]

    async def close_for(self, seconds: float) -> None:
        if self.site is not None:
            await self.site.stop()
        self.site = None
        self.reopening = asyncio.create_task(self._open_after(seconds))

    async def _open_after(self, seconds: float) -> None:
        await asyncio.sleep(0.05)  # the answer to the order itself may still leave
        for connection in self.runner.server.connections if self.runner.server else []:
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(seconds)
        await self.open()


async def serve(app: web.Application, door: Door, port: int, parent: int | None) -> None:
    """Listen, say where, and stay until SIGTERM, SIGINT or (where given) the parent's end."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        door.listener = Listener(runner, port)
        await door.listener.open()
        print(f"listening http://127.0.0.1:{door.listener.port}", flush=True)
        await until_stopped(parent)
    finally:
        await runner.cleanup()


async def until_stopped(parent: int | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.5)
        if parent is not None and os.getppid() != parent:
            return


def killed_with_parent() -> None:
    """For `preexec_fn`: the kernel kills this child when the process that made it is gone.

    PR_SET_PDEATHSIG exists on Linux only; elsewhere the child has to watch its standard input.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
