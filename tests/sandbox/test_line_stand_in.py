"""The stand-in of LINE by itself."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from sandbox.seam.running import Running


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with Running("sandbox.line", "--token", "t1") as line:
        yield line


@pytest.fixture
def line(started: Running) -> Running:
    started.reset()
    return started


def push(
    line: Running, to: Any = "U1", text: Any = "hello", key: str | None = None, token: str = "t1"
) -> tuple[int, dict[str, Any], dict[str, str]]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    if key is not None:
        headers["X-Line-Retry-Key"] = key
    body = json.dumps({"to": to, "messages": [{"type": "text", "text": text}]}).encode()
    request = urllib.request.Request(line.url + "/v2/bot/message/push", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as answer:
            return answer.status, json.load(answer), dict(answer.headers)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused), dict(refused.headers)


def test_f11_a_key_is_carried_out_once(line: Running) -> None:
    key = str(uuid4())
    status, first, headers = push(line, key=key)
    again, second, repeated = push(line, text="changed", key=key)
    assert (status, again) == (200, 409)
    assert repeated["x-line-accepted-request-id"] == headers["x-line-request-id"]
    assert second["sentMessages"] == first["sentMessages"]
    assert [p["text"] for p in line.control("pushes")] == ["hello"]


def test_without_a_key_each_request_is_a_message(line: Running) -> None:
    push(line)
    push(line)
    assert line.counts() == {"POST /v2/bot/message/push": 2}


def test_a_refused_push_does_not_use_up_its_key(line: Running) -> None:
    key = str(uuid4())
    line.control("block", {"user": "U1"})
    assert push(line, key=key)[0] == 400
    line.control("block", {"user": "U1", "blocked": False})
    assert push(line, key=key)[0] == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "no-uuid"},
        {"to": ""},
        {"to": 5},
        {"text": ""},
        {"text": "🔑" * 2501},
        {"text": None},
    ],
)
def test_what_line_refuses(line: Running, wrong: dict[str, Any]) -> None:
    assert push(line, **wrong)[0] == 400
    assert line.control("pushes") == []


def test_the_token_is_checked(line: Running) -> None:
    assert push(line, token="other")[0] == 401


def test_exactly_the_limit_is_taken(line: Running) -> None:
    assert push(line, text="🔑" * 2500)[0] == 200


def test_the_page_shows_pushes_as_text(line: Running) -> None:
    push(line, text="<script>alert(1)</script>", to="U<b>")
    with urllib.request.urlopen(line.url, timeout=5) as answer:
        page = answer.read().decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page
    assert "U<b>" not in page


def test_every_mode_is_on_the_list_and_an_unknown_one_is_refused(line: Running) -> None:
    assert len(line.control("faults")["modes"]) == 8
    with pytest.raises(urllib.error.HTTPError):
        line.fault("sulk")


def test_faults_match_by_method_and_path_and_run_out(line: Running) -> None:
    line.fault("error_500_before", path="/nowhere")
    line.fault("error_500_before", method="GET")
    line.fault("error_500_before", path="push$", times=2)
    assert [push(line)[0] for _ in range(3)] == [500, 500, 200]


def test_down_and_up_again(line: Running) -> None:
    line.control("down", {"down": True})
    with pytest.raises((OSError, urllib.error.URLError)):
        push(line)
    line.control("faults", method="DELETE")
    assert push(line)[0] == 200


def test_slowly_and_still_right(line: Running) -> None:
    line.fault("slow", "push", seconds=0.3)
    began = time.monotonic()
    status, _, _ = push(line)
    assert (status, len(line.control("pushes"))) == (200, 1)
    assert time.monotonic() - began >= 0.3
