"""What the portal asks of a lock controller. No idempotency key exists here: look first."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

CodeStatus = Literal["setting", "set", "unset", "removing", "unknown"]


@dataclass(frozen=True, slots=True)
class LockCode:
    """One code as the controller tells it. Instants are aware UTC; `errors` are Seam's codes.

    `unset` without errors is a code that is not loaded yet, days before it starts.
    """

    id: str
    name: str
    device_id: str
    pin: str | None = field(repr=False)
    status: CodeStatus
    starts_at: datetime | None
    ends_at: datetime | None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockDevice:
    """`battery` is 0…1; None where the device does not tell. `max_codes`: None is unlimited."""

    id: str
    name: str
    online: bool
    battery: float | None
    max_codes: int | None


class Locks(Protocol):
    """Every method raises Unreachable, Unknown (writes only) or Rejected, and carries no PIN.

    A write that returns was accepted; whether the lock has it, `status` tells later.
    """

    def find_code(self, device_id: str, name: str) -> LockCode | None:
        """The code of this name on the device; one that is not being removed goes first."""
        ...

    def create_code(
        self, *, device_id: str, name: str, pin: str, starts_at: datetime, ends_at: datetime
    ) -> LockCode:
        """Instants are aware, else ValueError. A PIN that the device already has: Rejected
        `duplicate_code`."""
        ...

    def update_code(self, code_id: str, *, starts_at: datetime, ends_at: datetime) -> LockCode:
        """New validity, same PIN. Unknown also when it was accepted but could not be read back.

        Rejected `code_gone` when the controller no longer has the code.
        """
        ...

    def delete_code(self, code_id: str, *, device_id: str) -> None:
        """Returns when the removal is accepted, or when there is nothing left to remove."""
        ...

    def get_code(self, code_id: str) -> LockCode | None:
        """None only when the controller itself says that it has no such code."""
        ...

    def list_codes(self, device_id: str) -> list[LockCode]:
        """All codes of the device, those being removed included."""
        ...

    def device(self, device_id: str) -> LockDevice | None:
        """None when the controller says that it has no such device."""
        ...
