"""Set-up: everything locked with hashes, nothing done twice, nothing said about package hosts."""

import json
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox import node, setup, var

ROOT = setup.ROOT


@pytest.mark.parametrize("lock", sorted(setup.LOCKS.glob("*.lock")), ids=lambda path: path.stem)
def test_every_requirement_is_pinned_and_hashed(lock: Path) -> None:
    entries = re.split(r"\n(?=\S)", lock.read_text())
    pinned = [entry for entry in entries if not entry.startswith("#")]

    assert pinned
    assert all("==" in entry and "--hash=sha256:" in entry for entry in pinned)
    assert "://" not in lock.read_text()


def test_everything_includes_what_production_installs() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^(\S+==\S+)", (setup.LOCKS / name).read_text(), re.MULTILINE))

    assert pins("app.lock") < pins("all.lock")


def test_npm_packages_are_exact_and_locked_by_integrity_without_addresses() -> None:
    wanted = json.loads((ROOT / "package.json").read_text())
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    named = {**wanted["dependencies"], **wanted["devDependencies"]}

    assert all(locked[f"node_modules/{name}"]["version"] == named[name] for name in named)
    assert all("integrity" in entry for path, entry in locked.items() if path)
    assert not any("resolved" in entry for entry in locked.values())


def test_a_second_set_up_says_nothing_and_is_quick() -> None:
    setup.main()
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "sandbox.setup"], cwd=ROOT, capture_output=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began < 5


def test_front_end_files_are_served_from_our_own_folder() -> None:
    assert (setup.VENDOR / "htmx.min.js").stat().st_size > 10_000
    assert (setup.VENDOR / "pico.min.css").stat().st_size > 10_000


@pytest.mark.parametrize("generated", [".venv/x", "node_modules/x", "var/x", "translations/ja/x.mo",
                                       "portal/web/static/vendor/htmx.min.js"])  # fmt: skip
def test_generated_files_are_not_for_git(generated: str) -> None:
    ignored = subprocess.run(["git", "check-ignore", "-q", "--no-index", generated], cwd=ROOT)

    assert ignored.returncode == 0


def test_a_stamp_is_fresh_until_its_source_changes(tmp_path: Path) -> None:
    stamp, lock = tmp_path / "stamp", tmp_path / "lock"
    lock.write_text("one")
    assert not setup.is_fresh(stamp, [lock])

    setup.renew(stamp, [lock])
    assert setup.is_fresh(stamp, [lock])

    lock.write_text("two")
    assert not setup.is_fresh(stamp, [lock])


def test_a_failing_command_is_one_complaint_with_its_output() -> None:
    argv = [sys.executable, "-c", "print('disk full'); raise SystemExit(1)"]

    with pytest.raises(setup.SetupFailedError, match=r"(?s)could not install.*disk full"):
        setup.command(argv, "could not install")


def answer_with(tmp_path: Path, text: str) -> str:
    program = tmp_path / "node"
    program.write_text(f"#!/bin/sh\necho {text}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(("text", "major"), [("v20.20.2", 20), ("v9.1.0", 9), ("what?", 0)])
def test_the_version_of_a_node(tmp_path: Path, text: str, major: int) -> None:
    assert node.major(answer_with(tmp_path, text)) == major


def test_a_node_that_is_too_old_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(tmp_path, "v18.20.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(node, "_packaged", lambda: tmp_path / "nowhere")

    with pytest.raises(FileNotFoundError, match="no Node of version 20 or newer"):
        node.node()


def test_secrets_are_made_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    first = var.house_secrets(tmp_path)

    assert stat.S_IMODE((tmp_path / "secrets.env").stat().st_mode) == 0o600
    assert var.house_secrets(tmp_path) == first
    assert len(first["SECRET_KEY"]) > 40
    assert first["STRIPE_SECRET_KEY"].startswith("sk_test_")


def test_a_port_is_the_usual_one_then_the_same_as_last_time(tmp_path: Path) -> None:
    usual = var._bindable(0)
    assert var.Ports(tmp_path).take("portal", usual) == usual

    other = var._bindable(0)
    assert var.Ports(tmp_path).take("portal", other) == usual
    assert var.Ports(tmp_path).take("portal", usual, asked=other) == other


def test_a_taken_port_gives_way_to_a_free_one(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = var.Ports(tmp_path).take("portal", port)

    assert found not in (0, port)


def test_two_parts_never_get_one_port(tmp_path: Path) -> None:
    ports, usual = var.Ports(tmp_path), var._bindable(0)

    assert ports.take("a", usual) != ports.take("b", usual)


def test_reset_drops_everything_but_not_under_a_running_house(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    with var.held(folder):
        (folder / "data").write_text("kept")
        with pytest.raises(var.AlreadyRunningError, match="already running"):
            var.reset(folder)
        assert (folder / "data").exists()

    var.reset(folder)
    assert not folder.exists()
