"""The shared first half of every command: .venv, locked packages, front-end files.

Runs on the machine's bare Python first (standard library only). Each step leaves a stamp with
the hash of what it was made from, so that a second run costs nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PEERS = ROOT / "build" / "peers"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
VENDOR = ROOT / "portal" / "web" / "static" / "vendor"
FONT = "@expo-google-fonts/noto-sans-jp/400Regular/NotoSansJP_400Regular.ttf"
FRONT_END = {
    "NotoSansJP-Regular.ttf": FONT,  # for documents as PDF
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "pico.min.css": "@picocss/pico/css/pico.min.css",
}


class SetupFailedError(Exception):
    """One clear sentence for the person at the terminal."""


def set_up() -> None:
    with alone():
        virtual_environment()
        a_node()
        at_once(python_packages, node_packages)
        front_end_files()
        compiled_translations()


def virtual_environment(folder: Path = VENV) -> None:
    if runs(python_of(folder), "import sys, pip; assert sys.version_info >= (3, 11)"):
        return
    say(f"making {folder.relative_to(ROOT)}")
    shutil.rmtree(folder, ignore_errors=True)
    command(
        [sys.executable, "-m", "venv", str(folder)],
        "this Python cannot make a virtual environment (on Debian: apt-get install python3-venv)",
    )


def python_packages() -> None:
    stamp, locks = VENV / ".packages", [LOCKS / "uv.lock", LOCKS / "all.lock"]
    if is_fresh(stamp, locks):
        return
    say("installing Python packages")
    pip_install("uv.lock")
    install("all.lock")
    warm_up()
    renew(stamp, locks)


def peers() -> None:
    """What `make bench-peers` measures beside us lives by itself: it brings other versions."""
    stamp, locks = PEERS / ".packages", [LOCKS / "peers.lock"]
    if is_fresh(stamp, locks):
        return
    virtual_environment(PEERS)
    say("installing the peers")
    install("peers.lock", PEERS)
    renew(stamp, locks)


def install(lock: str, folder: Path = VENV) -> None:
    """uv is many times faster; pip remains for a machine whose index only pip is told about."""
    uv = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--require-hashes"]
    chosen = ["--python", str(python_of(folder)), "-r", str(LOCKS / lock)]
    if not succeeds([*uv, *chosen]):
        pip_install(lock, folder)


def warm_up() -> None:
    """Compile what the app imports, once here instead of in five starting processes at a time."""
    subprocess.run([str(PYTHON), "-c", "import app, worker"], cwd=ROOT, capture_output=True)


def a_node() -> None:
    """The machine's own where it is new enough, else one in .venv."""
    if runs(PYTHON, "from sandbox.node import node, npm; node(); npm()"):
        return
    say("no Node 20 or newer with npm here: installing one into .venv")
    pip_install("node.lock")


def node_packages() -> None:
    stamp, locks = ROOT / "node_modules" / ".packages", [ROOT / "package-lock.json"]
    if is_fresh(stamp, locks):
        return
    say("installing front-end files and stand-ins from npm")
    ask = "from sandbox.node import npm; print(*npm(), sep='\\n')"
    npm = command([str(PYTHON), "-c", ask], "no npm").splitlines()
    node_first = {"PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    command(
        [*npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"],
        "npm could not install the locked packages",
        node_first,
    )
    renew(stamp, locks)


def front_end_files() -> None:
    VENDOR.mkdir(parents=True, exist_ok=True)
    for name, source in FRONT_END.items():
        fetched, served = ROOT / "node_modules" / source, VENDOR / name
        if not served.exists() or served.read_bytes() != fetched.read_bytes():
            shutil.copyfile(fetched, served)


def compiled_translations() -> None:
    sources = list(ROOT.glob("translations/*/LC_MESSAGES/*.po"))
    if any(_is_stale(source.with_suffix(".mo"), source) for source in sources):
        command(
            [str(PYTHON), "-m", "sandbox.translations", "compile"], "translations do not compile"
        )


# -- the small words that the steps are written in --


def say(what: str) -> None:
    print(f"setup: {what} …", flush=True)


def at_once(*steps: Callable[[], None]) -> None:
    """Steps that do not need each other; the first failure is raised when all have ended."""
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(step) for step in steps]
    for step in running:
        step.result()


@contextmanager
def alone() -> Iterator[None]:
    """Two commands started together set up one after the other."""
    with (LOCKS / "all.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def fingerprint(sources: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def is_fresh(stamp: Path, sources: Sequence[Path]) -> bool:
    return stamp.exists() and stamp.read_text() == fingerprint(sources)


def _is_stale(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime_ns < source.stat().st_mtime_ns


def renew(stamp: Path, sources: Sequence[Path]) -> None:
    stamp.write_text(fingerprint(sources))


def runs(python: Path, code: str) -> bool:
    return python.exists() and succeeds([str(python), "-c", code])


def succeeds(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, cwd=ROOT, capture_output=True).returncode == 0


def command(argv: Sequence[str], complaint: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    if done.returncode:
        raise SetupFailedError(f"{complaint}\n{(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def pip_install(lock: str, folder: Path = VENV) -> None:
    command(
        [
            str(python_of(folder)),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(LOCKS / lock),
        ],
        f"pip could not install requirements/{lock}",
    )


def main() -> int:
    try:
        set_up()
    except SetupFailedError as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
