"""Codes of reservations and ticket books: what a guest reads out at a desk or types at a door."""

import secrets
import unicodedata

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without 0, 1, I and O, which people confuse."""

LENGTH = 8


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def as_typed(text: str) -> str:
    """A code as somebody typed it, whatever width, case and gaps they gave it."""
    plain = unicodedata.normalize("NFKC", text).upper()
    return "".join(plain.replace("-", " ").split())


def is_code(text: str) -> bool:
    return len(text) == LENGTH and set(text) <= set(ALPHABET)
