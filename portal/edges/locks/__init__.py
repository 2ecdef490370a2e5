"""Smart locks, through Seam."""

from portal.edges.locks.port import CodeStatus, LockCode, LockDevice, Locks
from portal.edges.locks.verify import BadBody, BadSignature, LockEvent, verify

__all__ = [
    "BadBody",
    "BadSignature",
    "CodeStatus",
    "LockCode",
    "LockDevice",
    "LockEvent",
    "Locks",
    "verify",
]
