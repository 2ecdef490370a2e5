"""What an event's handler is given and what it says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from portal.db import Row
from portal.doorbell import Kind
from portal.inbox import Result


class NotYetError(Exception):
    """The event speaks of an object that we do not have; it may have overtaken our own commit."""


class PermanentFaultError(Exception):
    """No retry can help: a person must look."""


@dataclass(frozen=True, slots=True)
class Applying:
    """One claimed event and the token of its claim."""

    event: Row
    token: UUID

    @property
    def payload(self) -> Mapping[str, Any]:
        try:
            read = json.loads(bytes(self.event.payload))
        except ValueError as fault:
            raise PermanentFaultError(f"the stored payload cannot be read: {fault}") from None
        if not isinstance(read, dict):
            raise PermanentFaultError("the stored payload is not an object")
        return read


@dataclass(frozen=True, slots=True)
class Handled:
    """How the event ends, why, and what to ring once it has committed."""

    result: Result
    detail: str = ""
    rings: tuple[Kind, ...] = field(default=())
