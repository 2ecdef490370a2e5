"""What the portal asks of a card provider about a membership that it bills again and again.

Amounts are integers in the currency's smallest unit; instants are aware, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from portal.edges.payments.port import Listed

SubscriptionStatus = Literal[
    "incomplete",
    "incomplete_expired",
    "trialing",
    "active",
    "past_due",
    "canceled",
    "unpaid",
    "paused",
]
InvoiceStatus = Literal["draft", "open", "paid", "uncollectible", "void"]
Interval = Literal["month", "year"]

OVER: frozenset[SubscriptionStatus] = frozenset({"canceled", "incomplete_expired"})
"""Nothing is charged under it any more."""


@dataclass(frozen=True, slots=True)
class Item:
    """One price of a subscription. Its period is [starts_at, ends_at)."""

    id: str
    price_id: str
    amount: int
    quantity: int
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Subscription:
    """`period_end` is the earliest of its items' ends. `paused` means that nothing is collected:
    its own status stays `active` then."""

    id: str
    status: SubscriptionStatus
    customer_id: str
    currency: str
    metadata: Mapping[str, str]
    livemode: bool
    created: datetime
    items: Sequence[Item]
    period_start: datetime
    period_end: datetime
    cancel_at: datetime | None
    cancel_at_period_end: bool
    canceled_at: datetime | None
    """When the end was asked for; it may lie long before the end itself."""
    ended_at: datetime | None
    trial_end: datetime | None
    paused: bool
    resumes_at: datetime | None
    latest_invoice_id: str | None
    told_at: datetime | None = None
    """Of an answer, when the provider gave it, by its clock; None in an event or a list."""

    @property
    def over(self) -> bool:
        return self.status in OVER

    @property
    def ends_at(self) -> datetime | None:
        """When it will end, or has ended; None while it goes on."""
        if self.over:
            return self.ended_at or self.canceled_at or self.created
        if self.cancel_at is not None:
            return self.cancel_at
        return self.period_end if self.cancel_at_period_end else None

    @property
    def amount(self) -> int:
        """What one period costs."""
        return sum(item.amount * item.quantity for item in self.items)


@dataclass(frozen=True, slots=True)
class Invoice:
    """What one period of a subscription is charged by. The period is that of its lines: the
    earliest of their ends counts. `subscription_id` is None for any other invoice."""

    id: str
    status: InvoiceStatus
    subscription_id: str | None
    customer_id: str | None
    amount_due: int
    amount_paid: int
    currency: str
    metadata: Mapping[str, str]
    """That of the subscription, as it was when the invoice was made."""
    livemode: bool
    created: datetime
    paid_at: datetime | None
    reason: str
    period_start: datetime
    period_end: datetime


@dataclass(frozen=True, slots=True)
class InvoicePayment:
    """Which intent pays which invoice."""

    invoice_id: str
    intent_id: str
    amount: int
    status: str


@dataclass(frozen=True, slots=True)
class FirstPayment:
    """A subscription that waits for its first payment, and what pays it."""

    subscription: Subscription
    intent_id: str | None
    """None where there is nothing to pay."""
    client_secret: str | None = field(repr=False)


class Billing(Protocol):
    """Writes raise Unreachable, Unknown or Rejected; reads never Unknown.

    Unknown means that it may have been done: ask with a read before any retry. Every write that
    is repeated under its `key` within 24 hours is done once.
    """

    def create_customer(
        self, *, key: str, name: str, email: str, metadata: Mapping[str, str]
    ) -> str:
        """Returns the customer's id."""
        ...

    def create_price(
        self,
        *,
        key: str,
        name: str,
        amount: int,
        currency: str,
        interval: Interval,
        metadata: Mapping[str, str],
    ) -> str:
        """Of a product of its own, called `name`. Returns the price's id."""
        ...

    def subscribe(
        self, *, key: str, customer_id: str, price_id: str, metadata: Mapping[str, str]
    ) -> FirstPayment:
        """Incomplete until its first invoice is paid; expires by itself after 23 hours."""
        ...

    def find_subscription(self, *, customer_id: str, membership_id: str) -> Subscription | None:
        """That of the customer whose metadata names the membership; a live one before an ended."""
        ...

    def retrieve_subscription(self, subscription_id: str) -> Subscription: ...

    def first_payment(self, subscription_id: str) -> FirstPayment: ...

    def end_at_period_end(self, *, key: str, subscription_id: str) -> Subscription:
        """No further period is charged. Asked again: answered as it is."""
        ...

    def end_at(self, *, key: str, subscription_id: str, at: datetime) -> Subscription:
        """At an instant that lies ahead; nothing is returned for what is left of a period."""
        ...

    def go_on(self, *, key: str, subscription_id: str) -> Subscription:
        """Take back an end that was set for later."""
        ...

    def end_now(self, subscription_id: str) -> Subscription:
        """Over already: returned as it is. An invoice of it that is open stays open."""
        ...

    def void_invoice(self, invoice_id: str) -> Invoice:
        """Until then whoever has its page open can pay it. Void already: returned as it is. Paid,
        or a payment under way: Rejected."""
        ...

    def switch(
        self, *, key: str, subscription_id: str, item_id: str, price_id: str
    ) -> Subscription:
        """The same subscription at another price from its next period on."""
        ...

    def retrieve_invoice(self, invoice_id: str) -> Invoice: ...

    def invoices_of(self, subscription_id: str) -> list[Invoice]:
        """All of them, oldest first."""
        ...

    def payments_of(self, invoice_id: str) -> list[InvoicePayment]:
        """Oldest first."""
        ...

    def subscriptions_since(
        self, since: datetime, until: datetime | None = None
    ) -> Listed[Subscription]:
        """Whatever their status, whose metadata names a membership, newest first."""
        ...
