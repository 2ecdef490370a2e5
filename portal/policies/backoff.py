"""How long to wait before the next attempt, and when to leave it to a person."""

from datetime import timedelta

# Seconds after the 1st, 2nd, … failed attempt; the last repeats.
DOOR = (2, 5, 15, 30, 60, 120, 300)
MONEY = (5, 30, 120, 600, 1800, 3600)
WORDS = (10, 60, 300, 900, 3600)
EVENT = (2, 10, 60, 300, 1800)

DOOR_LIMIT = 20
WORDS_LIMIT = 8
EVENT_LIMIT = 12


def wait(schedule: tuple[int, ...], attempts: int) -> timedelta:
    """The pause after `attempts` attempts, the first being 1."""
    return timedelta(seconds=schedule[min(max(attempts, 1), len(schedule)) - 1])
