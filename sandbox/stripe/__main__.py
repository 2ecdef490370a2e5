"""`python -m sandbox.stripe --port 0`: the stand-in as a process of its own.

The first line on stdout is `listening http://127.0.0.1:PORT`; the second names a port that
answers `/_control/…` even while the first is shut.
"""

import argparse
import time
from pathlib import Path

from sandbox.stripe import time_passing
from sandbox.stripe.api import Api
from sandbox.stripe.bench import Bench
from sandbox.stripe.faults import Faults
from sandbox.stripe.server import Server
from sandbox.stripe.webhooks import Endpoint, Webhooks
from sandbox.stripe.world import World

_TICK_SECONDS = 0.25


class Port:
    """The API's port, which the control door can shut and open again at the same number."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._server: Server | None = None
        self.number = 0

    def open(self, port: int, bench: Bench) -> None:
        self._server = Server(self._host, port, bench)
        self.number = self._server.server_address[1]
        self._server.start()

    def set_listening(self, wanted: bool, bench: Bench) -> None:
        if self._server is not None and not wanted:
            self._server.stop()
            self._server = None
        elif self._server is None and wanted:
            self.open(self.number, bench)


def main() -> None:
    options = _options()
    world = World(options.state_file)
    port = Port(options.host)
    bench = Bench(
        world=world,
        api=Api(world, Faults(), tuple(options.api_key)),
        webhooks=Webhooks(world, _endpoints(options)),
        set_listening=lambda wanted: port.set_listening(wanted, bench),
        processing_seconds=options.processing_seconds,
    )
    port.open(options.port, bench)
    world.base = f"http://{options.host}:{port.number}"
    control = Server(options.host, options.control_port, bench)
    control.start()
    print(f"listening {world.base}", flush=True)
    print(f"control http://{options.host}:{control.server_address[1]}", flush=True)
    _let_time_pass(bench)


def _let_time_pass(bench: Bench) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        with bench.world.lock:
            before = len(bench.world.events)
            time_passing.tick(bench.world, bench.processing_seconds)
            if len(bench.world.events) != before:
                bench.world.save()


def _endpoints(options: argparse.Namespace) -> list[Endpoint]:
    if len(options.webhook_url) != len(options.webhook_secret):
        raise SystemExit("give one --webhook-secret for each --webhook-url")
    pairs = zip(options.webhook_url, options.webhook_secret, strict=True)
    return [Endpoint(url, secret) for url, secret in pairs]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox.stripe", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--webhook-url", action="append", default=[])
    parser.add_argument("--webhook-secret", action="append", default=[])
    parser.add_argument("--state-file", type=Path)
    parser.add_argument("--api-key", action="append", default=[], help="default: any sk_test_ key")
    parser.add_argument(
        "--processing-seconds", type=int, help="decide payments in processing after so long"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
