"""The one screen that `make run` ends on: where things are, who may log in, what to pay with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.process import Part
from sandbox.stripe.cards import CARDS

WHAT_IT_IS = {
    "mail": "every e-mail, caught",
    "stripe": "payments, a stand-in",
    "seam": "door locks, Seam's own fake",
    "line": "LINE messages, a stand-in",
}


def screen(env: Mapping[str, str], told: Mapping[str, Any], parts: Mapping[str, Part]) -> str:
    """`told` is what `flask demo load --json` said: `logins`, and links by name."""
    lines = ["", f"  Monban is open: {env['PUBLIC_URL']}/staff/", ""]
    lines += [
        f"    {name:<8} {parts[name].url:<28} {what}"
        for name, what in WHAT_IT_IS.items()
        if name in parts
    ]
    lines += section("Demo data", named(told, is_link=False))
    lines += section("Log in as", logins(told.get("logins", [])))
    lines += section("Links", named(told, is_link=True))
    if "stripe" in parts:
        lines += section("Test cards (any later expiry, any CVC)", cards())
    lines += ["", "  Logs: var/log/.  Ctrl-C closes the house, `make reset` empties it.", ""]
    return "\n".join(lines)


def section(title: str, rows: Iterator[str]) -> list[str]:
    found = [f"    {row}" for row in rows]
    return ["", f"  {title}", *found] if found else []


def logins(people: Any) -> Iterator[str]:
    """Each a mapping; printed in the order in which the demo data tells it."""
    for person in people:
        yield "  ".join(f"{value!s:<24}" for value in person.values()).rstrip()


def named(told: Mapping[str, Any], *, is_link: bool) -> Iterator[str]:
    for name, value in told.items():
        if isinstance(value, str) and ("://" in value) == is_link:
            yield f"{name.replace('_', ' '):<18} {value}"


def cards() -> Iterator[str]:
    for card in CARDS:
        number = " ".join(card.number[i : i + 4] for i in range(0, 16, 4))
        yield f"{number}   {card.hint_en}"
