"""The isolated house, and the doors from outside: HTTP, the mail server, the providers' control
doors; and the two that an operator has, the command line and the database as its owner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import requests

from sandbox.mail import MailDevInbox
from sandbox.run import House
from sandbox.var import Ports
from sandbox.walkthrough.visitor import Visitor

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Control:
    """A stand-in's control door."""

    url: str

    def post(self, door: str, **order: Any) -> Any:
        answer = requests.post(f"{self.url}/_control/{door}", json=order, timeout=20)
        answer.raise_for_status()
        return answer.json()

    def get(self, door: str, **query: Any) -> Any:
        answer = requests.get(f"{self.url}/_control/{door}", params=query, timeout=20)
        answer.raise_for_status()
        return answer.json()


@dataclass
class OpenHouse:
    base: str
    told: dict[str, Any]
    env: dict[str, str]
    stripe: Control
    seam: Control
    mail: MailDevInbox

    def staff(self, role: str, language: str = "ja") -> Visitor:
        """Somebody of that role, signed in."""
        person = next(person for person in self.told["logins"] if role in person["role"])
        visitor = Visitor(self.base, language)
        page = visitor.open("/staff/sign-in")
        visitor.submit(page, "/sign-in", email=person["email"], password=person["password"])
        return visitor

    def reconcile(self) -> dict[str, Any]:
        """What an operator does: the books compared now, outside the portal's processes."""
        command = [sys.executable, "-m", "flask", "--app", "app", "reconcile", "--json"]
        done = subprocess.run(
            [*command, "--settle", "3"],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        lines = done.stdout.splitlines()
        if not lines:
            raise RuntimeError(done.stderr[-2000:])
        told: dict[str, Any] = json.loads(lines[-1])
        told["exit"] = done.returncode
        return told

    def as_owner(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """What somebody with the owner's password does to the database, past the portal."""
        with psycopg.connect(self.env["DATABASE_OWNER_URL"], autocommit=True) as wire:
            done = wire.execute(sql, params)
            return done.fetchall() if done.description else []

    def ask_lock(self, door: str, **order: Any) -> dict[str, Any]:
        """As another program with a key to the lock controller would."""
        answer = requests.post(
            f"{self.seam.url}{door}",
            json=order,
            headers={"Authorization": f"Bearer {self.env['SEAM_API_KEY']}"},
            timeout=20,
        )
        answer.raise_for_status()
        said: dict[str, Any] = answer.json()
        return said

    def guest(self, language: str) -> Visitor:
        return Visitor(self.base, language)

    def all_codes(self, device: str) -> list[dict[str, Any]]:
        """What the lock holds, in the lock controller's own words."""
        found: list[dict[str, Any]] = self.seam.get("codes", device_id=device)
        return found


class FreePorts(Ports):
    """Never the usual ones: `make run` may be open beside us, or about to open."""

    def take(self, name: str, usual: int, asked: int = 0) -> int:
        return super().take(name, 0)


@contextmanager
def opened(folder: Path) -> Iterator[OpenHouse]:
    """A whole house on free ports with data of its own; everything of it ends with the block."""
    house = House({})
    house.ports = FreePorts()
    try:
        told = house.open()
        yield OpenHouse(
            base=house.address,
            told=told,
            env={**os.environ, **house.env},
            stripe=Control(house.part("stripe").also.get("control", house.part("stripe").url)),
            seam=Control(house.part("seam").url),
            mail=MailDevInbox(house.part("mail").url),
        )
    finally:
        house.close()
