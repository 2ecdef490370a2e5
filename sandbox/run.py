"""`make run`: the whole house on this machine, until Ctrl-C.

What the environment configures is used; whatever it leaves out is started here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from portal.demo.houses import DEVICES
from sandbox import parts, var
from sandbox.process import Part, PartFailedError, follow_parent, start
from sandbox.screen import screen

DATABASE = "monban"
APP_ROLE = "portal_app"
RESTARTS, WITHIN = 5, 60  # a worker that dies more often than this is not restarted again


class StopAskedError(Exception):
    """Ctrl-C, SIGTERM or a closed terminal."""


class House:
    """The parts in the order in which they were started, and the environment that they share."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.logs = var.fresh_logs()
        self.ports = var.Ports()
        self.parts: list[Part] = []
        # A proxy that leads out of this machine must not be asked for what is on it.
        self.env = {**var.house_secrets(), **given, "NO_PROXY": "127.0.0.1,localhost"}
        self.given = given
        self.deaths: list[float] = []

    def open(self) -> dict[str, Any]:
        """Start everything. Returns what the demo data told: logins, a guest link."""
        self.port = self.ports.take("portal", 8000, asked=int(self.given.get("PORT", 0)))
        self.address = f"http://{parts.HOST}:{self.port}"
        self.env.setdefault("PUBLIC_URL", self.address)
        self.start_providers()
        self.start_servers()
        for part in self.parts:
            part.wait()
        self.prepare_database()
        self.task("migrate", "db", "upgrade")
        self.keep(parts.portal(self.env, port=self.port, log=self.log("portal"), wait=False))
        told = json.loads(self.task("demo", "demo", "load", "--json") or "{}")
        self.keep(parts.worker(self.env, log=self.log("worker")))
        self.part("portal").wait()
        return dict(told)

    def start_providers(self) -> None:
        """The slow starters first: each gets ready while the next ones start."""
        if "SMTP_URL" not in self.given:
            mail = parts.maildev(
                var.VAR / "mail",
                port=self.ports.take("mail", 8004),
                smtp_port=self.ports.take("smtp", 8005),
                log=self.log("mail"),
                wait=False,
            )
            self.keep(mail, SMTP_URL=mail.also["smtp"], MAIL_ARCHIVE_URL=mail.url)
        if "SEAM_API_KEY" not in self.given:
            doors = [f"--device={device_id}={name}" for device_id, name in DEVICES.items()]
            key = (f"--api-key={self.env['SEAM_API_KEY']}",)
            self.stand_in("seam", 8002, "SEAM_ENDPOINT", *doors, *key, *self.told_back("seam"))
        if "STRIPE_SECRET_KEY" not in self.given:
            self.stand_in("stripe", 8001, "STRIPE_API_BASE", *self.told_back("stripe"))
        if "LINE_CHANNEL_TOKEN" not in self.given:
            token = (f"--token={self.env['LINE_CHANNEL_TOKEN']}",)  # it may begin with a dash
            self.stand_in("line", 8003, "LINE_API_BASE", *token)

    def stand_in(self, name: str, usual: int, setting: str, *args: str) -> None:
        port = self.ports.take(name, usual)
        begin = {"seam": parts.seam, "stripe": parts.stripe, "line": parts.line}[name]
        part = begin(*args, port=port, env=self.env, log=self.log(name), wait=False)
        self.keep(part, **{setting: f"http://{parts.HOST}:{port}"})

    def told_back(self, provider: str) -> tuple[str, ...]:
        """Where it keeps its memory, and where it sends its webhooks, signed with what."""
        secret = self.env[f"{provider.upper()}_WEBHOOK_SECRET"]
        hook = ("--webhook-url", f"{self.address}/webhooks/{provider}", "--webhook-secret", secret)
        return (*hook, "--state-file", str(var.VAR / f"{provider}.json"))

    def start_servers(self) -> None:
        if "REDIS_URL" not in self.given:
            port = self.ports.take("valkey", 8006)
            queue = parts.valkey(var.VAR / "valkey", port=port, log=self.log("valkey"), wait=False)
            self.keep(queue, REDIS_URL=queue.url)
        if "DATABASE_URL" not in self.given:
            server = parts.postgres(var.VAR / "postgres", log=self.log("postgres"), wait=False)
            self.keep(
                server,
                DATABASE_URL=parts.with_database(server.url, DATABASE, APP_ROLE),
                DATABASE_OWNER_URL=parts.with_database(server.url, DATABASE),
            )

    def prepare_database(self) -> None:
        server = next((part for part in self.parts if part.name == "postgres"), None)
        if server and not parts.has_database(server.url, DATABASE):
            parts.create_database(server.url, DATABASE)

    def task(self, name: str, *command: str) -> str:
        """Run one `flask` command to its end. Returns its standard output."""
        argv = [sys.executable, "-m", "flask", "--app", "app", *command]
        printed = var.VAR / f"{name}.out"
        with printed.open("wb") as out:
            work = start(name, argv, log=self.log(name), env=self.env, stdout=out)
        self.keep(work)
        if work.process.wait():
            raise PartFailedError(work.obituary())
        self.parts.remove(work)
        return printed.read_text()

    def watch(self) -> None:
        """Until a part dies. The worker may die: its work is rows, a new one goes on with them."""
        while True:
            time.sleep(0.3)
            for part in [part for part in self.parts if not part.running]:
                if part.name != "worker" or self.dies_too_often():
                    raise PartFailedError(part.obituary())
                print(f"\n{part.obituary()}Starting another worker.", flush=True)
                part.stop()
                self.parts.remove(part)
                self.keep(parts.worker(self.env, log=self.log("worker")))

    def dies_too_often(self) -> bool:
        now = time.monotonic()
        self.deaths = [*(then for then in self.deaths if now - then < WITHIN), now]
        return len(self.deaths) > RESTARTS

    def close(self) -> None:
        """The portal and the worker before what they talk to; the database last."""
        for name in ("portal", "worker"):
            for part in self.parts:
                if part.name == name and part.running:
                    part.process.terminate()
        for part in sorted(self.parts, key=lambda part: part.name == "postgres"):
            part.stop()

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)

    def keep(self, part: Part, **settings: str) -> None:
        self.parts.append(part)
        self.env.update({name: value for name, value in settings.items() if name not in self.given})

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def main() -> int:
    try:
        listen_for_the_end()
        with var.held():
            return live()
    except StopAskedError:
        return 0
    except var.AlreadyRunningError as already:
        print(already, file=sys.stderr)
        return 1


def live() -> int:
    house = House(configured(os.environ))
    try:
        print("Opening the house …", flush=True)
        told = house.open()
        print(screen(house.env, told, {part.name: part for part in house.parts}), flush=True)
        house.watch()
    except StopAskedError:
        print("\nClosing the house …", flush=True)
    except PartFailedError as failure:
        print(f"\n{failure}\nClosing the house …", file=sys.stderr, flush=True)
        return 1
    finally:
        ignore_further_signals()
        house.close()
    return 0


def configured(env: Mapping[str, str]) -> dict[str, str]:
    """What the person set. An empty setting is none; half a database is refused."""
    given = {name: value for name, value in env.items() if value}
    if ("DATABASE_URL" in given) != ("DATABASE_OWNER_URL" in given):
        raise SystemExit("Set DATABASE_URL (the app's role) and DATABASE_OWNER_URL together.")
    return given


def listen_for_the_end() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup means it
        signal.signal(signal.SIGHUP, _stop)
    if "MAKELEVEL" in os.environ:  # started by make: should make be killed, close the house
        follow_parent(signal.SIGTERM, os.getppid())


def ignore_further_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: FrameType | None) -> None:
    raise StopAskedError


if __name__ == "__main__":
    sys.exit(main())
