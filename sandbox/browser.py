"""A Chromium for the tests that need one: found, or fetched; in CI its absence is a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
JAPANESE_FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")


def chromium() -> str | None:
    """Path of a browser, or None."""
    return _installed() or _of_playwright()


def set_up() -> bool:
    """Find or fetch a browser, with Japanese fonts where we may install them."""
    missing = _missing_packages() if _may_install() else []
    if missing:
        print("setup: installing a browser and Japanese fonts …", flush=True)
        _apt_get("update")
        _apt_get("install", "-y", "--no-install-recommends", *missing)
    if chromium() is None:
        print("setup: fetching Playwright's browser …", flush=True)
        argv = [sys.executable, "-m", "playwright", "install", "chromium"]
        subprocess.run(argv, capture_output=True)
    return chromium() is not None


def _installed() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _missing_packages() -> list[str]:
    missing = {"chromium": _installed() is None, "fonts-noto-cjk": not JAPANESE_FONT.exists()}
    return [package for package, is_missing in missing.items() if is_missing]


def _of_playwright() -> str | None:
    """Asked in a process of its own: whoever asks may hold a Playwright already."""
    ask = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as driver: print(driver.chromium.executable_path)"
    )
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    path = said.stdout.strip()
    return path if path and Path(path).exists() else None


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt_get(*words: str) -> None:
    """A failure shows later, as a missing browser."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", *words], env=quiet, capture_output=True)


def main() -> int:
    if set_up():
        return 0
    print("setup: no Chromium here, and none could be fetched.", file=sys.stderr)
    if os.environ.get("CI") == "true":
        return 1
    print("setup: the tests that need a browser are skipped.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
