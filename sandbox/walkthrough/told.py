"""What the walkthrough prints: each step with its proof and its time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress


class ProofFailedError(AssertionError):
    """What should have been so was not."""


class Teller:
    def __init__(self) -> None:
        self.held = self.broken = 0
        self._began = time.monotonic()

    def journey(self, title: str, steps: Callable[[], None]) -> None:
        """Its steps depend on one another, so the first that fails ends it, and the next begins."""
        print(f"\n{title}", flush=True)
        try:
            steps()
        except Exception as fault:
            self.broken += 1
            print(f"  BROKEN  {type(fault).__name__}: {fault}", flush=True)
            if not isinstance(fault, ProofFailedError):
                traceback.print_exc()

    def proof(self, what: str, holds: object, seen: object = "") -> None:
        """Say it, with what was seen; raise when it does not hold."""
        at = time.monotonic() - self._began
        if not holds:
            raise ProofFailedError(f"{what} — seen: {seen}")
        self.held += 1
        print(f"  {at:6.1f} s  {what}" + (f"  [{seen}]" if seen != "" else ""), flush=True)

    def soon(
        self, what: str, look: Callable[[], object], seconds: float = 60, seen: object = ""
    ) -> None:
        """A proof that becomes true within `seconds`, without anybody's help."""
        end = time.monotonic() + seconds
        found: object = None
        while time.monotonic() < end:
            with suppress(LookupError, OSError):
                found = look()
                if found:
                    break
            time.sleep(0.2)
        self.proof(what, found, seen if found else f"not within {seconds:.0f} s")

    def verdict(self) -> int:
        seconds = time.monotonic() - self._began
        counted = f"{self.held} proofs held, {self.broken} journeys broken"
        print(f"\nwalkthrough: {counted}, {seconds:.0f} s")
        return 1 if self.broken else 0
