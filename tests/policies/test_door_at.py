"""Whether a code opened its door at a moment."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.policies.door_at import Retimed, Step, door_at

START = datetime(2026, 6, 1, 6, tzinfo=UTC)
END = START + timedelta(hours=19)
HOUR = timedelta(hours=1)


def step(state: str, hours: float) -> Step:
    return Step(START + hours * HOUR, state, "somebody")


WHOLE = (step("requested", 0), step("issued", 0.1), step("revoking", 18), step("revoked", 18.5))


@pytest.mark.parametrize(
    ("hours", "answer"),
    [
        (-1, "absent"),
        (0, "unconfirmed"),
        (0.1, "open"),
        (17.99, "open"),
        (18, "removing"),
        (18.5, "removed"),
        (100, "removed"),
    ],
)
def test_through_a_stay(hours: float, answer: str) -> None:
    assert door_at(START + hours * HOUR, WHOLE, START, END).answer == answer


def test_a_code_holds_only_within_its_time() -> None:
    early = (step("requested", -5), step("issued", -4))
    assert door_at(START - HOUR, early, START, END).answer == "early"
    assert door_at(START, early, START, END).answer == "open"
    assert door_at(END, early, START, END).answer == "late"


def test_a_lost_removal_ends_with_the_codes_own_time() -> None:
    """The lock keeps the window by itself, so nothing is unsure after it."""
    stuck = (step("requested", 0), step("issued", 0), step("revoking", 2))
    assert door_at(END - HOUR, stuck, START, END).answer == "removing"
    assert door_at(END + HOUR, stuck, START, END).answer == "late"


def test_missing_and_found_again() -> None:
    steps = (step("requested", 0), step("issued", 0), step("missing", 1), step("issued", 2))
    assert door_at(START + 1.5 * HOUR, steps, START, END).answer == "missing"
    assert door_at(START + 2.5 * HOUR, steps, START, END).answer == "open"


def test_a_refused_code_never_opens() -> None:
    assert door_at(START + HOUR, (step("requested", 0), step("failed", 0)), START, END).answer == (
        "refused"
    )


def test_the_end_that_held_then() -> None:
    """Extended at hour 10 from 19 to 43: at hour 20 it is open, but at hour 5 the end was 19."""
    later = END + 24 * HOUR
    moved = (Retimed(START + 10 * HOUR, END, later),)
    steps = (step("requested", 0), step("issued", 0))
    assert door_at(START + 20 * HOUR, steps, START, later, moved).answer == "open"
    assert door_at(START + 5 * HOUR, steps, START, later, moved).ends_at == END
    assert door_at(START + 11 * HOUR, steps, START, later, moved).ends_at == later


def test_a_cut_stay_was_open_before_the_cut() -> None:
    cut = END - 24 * HOUR
    moved = (Retimed(START + 2 * HOUR, END, cut + 6 * HOUR),)
    steps = (step("requested", 0), step("issued", 0))
    assert door_at(START + HOUR, steps, START, cut + 6 * HOUR, moved).answer == "open"
    assert door_at(START + 3 * HOUR, steps, START, cut + 6 * HOUR, moved).answer == "late"


def test_the_last_record_of_an_instant_counts() -> None:
    steps = (step("requested", 0), step("issued", 0))
    verdict = door_at(START, steps, START, END)
    assert verdict.answer == "open"
    assert verdict.step == steps[1]
