"""The adapter with LINE's own SDK against the stand-in, over real sockets."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from portal.edges.errors import Rejected, Unknown, Unreachable
from portal.edges.line import Line
from portal.edges.line.adapter import LineMessages, fitting
from portal.fence import TransactionOpenError, transaction_began, transaction_ended
from sandbox.seam.running import Running, eventually

TOKEN = "sandbox-line-token"
GUEST = "U4af4980629"
KEY = UUID("123e4567-e89b-42d3-a456-426614174000")


@pytest.fixture(scope="module")
def started() -> Iterator[Running]:
    with Running("sandbox.line") as line:
        yield line


@pytest.fixture
def stand_in(started: Running) -> Running:
    started.reset()
    return started


@pytest.fixture
def line(stand_in: Running) -> Line:
    return LineMessages(TOKEN, api_base=stand_in.url)


def impatient(stand_in: Running) -> Line:
    return LineMessages(TOKEN, api_base=stand_in.url, connect_seconds=1, read_seconds=0.7)


def texts(stand_in: Running, to: str = GUEST) -> list[str]:
    return [push["text"] for push in stand_in.control(f"pushes?to={to}")]


def test_a_push_arrives_with_its_key(stand_in: Running, line: Line) -> None:
    line.push(to=GUEST, text="鍵の準備ができました🔑", retry_key=KEY)
    (push,) = stand_in.control("pushes")
    assert (push["to"], push["text"]) == (GUEST, "鍵の準備ができました🔑")
    assert push["retry_key"] == str(KEY)


def test_f11_the_same_key_again_is_a_success_and_one_message(stand_in: Running, line: Line) -> None:
    for _ in range(3):
        line.push(to=GUEST, text="once", retry_key=KEY)
    assert texts(stand_in) == ["once"]
    assert [seen["outcome"] for seen in stand_in.control("requests")] == ["200", "409", "409"]


@pytest.mark.parametrize("mode", ["do_then_drop", "error_500_after", "do_then_stall"])
def test_f11_a_lost_answer_is_unknown_and_the_retry_sends_nothing_more(
    stand_in: Running, line: Line, mode: str
) -> None:
    stand_in.fault(mode, seconds=5)
    with pytest.raises(Unknown):
        impatient(stand_in).push(to=GUEST, text="once", retry_key=KEY)
    line.push(to=GUEST, text="once", retry_key=KEY)
    assert texts(stand_in) == ["once"]


@pytest.mark.parametrize("mode", ["refuse", "error_500_before", "stall"])
def test_f11_an_unclear_failure_is_retried_with_the_key(
    stand_in: Running, line: Line, mode: str
) -> None:
    stand_in.fault(mode, seconds=5)
    with pytest.raises(Unknown):
        impatient(stand_in).push(to=GUEST, text="late", retry_key=KEY)
    assert texts(stand_in) == []
    assert len(stand_in.control("requests")) == 1  # the SDK did not try again by itself
    line.push(to=GUEST, text="late", retry_key=KEY)
    assert texts(stand_in) == ["late"]


def test_f11_a_blocked_user_is_refused_for_good(stand_in: Running, line: Line) -> None:
    stand_in.control("block", {"user": GUEST})
    with pytest.raises(Rejected) as refused:
        line.push(to=GUEST, text="x", retry_key=uuid4())
    assert refused.value.code == "http_400"
    line.push(to="Uother", text="x", retry_key=uuid4())
    assert texts(stand_in, "Uother") == ["x"]


def test_f11_a_rate_limit_waits_and_others_go_on(stand_in: Running, line: Line) -> None:
    stand_in.fault("rate_limit", seconds=30)
    with pytest.raises(Unreachable) as waiting:
        line.push(to=GUEST, text="x", retry_key=KEY)
    assert (waiting.value.code, waiting.value.retry_after) == ("rate_limited", 30)
    line.push(to="Uother", text="y", retry_key=uuid4())
    line.push(to=GUEST, text="x", retry_key=KEY)
    assert texts(stand_in) == ["x"]


def test_a_wrong_token_is_refused(stand_in: Running) -> None:
    with pytest.raises(Rejected) as refused:
        LineMessages("wrong", api_base=stand_in.url).push(to=GUEST, text="x", retry_key=KEY)
    assert refused.value.code == "http_401"


@pytest.mark.parametrize("to", ["", "U x"])
def test_an_empty_text_or_receiver_is_refused(line: Line, to: str) -> None:
    with pytest.raises(Rejected):
        line.push(to=to, text="", retry_key=KEY)


@pytest.mark.parametrize("base", ["http://no-such-host.invalid", "http://127.0.0.1:1"])
def test_a_host_that_is_not_there_did_nothing(base: str) -> None:
    with pytest.raises(Unreachable):
        LineMessages(TOKEN, api_base=base).push(to=GUEST, text="x", retry_key=KEY)


def test_a_closed_port_did_nothing(stand_in: Running, line: Line) -> None:
    line.push(to=GUEST, text="before", retry_key=uuid4())
    stand_in.control("unlisten", {"seconds": 1})
    time.sleep(0.2)
    with pytest.raises(Unreachable):
        line.push(to=GUEST, text="meanwhile", retry_key=KEY)

    def back() -> bool:
        try:
            line.push(to=GUEST, text="meanwhile", retry_key=KEY)
        except Unreachable:
            return False
        return True

    assert eventually(back)
    assert texts(stand_in) == ["before", "meanwhile"]


def test_nothing_blocks_longer_than_its_time(stand_in: Running) -> None:
    stand_in.fault("stall", seconds=20)
    began = time.monotonic()
    with pytest.raises(Unknown):
        impatient(stand_in).push(to=GUEST, text="x", retry_key=KEY)
    assert time.monotonic() - began < 3


def test_a_long_text_is_accepted(stand_in: Running, line: Line) -> None:
    line.push(to=GUEST, text="👩‍👩‍👧‍👦" * 1000, retry_key=KEY)
    (received,) = texts(stand_in)
    assert received == "👩‍👩‍👧‍👦" * 454  # eleven UTF-16 units each


@pytest.mark.parametrize(
    ("text", "limit", "left"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("鍵鍵鍵", 2, "鍵鍵"),
        ("a🔑b", 2, "a"),
        ("a🔑b", 3, "a🔑"),
        ("a𠮷b", 2, "a"),
        ("か\u3099", 1, "か"),  # one cluster of two units: only a hard cut is left
        ("xか\u3099", 2, "x"),
        ("🇯🇵🇯🇵", 7, "🇯🇵"),
        ("a\r\nb", 2, "a"),
        ("a\ud800b", 2, "a\ud800"),
        ("", 5, ""),
    ],
)
def test_a_text_is_cut_between_characters(text: str, limit: int, left: str) -> None:
    assert fitting(text, limit) == left


def test_the_token_and_the_text_are_not_in_errors_or_logs(
    stand_in: Running, line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stand_in.control("block", {"user": GUEST})
    secret = str(uuid4())
    with pytest.raises(Rejected) as refused:
        line.push(to=GUEST, text=f"the code is {secret}", retry_key=KEY)
    written = "".join(traceback.format_exception(refused.value)) + caplog.text
    assert secret not in written
    assert TOKEN not in written
    assert refused.value.__context__ is None


def test_no_push_leaves_while_a_transaction_is_open(stand_in: Running, line: Line) -> None:
    transaction_began()
    try:
        with pytest.raises(TransactionOpenError):
            line.push(to=GUEST, text="x", retry_key=KEY)
    finally:
        transaction_ended()
    assert stand_in.control("requests") == []
