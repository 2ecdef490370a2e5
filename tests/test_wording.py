"""Words for every code, state and event, in both languages."""

import re
from typing import get_args

import pytest
from flask_babel import force_locale

from portal import ledger, wording
from portal.machines import MACHINES
from portal.outcome import Code, Standing
from portal.web import words
from portal.web.guest import words as guest_words
from portal.web.people import ROLES

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


@pytest.fixture(params=["ja", "en"])
def speaking(request, app):
    with app.test_request_context(), force_locale(request.param):
        yield request.param


def is_in(locale: str, text: str) -> bool:
    return bool(JAPANESE.search(text)) == (locale == "ja")


def test_every_kind_of_line_has_words_for_guests_and_for_staff():
    """A kind without them would break the page of whoever has such a line."""
    kinds = set(get_args(ledger.Kind))
    assert set(words.LEDGER) == set(guest_words.ENTRIES) == kinds
    assert set(ledger.MONEY) == kinds - {"charge", "charge_reversed", "fee"}


def test_codes_and_messages_are_the_same_set():
    assert set(wording.MESSAGES) == {str(code) for code in Code}


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_words(speaking, code):
    text = wording.message(code, {}, str)
    assert is_in(speaking, text), text
    assert "%" not in text
    assert wording.statuses(code)
    assert set(wording.statuses(code)) <= {"applied", "noop", "conflict", "refused"}


@pytest.mark.parametrize("code", list(Code))
def test_both_languages_name_the_same_details(app, code):
    named = []
    for locale in ("ja", "en"):
        with app.test_request_context(), force_locale(locale):
            named.append(sorted(PLACEHOLDER.findall(str(wording.MESSAGES[code][1]))))
    assert named[0] == named[1]


def test_every_state_and_event_of_every_machine_has_words(speaking):
    for machine in MACHINES:
        assert set(wording.STATES[machine.name]) == set(machine.table)
        events = {event for _, event, _ in machine.pairs()} | {"created"}
        assert set(wording.EVENTS[machine.name]) == events
        for state in machine.table:
            assert is_in(speaking, wording.state_name(machine.name, state)), state
        for event in events:
            assert is_in(speaking, wording.event_name(machine.name, event)), event
    assert set(wording.STATES) == set(wording.EVENTS) == {machine.name for machine in MACHINES}


def test_every_role_has_words(speaking):
    assert all(is_in(speaking, wording.role_name(role)) for role in ROLES)


def test_a_standing_without_a_time_or_gone_has_words(speaking):
    now = Standing("stay", "cancelled", 3)
    assert wording.state_name("stay", "cancelled") in wording.standing(now, str)
    assert is_in(speaking, wording.standing(Standing("stay", "gone", 0), str))


def test_a_detail_that_a_verb_forgot_leaves_a_dash_not_a_crash(speaking):
    assert wording.UNKNOWN in wording.message(Code.BALANCE_DUE, {"other": 1}, str)
