"""The faults of an edge, one name for each, and how every stand-in is told to commit it.

A fault has a fate: what has become of the work by the time the caller gives up.

    undone   it certainly was not done, and the caller can know that
    lost     nobody who called can know; `done` says whether it was carried out
    right    it was done and said so, only late
"""

from dataclasses import dataclass
from typing import Any, Literal

Edge = Literal["payments", "locks", "mail", "line"]
Fate = Literal["undone", "lost", "right"]

PATIENCE = {"payments": 2.0, "locks": 1.0, "mail": 2.0, "line": 1.0}
"""Seconds that the tests' adapters wait for an answer (`worker` in tests/outside.py)."""

SLOWLY = 0.3
"""Seconds of an answer that is late and still right."""

TIMES = 3
"""How often the fault of an edge that comes back in the end is met."""


@dataclass(frozen=True)
class Fault:
    """`done`: the work has been carried out, or will be, whatever the caller hears."""

    name: str
    fate: Fate
    done: bool = False
    times: int = 1

    def __str__(self) -> str:
        return self.name


REFUSED = Fault("refused", "undone")
CUT_BEFORE = Fault("cut_before", "lost")
SILENT_BEFORE = Fault("silent_before", "lost")
DONE_AND_CUT = Fault("done_and_cut", "lost", done=True)
DONE_AND_SILENT = Fault("done_and_silent", "lost", done=True)
DONE_TOO_LATE = Fault("done_too_late", "lost", done=True)
ERROR_BEFORE = Fault("error_before", "lost")
ERROR_AFTER = Fault("error_after", "lost", done=True)
ERROR_THRICE = Fault("error_thrice", "lost", times=TIMES)
LIMITED = Fault("limited", "undone")
LIMITED_THRICE = Fault("limited_thrice", "undone", times=TIMES)
SLOW = Fault("slow", "right", done=True)

FAULTS = (
    REFUSED,
    CUT_BEFORE,
    SILENT_BEFORE,
    DONE_AND_CUT,
    DONE_AND_SILENT,
    DONE_TOO_LATE,
    ERROR_BEFORE,
    ERROR_AFTER,
    ERROR_THRICE,
    LIMITED,
    LIMITED_THRICE,
    SLOW,
)

UNHEARD = (SILENT_BEFORE, DONE_AND_SILENT, DONE_TOO_LATE)
"""Those in which the caller waits until its own patience ends."""

# SMTP knows the step at which it broke: before the text has left nothing was taken over.
MAIL: dict[Fault, tuple[Fate, str, dict[str, Any]]] = {
    REFUSED: ("undone", "", {}),
    CUT_BEFORE: ("undone", "drop_at_data", {}),
    SILENT_BEFORE: ("undone", "stall_at_mail", {"seconds": 3}),
    Fault("cut_in_text", "lost"): ("lost", "drop_in_text", {}),
    Fault("silent_in_text", "lost"): ("lost", "stall_in_text", {"seconds": 3}),
    DONE_AND_CUT: ("lost", "keep_then_drop", {}),
    DONE_AND_SILENT: ("lost", "keep_then_stall", {"seconds": 3}),
    ERROR_BEFORE: ("undone", "451 MAIL", {}),
    ERROR_THRICE: ("undone", "451 DATA", {"times": TIMES}),
    LIMITED: ("undone", "450 RCPT", {}),
    LIMITED_THRICE: ("undone", "421 MAIL", {"times": TIMES}),
    SLOW: ("right", "slow", {"seconds": SLOWLY}),
}

_STRIPE: dict[Fault, dict[str, Any]] = {
    CUT_BEFORE: {"mode": "refuse"},
    SILENT_BEFORE: {"mode": "stall", "when": "instead"},
    DONE_AND_CUT: {"mode": "do_then_drop"},
    DONE_AND_SILENT: {"mode": "stall", "when": "after"},
    DONE_TOO_LATE: {"mode": "stall", "when": "before"},
    ERROR_BEFORE: {"mode": "error_500_before"},
    ERROR_AFTER: {"mode": "error_500_after"},
    ERROR_THRICE: {"mode": "error_500_before"},
    LIMITED: {"mode": "rate_limit", "retry_after": 1},
    LIMITED_THRICE: {"mode": "rate_limit"},
    SLOW: {"mode": "stall", "when": "before", "seconds": SLOWLY},
}

_DOOR: dict[Fault, dict[str, Any]] = {
    CUT_BEFORE: {"mode": "refuse"},
    SILENT_BEFORE: {"mode": "stall"},
    DONE_AND_CUT: {"mode": "do_then_drop"},
    DONE_AND_SILENT: {"mode": "do_then_stall"},
    DONE_TOO_LATE: {"mode": "slow"},
    ERROR_BEFORE: {"mode": "error_500_before"},
    ERROR_AFTER: {"mode": "error_500_after"},
    ERROR_THRICE: {"mode": "error_500_before"},
    LIMITED: {"mode": "rate_limit", "seconds": 1},
    LIMITED_THRICE: {"mode": "rate_limit", "seconds": 1},
    SLOW: {"mode": "slow", "seconds": SLOWLY},
}


def order(edge: Edge, fault: Fault) -> dict[str, Any]:
    """What a stand-in's control door is told, without method and path."""
    told = (_STRIPE if edge == "payments" else _DOOR)[fault]
    silence = {"seconds": PATIENCE[edge] + 0.5} if fault in UNHEARD else {}
    return {"times": fault.times, **silence, **told}


def fate(edge: Edge, fault: Fault) -> Fate:
    return MAIL[fault][0] if edge == "mail" else fault.fate


def of(edge: Edge) -> tuple[Fault, ...]:
    """The faults that this edge can have. A mail server that says "no" and keeps the text, or
    takes it long after the sender has hung up, cannot be told from one that keeps and is silent."""
    return tuple(MAIL) if edge == "mail" else FAULTS
