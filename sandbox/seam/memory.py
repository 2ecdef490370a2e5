"""Keeps the locks over a restart. The portal's database does remember, so the locks should too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sandbox.seam.fake import Fake

KEPT = ("devices", "access_codes", "events")


async def recall(fake: Fake, file: Path | None) -> dict[str, list[Any]]:
    """Put what the file holds into the fake. Empty lists where there is nothing to recall."""
    if file is None or not file.exists():
        return {key: [] for key in KEPT}
    state: dict[str, list[Any]] = json.loads(file.read_text())
    await fake.call("setState", state)
    return state


async def keep(fake: Fake, file: Path | None) -> None:
    """Write the file anew, whole or not at all, when something has changed."""
    if file is None or not fake.changed:
        return
    fake.changed = False
    state = {key: await fake.read(key) for key in KEPT}
    beside = file.with_suffix(".new")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside.touch(mode=0o600)  # PINs are in it
    beside.write_text(json.dumps(state))
    beside.replace(file)
