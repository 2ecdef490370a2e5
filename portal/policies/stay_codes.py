"""Reservation codes: what a guest reads out at a desk or types at a door."""

import secrets

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without 0, 1, I and O, which people confuse."""

LENGTH = 8


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
