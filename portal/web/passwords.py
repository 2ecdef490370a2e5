"""Passwords: argon2, and the same time for a wrong one as for an unknown person."""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

LONGEST = 1024

_hasher = PasswordHasher()
_nobody: str | None = None


def digest(password: str) -> str:
    return _hasher.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """`kept` None is an unknown person: as much work, and never a match."""
    try:
        return _hasher.verify(kept or _decoy(), password[:LONGEST]) and kept is not None
    except (VerifyMismatchError, VerificationError, InvalidHashError):
        return False


def outdated(kept: str) -> bool:
    """Made with weaker settings than today's."""
    return _hasher.check_needs_rehash(kept)


def _decoy() -> str:
    global _nobody
    _nobody = _nobody or _hasher.hash("nobody has this password")
    return _nobody
