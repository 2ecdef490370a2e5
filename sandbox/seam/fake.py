"""The Node process that runs Seam's own fake, and the two ways to talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import aiohttp

from sandbox.faults import killed_with_parent
from sandbox.node import node

ROOT = Path(__file__).resolve().parents[2]
WORKSPACE = "sandbox_workspace"
ACCOUNT = "sandbox_connected_account"


class Fake:
    """`ask` is Seam's HTTP API; `call` and `read` reach the fake's database behind it."""

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key
        self.process: asyncio.subprocess.Process | None = None
        self.url = self.inside = ""
        self.changed = False  # since somebody last looked; see sandbox.seam.memory
        self.session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            os.environ.get("MONBAN_NODE") or node(),
            str(Path(__file__).with_name("fake.mjs")),
            env={**os.environ, "FAKE_SEAM_ENTRY": str(entry())},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=killed_with_parent,
        )
        public, inside = await self._ports()
        self.url, self.inside = f"http://127.0.0.1:{public}", f"http://127.0.0.1:{inside}"
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15))
        await self._furnish()

    async def _ports(self) -> tuple[str, str]:
        assert self.process is not None
        assert self.process.stdout is not None
        while line := await asyncio.wait_for(self.process.stdout.readline(), 60):
            match line.decode().split():
                case ["ready", public, inside]:
                    return public, inside
        raise RuntimeError("Seam's fake ended before it was ready")

    async def _furnish(self) -> None:
        await self.call(
            "addWorkspace", {"name": "Sandbox", "workspace_id": WORKSPACE, "is_sandbox": True}
        )
        await self.call("addApiKey", {"token": self.api_key, "workspace_id": WORKSPACE})
        await self.call(
            "addConnectedAccount",
            {
                "provider": "august",
                "workspace_id": WORKSPACE,
                "user_identifier": {"email": "locks@sandbox.invalid"},
                "connected_account_id": ACCOUNT,
            },
        )

    async def end(self) -> None:
        """Returns when the process has ended, by itself or not."""
        assert self.process is not None
        await self.process.wait()

    async def stop(self) -> None:
        if self.session is not None:
            await self.session.close()
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    async def call(self, method: str, *args: Any) -> Any:
        """A method of the fake's database: addDevice, updateAccessCode, addEvent, …"""
        self.changed = True
        return await self._inside({"call": method, "args": args})

    async def read(self, key: str, start: int = 0) -> list[dict[str, Any]]:
        """A list of the fake's database from `start` on: access_codes, devices, events."""
        found: list[dict[str, Any]] = await self._inside({"read": key, "from": start})
        return found

    async def _inside(self, order: dict[str, Any]) -> Any:
        assert self.session is not None
        async with self.session.post(self.inside, json=order) as answer:
            told = await answer.json(content_type=None)
            if answer.status != 200:
                raise RuntimeError(told["error"])
            return told["result"]

    async def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Pass one request on as it came; `path` includes the query."""
        assert self.session is not None
        self.changed = self.changed or method != "GET"
        async with self.session.request(
            method, self.url + path, headers=headers, data=body or None
        ) as answer:
            kept = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            if "seam-request-id" in answer.headers:
                kept["seam-request-id"] = answer.headers["seam-request-id"]
            return answer.status, kept, await answer.read()


def entry() -> Path:
    """The fake's module. MONBAN_NODE_MODULES names another node_modules than the project's."""
    modules = Path(os.environ.get("MONBAN_NODE_MODULES") or ROOT / "node_modules")
    found = modules / "@seamapi" / "fake-seam-connect" / "dist" / "index.js"
    if not found.exists():
        raise FileNotFoundError(f"{found} is missing; `make setup` brings it")
    return found
