"""`python -m sandbox.seam --port 0 --device ID=NAME --webhook-url URL --webhook-secret whsec_…`

The first line on standard output is `listening http://127.0.0.1:PORT`.
"""

from __future__ import annotations

import argparse
import asyncio

from sandbox.faults import serve
from sandbox.seam.controller import Controller
from sandbox.seam.fake import Fake
from sandbox.seam.proxy import Proxy

API_KEY = "seam_apikey1_token"


def main() -> None:
    asyncio.run(run(arguments()))


async def run(asked: argparse.Namespace) -> None:
    fake = Fake(asked.api_key)
    controller = Controller(fake, asked.webhook_url, asked.webhook_secret)
    proxy = Proxy(controller)
    try:
        await fake.start()
        await controller.start(dict(asked.device))
        await serve(proxy.app(), proxy.door, asked.port, asked.parent)
    finally:
        await controller.stop()
        await fake.stop()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox.seam", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key", default=API_KEY)
    parser.add_argument("--device", type=device, action="append", default=[], metavar="ID=NAME")
    parser.add_argument("--webhook-url")
    parser.add_argument("--webhook-secret")
    parser.add_argument("--parent", type=int, help="a process id; end when it has ended")
    return parser.parse_args()


def device(text: str) -> tuple[str, str]:
    device_id, _, name = text.partition("=")
    if not device_id:
        raise argparse.ArgumentTypeError("a device is ID=NAME")
    return device_id, name or device_id


if __name__ == "__main__":
    main()
