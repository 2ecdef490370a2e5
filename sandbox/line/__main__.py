"""`python -m sandbox.line --port 0 [--token TOKEN]`; the page at `/` shows what was pushed.

The first line on standard output is `listening http://127.0.0.1:PORT`.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
from typing import Any

from aiohttp import web

from sandbox.faults import Door, serve
from sandbox.line.world import Push, World

TOKEN = "sandbox-line-token"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3">
<title>LINE stand-in</title><style>
body{{font:1rem/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}}
article{{background:#e9f7e9;border-radius:1rem;padding:.75rem 1rem;margin:1rem 0}}
article p{{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}}small{{color:#555}}
</style></head><body><h1>LINE stand-in</h1><p>{count} pushed, newest first.</p>
{pushes}</body></html>
"""


class Line:
    def __init__(self, token: str) -> None:
        self.token = token
        self.world = World()
        self.door = Door(error_body)
        self.door.on_reset.append(self.world.forget)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.door.middleware()])
        app.add_routes(
            [
                *self.door.routes(),
                web.get("/_control/pushes", self.pushes),
                web.post("/_control/block", self.block),
                web.post("/v2/bot/message/push", self.push),
                web.get("/", self.page),
            ]
        )
        return app

    async def push(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"message": "Authentication failed."}, status=401)
        try:
            body = json.loads(await request.read())
        except ValueError:
            body = None
        answer = self.world.push(body, request.headers.get("X-Line-Retry-Key"))
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)

    async def pushes(self, request: web.Request) -> web.Response:
        """?to=…: what people have received, oldest first."""
        to = request.query.get("to")
        found = [vars(push) for push in self.world.pushes if to in (None, push.to)]
        return web.json_response(found)

    async def block(self, request: web.Request) -> web.Response:
        """{"user": id, "blocked": bool}: a blocked user is refused with 400."""
        asked = await request.json()
        blocked = self.world.blocked
        (blocked.add if asked.get("blocked", True) else blocked.discard)(asked["user"])
        return web.json_response({"blocked": sorted(blocked)})

    async def page(self, _: web.Request) -> web.Response:
        shown = "".join(shown_push(push) for push in reversed(self.world.pushes))
        text = PAGE.format(count=len(self.world.pushes), pushes=shown)
        return web.Response(text=text, content_type="text/html")


def shown_push(push: Push) -> str:
    text, to, at = html.escape(push.text), html.escape(push.to), html.escape(push.at)
    return f"<article><p>{text}</p><small>to {to}, {at}</small></article>"


def error_body(status: int) -> dict[str, Any]:
    messages = {429: "The API rate limit has been exceeded. Try again later."}
    return {"message": messages.get(status, "Internal Server Error")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sandbox.line", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--parent", type=int, help="a process id; end when it has ended")
    asked = parser.parse_args()
    line = Line(asked.token)
    asyncio.run(serve(line.app(), line.door, asked.port, asked.parent))


if __name__ == "__main__":
    main()
