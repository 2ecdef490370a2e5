"""Pure decisions, exhaustively or by property."""

import itertools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from portal import clock, money, seal
from portal.edges.locks.port import CodeStatus
from portal.edges.payments.port import IntentStatus
from portal.gates.checkin import CheckinRequest, evaluate_checkin_request
from portal.machines import MACHINES
from portal.money import Money
from portal.outcome import Code
from portal.policies import backoff, key_observation, payment_progress, pricing, stay_codes
from portal.policies.folding import digits, fold, like_pattern

BY_NAME = {machine.name: machine for machine in MACHINES}


# Folding (H13) ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("ﾀﾅｶ ﾊﾅ", "タナカハナ"),
        ("ﾀﾅｶ ﾊﾅ", "たなか\u3000はな"),
        ("か\u3099く", "がく"),
        ("か゛く", "がく"),
        ("ｶﾞｸ", "ガク"),
        ("髙橋", "高橋"),
        ("高橋", "髙橋"),
        ("山﨑", "山崎"),
        ("渡邉", "渡辺"),
        ("渡邊", "渡辺"),
        ("齋藤", "斎藤"),
        ("齊藤", "斎藤"),
        ("濵田", "浜田"),
        ("𠮷田", "吉田"),
        ("ＳＭＩＴＨ", "smith"),
        ("Smith", "SMITH"),
        ("É", "e\u0301"),
        ("１２３", "123"),
    ],
)
def test_h13_what_is_typed_finds_what_is_stored(stored: str, typed: str) -> None:
    assert fold(stored) == fold(typed) != ""


def test_h13_different_names_stay_different() -> None:
    names = ["田中", "中田", "高橋", "山崎", "さとう", "さいとう", "smith", "smyth", "がく", "かく"]
    assert len({fold(name) for name in names}) == len(names)


@given(some.text())
def test_folding_is_total_and_settles_at_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert not re.search(r"\s", fold(text))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("090-1234-5678", "09012345678"),
        ("０９０（１２３４）５６７８", "09012345678"),
        ("+81 90 1234 5678", "819012345678"),
        ("٠١٢", "012"),
        ("abc", ""),
        ("½²", ""),
    ],
)
def test_h13_phone_digits(typed: str, found: str) -> None:
    assert digits(typed) == found


@given(some.text())
def test_digits_are_ascii_digits(text: str) -> None:
    assert re.fullmatch(r"[0-9]*", digits(text))


@pytest.mark.parametrize("text", ["%", "_", "\\", "100%", "a_b", "\\%"])
def test_h14_signs_are_meant_literally(text: str) -> None:
    plain = like_pattern(text)[1:-1]
    assert re.sub(r"\\(.)", r"\1", plain) == text
    assert not re.search(r"(?<!\\)(?:\\\\)*[%_]", plain)


# Door codes and reservation codes ---------------------------------------------------------------


@pytest.mark.parametrize(
    "pin",
    ["000000", "111111", "112112", "121212", "123456", "654321", "890123", "210987", "123123",
     "123321", "001100", "989898"],
)  # fmt: skip
def test_what_a_stranger_tries_first_is_never_a_code(pin: str) -> None:
    assert seal.is_trivial(pin)


@pytest.mark.parametrize("pin", ["480217", "048213", "007291", "135790", "900183"])
def test_other_codes_are(pin: str) -> None:
    assert not seal.is_trivial(pin)


def test_codes_are_strings_of_six_digits_with_leading_zeros_and_no_pattern() -> None:
    drawn = [seal.new_pin() for _ in range(20_000)]
    assert all(re.fullmatch(r"[0-9]{6}", pin) for pin in drawn)
    assert not any(seal.is_trivial(pin) for pin in drawn)
    first = Counter(pin[0] for pin in drawn)
    assert set(first) == set("0123456789")
    assert min(first.values()) > 1500
    assert any(pin.startswith("00") for pin in drawn)


def test_reservation_codes_have_no_look_alikes() -> None:
    codes = {stay_codes.new_code() for _ in range(2000)}
    assert len(codes) == 2000
    assert all(re.fullmatch(r"[A-HJ-NP-Z2-9]{8}", code) for code in codes)
    assert Counter(stay_codes.ALPHABET) == Counter("23456789ABCDEFGHJKLMNPQRSTUVWXYZ")


@pytest.fixture
def keys() -> Any:
    before = seal._keys
    yield seal.configure
    seal._keys = before


def test_what_is_sealed_opens_with_the_old_key_after_a_rotation(keys: Any) -> None:
    keys(("old",))
    sealed, mark = seal.close("048213"), seal.mark("048213")
    assert "048213" not in sealed
    keys(("new", "old"))
    assert seal.unseal(sealed) == "048213"
    assert seal.mark("048213") == mark
    assert 0 <= mark < 2**62
    fresh = seal.close("048213")
    keys(("new",))
    assert seal.unseal(fresh) == "048213"
    with pytest.raises(seal.BrokenSealError):
        seal.unseal(sealed)
    with pytest.raises(seal.BrokenSealError):
        seal.unseal("nonsense")


# Pricing ----------------------------------------------------------------------------------------

NOON = datetime(2026, 10, 31, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "hours", "units"),
    [
        ("visit", 1, 1),
        ("visit", 100, 1),
        ("hour", 1, 1),
        ("hour", 2, 2),
        ("night", 1, 1),
        ("night", 11, 1),
        ("night", 12, 1),
        ("night", 36, 2),
        ("night", 24 * 30, 30),
    ],
)
def test_units(unit: str, hours: int, units: int) -> None:
    ends = NOON + timedelta(hours=hours)
    assert pricing.units(unit, NOON, ends, "Asia/Tokyo") == units
    assert pricing.quote(unit, 900, NOON, ends, "Asia/Tokyo") == 900 * units


@pytest.mark.parametrize(
    ("minutes", "hours"), [(1, 1), (59, 1), (60, 1), (61, 2), (120, 2), (121, 3)]
)
def test_an_hour_begun_is_an_hour(minutes: int, hours: int) -> None:
    assert pricing.units("hour", NOON, NOON + timedelta(minutes=minutes), "Asia/Tokyo") == hours


def test_nights_are_the_houses_even_where_the_clocks_change() -> None:
    """Berlin sets its clocks back in the night to 2026-10-25."""
    starts = clock.instant_at(date(2026, 10, 24), time(15), "Europe/Berlin")
    ends = clock.instant_at(date(2026, 10, 26), time(11), "Europe/Berlin")
    assert pricing.units("night", starts, ends, "Europe/Berlin") == 2
    assert ends - starts == timedelta(hours=45)


@given(some.integers(0, 10**8), some.integers(0, 10**8), some.integers(-(10**8), 10**8))
def test_the_open_deposit_is_never_more_than_is_owed(due: int, charged: int, balance: int) -> None:
    open_ = pricing.deposit_open(due, charged, balance)
    assert 0 <= open_ <= max(0, balance)
    assert open_ <= max(0, due - (charged - balance))


# Payment progress and key observation -----------------------------------------------------------

PROGRESS = {
    ("open", "processing"): "provider_processing",
    ("open", "succeeded"): "provider_succeeded",
    ("open", "canceled"): "provider_canceled",
    ("processing", "succeeded"): "provider_succeeded",
    ("processing", "canceled"): "provider_canceled",
    ("processing", "requires_payment_method"): "provider_declined",
    ("processing", "requires_capture"): "provider_declined",
    ("unknown", "processing"): "provider_processing",
    ("unknown", "succeeded"): "provider_succeeded",
    ("unknown", "canceled"): "provider_canceled",
    ("unknown", "requires_payment_method"): "provider_declined",
    ("unknown", "requires_confirmation"): "provider_declined",
    ("unknown", "requires_action"): "provider_declined",
    ("unknown", "requires_capture"): "provider_declined",
}


def states(name: str) -> set[str]:
    return {state for was, _, to in BY_NAME[name].pairs() for state in (was, to)}


def test_every_state_against_every_word_of_the_card_provider() -> None:
    for state, status in itertools.product(states("payment"), get_args(IntentStatus)):
        event = payment_progress.event_for(state, status)
        assert event == PROGRESS.get((state, status))
        assert event is None or BY_NAME["payment"].allows(state, event)


@given(some.integers(1, 10**8), some.integers(-(10**8), 10**8))
def test_the_surplus_is_what_the_guest_did_not_owe(amount: int, before: int) -> None:
    over = payment_progress.surplus(amount, before)
    assert 0 <= over <= amount
    assert amount - over == min(amount, max(0, before))


ERRORS = [(), ("duplicate_code_on_device",), ("no_space_for_access_code_on_device",), ("other",)]


def observed(state: str, status: str | None, errors: tuple[str, ...]) -> str | None:
    """The whole table, written as it is meant."""
    hopeless = errors in ERRORS[1:3]
    if state == "revoking" and status is None:
        return "removed_from_lock"
    if state in ("requested", "missing") and status == "set":
        return "set_on_lock"
    if state == "requested" and (status is None or hopeless):
        return "lock_refused"
    if state == "issued" and (status is None or (status == "unset" and errors)):
        return "vanished_from_lock"
    return None


def test_every_state_against_every_word_of_the_lock() -> None:
    statuses = (*get_args(CodeStatus), None)
    for state, status, errors in itertools.product(states("entry_key"), statuses, ERRORS):
        event = key_observation.event_for(state, status, errors)
        assert event == observed(state, status, errors), (state, status, errors)
        assert event is None or BY_NAME["entry_key"].allows(state, event)


def test_g2_a_code_that_waits_for_its_day_is_neither_set_nor_refused() -> None:
    assert key_observation.event_for("requested", "unset", ()) is None
    assert key_observation.event_for("requested", "setting", ()) is None


# The gate ---------------------------------------------------------------------------------------

instants = some.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=some.just(UTC)).map(
    lambda instant: instant.replace(fold=0)
)
requests = some.builds(
    CheckinRequest,
    now=instants,
    starts_at=instants,
    ends_at=instants,
    early_minutes=some.integers(0, 600),
    balance_due=some.integers(-(10**6), 10**6),
    currency=some.sampled_from(sorted(money.EXPONENTS)),
    payment_processing=some.booleans(),
    payment_unknown=some.booleans(),
    space_active=some.booleans(),
    space_quarantined=some.booleans(),
    space_occupied=some.booleans(),
    withheld=some.sampled_from([None, Code.MEMBERS_ONLY_PLAN, Code.MEMBERSHIP_PAUSED]),
    register_missing=some.booleans(),
)


@given(requests)
def test_the_gate_is_total_and_deterministic_and_names_its_ground(request: CheckinRequest) -> None:
    said = evaluate_checkin_request(request)
    assert said == evaluate_checkin_request(request)
    assert said.allowed == (said.code is None)
    assert said.allowed == (said.rule == "")
    assert re.fullmatch(r"[0-9a-f]{64}", request.digest())


@given(requests)
def test_the_gate_opens_exactly_when_nothing_stands_against_it(request: CheckinRequest) -> None:
    opens = request.starts_at - timedelta(minutes=request.early_minutes)
    wanted = (
        opens <= request.now < request.ends_at
        and request.withheld is None
        and request.space_active
        and not request.space_occupied
        and not request.space_quarantined
        and not request.register_missing
        and request.balance_due <= 0
    )
    assert evaluate_checkin_request(request).allowed == wanted


@given(requests.filter(lambda request: request.balance_due > 0))
def test_nobody_who_owes_gets_in(request: CheckinRequest) -> None:
    assert not evaluate_checkin_request(request).allowed


@given(requests, requests)
def test_the_digest_tells_requests_apart(one: CheckinRequest, other: CheckinRequest) -> None:
    assert (one == other) == (one.digest() == other.digest())


def test_the_balance_is_told_in_money() -> None:
    said = evaluate_checkin_request(
        CheckinRequest(
            NOON,
            NOON,
            NOON + timedelta(hours=1),
            0,
            500,
            "JPY",
            False,
            False,
            True,
            False,
            False,
            None,
        )
    )
    assert (said.code, said.details) == (Code.BALANCE_DUE, {"amount": Money(500, "JPY")})


@pytest.mark.parametrize(
    ("facts", "code", "rule", "details"),
    [
        ({}, None, "", {}),
        (
            {"now": NOON - timedelta(minutes=31), "early_minutes": 30},
            Code.STAY_NOT_YET_OPEN,
            "window",
            {"opens_at": NOON - timedelta(minutes=30)},
        ),
        ({"now": NOON - timedelta(minutes=30), "early_minutes": 30}, None, "", {}),
        (
            {"now": NOON + timedelta(hours=1)},
            Code.STAY_WINDOW_OVER,
            "window",
            {"ended_at": NOON + timedelta(hours=1)},
        ),
        ({"now": NOON + timedelta(minutes=59)}, None, "", {}),
        (
            {"withheld": Code.MEMBERSHIP_PAUSED, "space_active": False, "balance_due": 1},
            Code.MEMBERSHIP_PAUSED,
            "membership",
            {},
        ),
        (
            {"withheld": Code.MEMBERS_ONLY_PLAN, "now": NOON + timedelta(hours=1)},
            Code.STAY_WINDOW_OVER,
            "window",
            {"ended_at": NOON + timedelta(hours=1)},
        ),
        ({"space_active": False, "space_occupied": True}, Code.SPACE_NOT_USABLE, "space", {}),
        ({"space_occupied": True, "space_quarantined": True}, Code.SPACE_TAKEN, "space", {}),
        ({"space_quarantined": True, "balance_due": 1}, Code.SPACE_QUARANTINED, "space", {}),
        ({"payment_unknown": True, "payment_processing": True}, None, "", {}),
        ({"balance_due": -1, "payment_unknown": True}, None, "", {}),
        (
            {"balance_due": 1, "payment_unknown": True, "payment_processing": True},
            Code.PAYMENT_UNKNOWN,
            "settled",
            {},
        ),
        ({"balance_due": 1, "payment_processing": True}, Code.PAYMENT_PENDING, "settled", {}),
        ({"balance_due": 1}, Code.BALANCE_DUE, "settled", {"amount": Money(1, "JPY")}),
    ],
)
def test_the_gate_names_the_first_rule_that_fires(
    facts: dict[str, Any], code: Code | None, rule: str, details: dict[str, Any]
) -> None:
    fine = CheckinRequest(
        NOON, NOON, NOON + timedelta(hours=1), 0, 0, "JPY", False, False, True, False, False, None
    )
    said = evaluate_checkin_request(replace(fine, **facts))
    assert (said.allowed, said.code, said.rule) == (code is None, code, rule)
    assert said.details == details


# Back-off, clock, money -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["DOOR", "MONEY", "WORDS", "EVENT"])
def test_pauses_grow_and_the_last_repeats(name: str) -> None:
    schedule = getattr(backoff, name)
    waits = [backoff.wait(schedule, attempts) for attempts in range(1, 30)]
    assert waits == sorted(waits)
    assert waits[0] == timedelta(seconds=schedule[0]) > timedelta(0)
    assert waits[-1] == timedelta(seconds=schedule[-1])
    assert backoff.wait(schedule, 0) == backoff.wait(schedule, -3) == waits[0]


def test_the_pauses_are_these() -> None:
    assert backoff.DOOR == (2, 5, 15, 30, 60, 120, 300)
    assert backoff.MONEY == (5, 30, 120, 600, 1800, 3600)
    assert backoff.WORDS == (10, 60, 300, 900, 3600)
    assert backoff.EVENT == (2, 10, 60, 300, 1800)
    assert (backoff.DOOR_LIMIT, backoff.WORDS_LIMIT, backoff.EVENT_LIMIT) == (20, 8, 12)
    waits = [backoff.wait(backoff.MONEY, attempts).total_seconds() for attempts in range(8)]
    assert waits == [5, 5, 30, 120, 600, 1800, 3600, 3600]


DAYS = """
from datetime import *; from portal import clock
at, zone = datetime(2026, 10, 31, 14, 59, 59, tzinfo=UTC), "Asia/Tokyo"
print(clock.local_day(at, zone), clock.local_day(at + timedelta(seconds=1), zone))
print(*(bound.isoformat() for bound in clock.day_bounds(date(2026, 11, 1), zone)))
print(clock.now().tzinfo)
"""


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Tokyo", "nonsense"])
def test_e1_days_are_the_houses_whatever_the_process_thinks(zone: str) -> None:
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            DAYS,
        ],
        env={"TZ": zone, "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [
        "2026-10-31",
        "2026-11-01",
        "2026-10-31T15:00:00+00:00",
        "2026-11-01T15:00:00+00:00",
        "UTC",
    ]


def test_a_day_has_the_hours_it_has() -> None:
    for day, hours in ((date(2026, 10, 25), 25), (date(2026, 3, 29), 23), (date(2026, 6, 1), 24)):
        starts, ends = clock.day_bounds(day, "Europe/Berlin")
        assert ends - starts == timedelta(hours=hours)


def test_the_clock_is_set_and_restored() -> None:
    clock.set_source(lambda: NOON)
    assert clock.now() == NOON
    clock.set_source(None)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.nights(NOON, NOON + timedelta(hours=5), "Asia/Tokyo") == 0


@pytest.mark.parametrize("currency", ["KWD", "BHD", "XXX", "jpy", ""])
def test_c2_other_currencies_are_refused_with_a_clear_line(currency: str) -> None:
    with pytest.raises(money.UnsupportedCurrencyError, match="supported currencies are"):
        Money(100, currency)


@pytest.mark.parametrize(
    ("amount", "below"), [(0, False), (1, True), (49, True), (50, False), (-1, False), (500, False)]
)
def test_c4_the_card_rails_minimum(amount: int, below: bool) -> None:
    assert money.below_card_minimum(Money(amount, "JPY")) == below
