"""Sealing: door codes, link tokens and client secrets at rest (Fernet, with key rotation).

`mark` gives equal secrets an equal number without giving them away, so that the database can
keep a code unique on a door while it cannot read one.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

PIN_DIGITS = 6


class BrokenSealError(ValueError):
    """The value was not sealed with any key we hold."""


@dataclass(frozen=True, slots=True)
class _Keys:
    fernet: MultiFernet
    mark_key: bytes


_keys: _Keys | None = None


def configure(keys: tuple[str, ...]) -> None:
    """The first key seals; every key opens. Marks use the last, which must outlive the rest."""
    global _keys
    fernets = [Fernet(_derived(key, b"seal")) for key in keys]
    _keys = _Keys(MultiFernet(fernets), _derived(keys[-1], b"mark"))


def close(plain: str) -> str:
    return _held().fernet.encrypt(plain.encode()).decode()


def unseal(sealed: str) -> str:
    try:
        return _held().fernet.decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise BrokenSealError("a sealed value opens with none of the configured keys") from None


def mark(plain: str) -> int:
    """A keyed 62-bit number for equality tests; fits PostgreSQL's bigint ranges."""
    digest = hmac.new(_held().mark_key, plain.encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def fingerprint(plain: str) -> str:
    """A keyed hash for equality alone: who has the database and not the key can try no number."""
    keyed = hmac.new(_held().mark_key, b"document:" + plain.encode(), hashlib.sha256)
    return keyed.hexdigest()


def _held() -> _Keys:
    if _keys is None:
        raise RuntimeError("seal.configure was not called")
    return _keys


def _derived(key: str, purpose: bytes) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(purpose + b":" + key.encode()).digest())


def new_token() -> str:
    """A link token: 256 bits, URL-safe."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> bytes:
    """What is stored of a link or session token. Its entropy makes a slow hash unnecessary."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def new_pin() -> str:
    """A door code from a CSPRNG: a string, leading zeros included, without trivial patterns."""
    while True:
        pin = f"{secrets.randbelow(10**PIN_DIGITS):0{PIN_DIGITS}d}"
        if not is_trivial(pin):
            return pin


def is_trivial(pin: str) -> bool:
    """Few digits, a run up or down, or a repeated group: what a stranger tries first."""
    steps = {(int(b) - int(a)) % 10 for a, b in zip(pin, pin[1:], strict=False)}
    half, third = len(pin) // 2, len(pin) // 3
    return (
        len(set(pin)) < 3
        or steps in ({1}, {9})
        or pin == pin[:half] * 2
        or pin == pin[:third] * 3
        or pin == pin[:half] + pin[:half][::-1]
    )
