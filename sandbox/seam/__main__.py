"""`python -m sandbox.seam --port 0 --device ID=NAME --webhook-url URL --webhook-secret whsec_…`

`--state-file PATH` keeps devices and codes over a restart; without it they live in memory.
The first line on standard output is `listening http://127.0.0.1:PORT`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from sandbox.faults import serve
from sandbox.seam.controller import Controller
from sandbox.seam.fake import Fake
from sandbox.seam.proxy import Proxy

API_KEY = "seam_apikey1_token"


def main() -> None:
    asyncio.run(run(arguments()))


async def run(asked: argparse.Namespace) -> None:
    fake = Fake(asked.api_key)
    controller = Controller(fake, asked.webhook_url, asked.webhook_secret, asked.state_file)
    proxy = Proxy(controller)
    try:
        await fake.start()
        await controller.start(dict(asked.device))
        await first_of(serve(proxy.app(), proxy.door, asked.port, asked.parent), fake.end())
    finally:
        await controller.stop()
        await fake.stop()


async def first_of(serving: Coroutine[Any, Any, None], ending: Coroutine[Any, Any, None]) -> None:
    """Serve, but not without the fake: whoever watches this process must see that it is gone."""
    served, ended = asyncio.create_task(serving), asyncio.create_task(ending)
    await asyncio.wait({served, ended}, return_when=asyncio.FIRST_COMPLETED)
    if not served.done():
        served.cancel()
        await asyncio.gather(served, return_exceptions=True)
        raise SystemExit("Seam's fake has ended")
    ended.cancel()
    await served


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox.seam", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key", default=API_KEY)
    parser.add_argument("--device", type=device, action="append", default=[], metavar="ID=NAME")
    parser.add_argument("--webhook-url")
    parser.add_argument("--webhook-secret")
    parser.add_argument("--state-file", type=Path, help="keeps devices and codes over a restart")
    parser.add_argument("--parent", type=int, help="a process id; end when it has ended")
    return parser.parse_args()


def device(text: str) -> tuple[str, str]:
    device_id, _, name = text.partition("=")
    if not device_id:
        raise argparse.ArgumentTypeError("a device is ID=NAME")
    return device_id, name or device_id


if __name__ == "__main__":
    main()
