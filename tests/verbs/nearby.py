"""A card provider within this process, for tests of what happens between a call and its answer.

What the provider itself does is the stand-in's; see `tests.outside`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
from flask import Flask

from portal import clock
from portal.edges.payments.port import Intent
from tests.outside import Owner
from tests.verbs.books import another_writes


@dataclass
class Nearby:
    """Behind a wire of ours: something may happen here `meanwhile` it answers, and a `fault` may
    arrive in its answer's place."""

    intents: dict[str, Intent] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None
    fault: Exception | None = None

    def create_intent(self, **asked: Any) -> Intent:
        self.asked.append(asked)
        made = Intent(
            id=f"pi_{len(self.intents) + 1}",
            status="requires_payment_method",
            amount=asked["amount"],
            amount_received=0,
            currency=asked["currency"],
            client_secret="a secret",
            metadata=asked["metadata"],
            latest_charge=None,
            livemode=True,
            created=clock.now(),
            decline_code=None,
        )
        self.intents[made.id] = made
        return self._answer(made)

    def retrieve_intent(self, intent_id: str) -> Intent:
        return self._answer(self.intents[intent_id])

    def find_intent(self, *, payment_id: str, since: datetime) -> Intent | None:
        found = [
            one
            for one in self.intents.values()
            if one.metadata["payment_id"] == payment_id and one.created >= since
        ]
        return self._answer(found[0] if found else None)

    def cancel_intent(self, intent_id: str) -> Intent:
        self.change(intent_id, status="canceled")
        return self._answer(self.intents[intent_id])

    def change(self, intent_id: str, **changes: Any) -> Intent:
        self.intents[intent_id] = replace(self.intents[intent_id], **changes)
        return self.intents[intent_id]

    def paid(self, intent_id: str) -> Intent:
        amount = self.intents[intent_id].amount
        return self.change(intent_id, status="succeeded", amount_received=amount)

    def _answer(self, answer: Any) -> Any:
        self.meanwhile()
        if self.fault is not None:
            raise self.fault
        return answer


@pytest.fixture
def nearby(inside: Flask) -> Nearby:
    return Nearby()


@pytest.fixture
def first_writer(owner: Owner) -> Iterator[Callable[[str], Callable[[], None]]]:
    """A statement of another process that is written before ours, and committed once we wait."""
    with ExitStack() as writing:
        yield lambda statement: lambda: writing.enter_context(another_writes(owner, statement))
