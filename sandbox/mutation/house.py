"""The servers of the tests, started once and lent to one pytest session after another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sandbox import parts
from sandbox.seam.running import Running
from sandbox.stripe.testing import running

DOORS = (
    *(f"haneda-capsule-{code}" for code in ("a01", "a02", "a03", "b01")),
    *(f"umeda-sauna-{code}" for code in ("s01", "s02")),
)


class House:
    """What is lent goes by the name of the session fixture that would have started it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        devices = [word for door in DOORS for word in ("--device", f"{door}={door}")]
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="monban-mut-")))
        self.lent: dict[str, Any] = {
            "server": self._part(parts.postgres(folder / "data", fast=True)),
            "queue": self._part(parts.valkey(folder / "valkey")),
            "stripe_process": self._open.enter_context(running()),
            "seam_process": self._open.enter_context(Running("sandbox.seam", *devices)),
            "line_process": self._open.enter_context(Running("sandbox.line")),
        }
        # The migrations import the portal, and this process must not have.
        if in_a_child(self._make_databases):
            raise SystemExit("the test database could not be made")
        self.lent["database"] = self._settings()

    def close(self) -> None:
        self._open.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Hand out what is running already instead of starting another."""
        if fixturedef.argname not in self.lent:
            return None
        found = self.lent[fixturedef.argname]
        fixturedef.cached_result = (found, fixturedef.cache_key(request), None)
        return found

    def tidy_up(self) -> int:
        """After a mutant that had to be killed: its sessions end, its rows go."""
        import psycopg

        from tests.conftest import psycopg_url, wipe

        owner = self.lent["database"]["DATABASE_OWNER_URL"]
        with psycopg.connect(psycopg_url(owner), autocommit=True) as wire:
            wire.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        wipe(owner)
        return 0

    def _part(self, part: parts.Part) -> parts.Part:
        self._open.callback(part.stop)
        return part

    def _settings(self, name: str = "monban_test") -> dict[str, str]:
        url = self.lent["server"].url
        return {
            "DATABASE_URL": parts.with_database(url, name, "portal_app"),
            "DATABASE_OWNER_URL": parts.with_database(url, name),
        }

    def _make_databases(self) -> int:
        from tests.conftest import DATABASE, TEMPLATE, migrate

        url = self.lent["server"].url
        parts.create_database(url, TEMPLATE)
        migrate(self._settings(TEMPLATE))
        parts.create_database(url, DATABASE, template=TEMPLATE)
        return 0


def in_a_child(act: Callable[[], int]) -> int:
    """Run `act` in a fork of this process; its answer, or a negative number for a signal."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            status = act()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 71
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
