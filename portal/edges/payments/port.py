"""What the portal asks of a card provider. Amounts are whole yen: the currency's smallest unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar

IntentStatus = Literal[
    "requires_payment_method",
    "requires_confirmation",
    "requires_action",
    "processing",
    "requires_capture",
    "canceled",
    "succeeded",
]
RefundStatus = Literal["pending", "requires_action", "succeeded", "failed", "canceled"]

DisputeStatus = Literal[
    "warning_needs_response",
    "warning_under_review",
    "warning_closed",
    "needs_response",
    "under_review",
    "won",
    "lost",
    "prevented",
]

Row = TypeVar("Row")


MOST_EVENTS = 5_000
"""What one look at the provider's events hands out at the most."""


class UnreadablePayload(ValueError):
    """The provider's object is not of the shape that we know. The message names the field."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One attempt to take money. `currency` is upper-case, `created` aware UTC.

    `decline_code` is the bank's word for the last refusal, else the provider's error code.
    """

    id: str
    status: IntentStatus
    amount: int
    amount_received: int
    currency: str
    client_secret: str | None = field(repr=False)
    metadata: Mapping[str, str]
    latest_charge: str | None
    livemode: bool
    created: datetime
    decline_code: str | None


@dataclass(frozen=True, slots=True)
class Refund:
    """Money on its way back. `pending` counts as refunded; a `failed` one gives it back."""

    id: str
    status: RefundStatus
    amount: int
    currency: str
    intent_id: str | None
    charge_id: str | None
    metadata: Mapping[str, str]
    failure_reason: str | None
    created: datetime


@dataclass(frozen=True, slots=True)
class Dispute:
    """A card's bank questions a charge. `warning_…` is a question before any money has moved; with
    the others the bank has it, until they are won. `answer_by`: until when evidence is taken."""

    id: str
    status: DisputeStatus
    amount: int
    currency: str
    intent_id: str | None
    refundable: bool
    reason: str
    answer_by: datetime | None
    livemode: bool
    created: datetime


@dataclass(frozen=True, slots=True)
class Listed(Generic[Row]):
    """A list read up to the edge's bound: whole for everything created at `since` or later, and
    before `until` where one was asked for."""

    rows: Sequence[Row]
    since: datetime


@dataclass(frozen=True, slots=True)
class ProviderEvent:
    """Something that the provider says has happened. `raw` is the body as it was received.

    An event read from the list has no received body; its `raw` is `payload` written again.
    """

    id: str
    type: str
    created: datetime
    livemode: bool
    account: str | None
    api_version: str | None
    payload: Mapping[str, Any] = field(repr=False)
    raw: bytes = field(repr=False)


class Payments(Protocol):
    """Writes raise Unreachable, Unknown or Rejected; reads never Unknown.

    Unknown means that it may have been done: ask with a read before any retry.
    """

    def create_intent(
        self,
        *,
        key: str,
        amount: int,
        currency: str,
        metadata: Mapping[str, str],
        description: str,
    ) -> Intent:
        """`key` makes repeats one intent for 24 hours. Rejected `amount_too_small` under 50."""
        ...

    def retrieve_intent(self, intent_id: str) -> Intent: ...

    def find_intent(self, *, payment_id: str, since: datetime) -> Intent | None:
        """The intent whose metadata names `payment_id`, created at `since` or later.

        None means that there is none; a search cut short raises Unreachable instead.
        """
        ...

    def intents_since(self, since: datetime, until: datetime | None = None) -> Listed[Intent]:
        """Those whose metadata names a payment, and those without any, as the provider makes them
        for its invoices; newest first, in at most 50 pages of 100."""
        ...

    def refunds_since(self, since: datetime, until: datetime | None = None) -> Listed[Refund]:
        """Whoever made them, newest first, in at most 50 pages of 100."""
        ...

    def disputes_since(self, since: datetime, until: datetime | None = None) -> Listed[Dispute]:
        """Newest first, in at most 50 pages of 100."""
        ...

    def disputes_of(self, intent_id: str) -> list[Dispute]:
        """All disputes of an intent, oldest first."""
        ...

    def cancel_intent(self, intent_id: str) -> Intent:
        """Cancelled already: returned as it is. Paid or in processing: Rejected."""
        ...

    def create_refund(
        self, *, key: str, intent_id: str, amount: int, metadata: Mapping[str, str]
    ) -> Refund:
        """`key` makes repeats one refund for 24 hours; later than that, read `refunds_of`."""
        ...

    def refunds_of(self, intent_id: str) -> list[Refund]:
        """All refunds of an intent, whoever made them, oldest first."""
        ...

    def retrieve_refund(self, refund_id: str) -> Refund: ...

    def events_since(
        self, since: datetime, *, after_event: str | None = None
    ) -> Iterator[ProviderEvent]:
        """Oldest first, at most MOST_EVENTS; go on from the last with `after_event`."""
        ...

    def hosted_page(self, intent: Intent, return_url: str) -> str | None:
        """Where to pay with the stand-in. None with Stripe itself: its Payment Element is used."""
        ...
