"""From the provider's word on an intent to the event of our payment machine."""

SET_ASIDE = "requires_capture"
"""The bank has set the amount aside, and somebody has to take it, which ours never need: manual
capture was set at the provider. It is no money. The attempt is open, as before the card was tried;
it ends as the provider cancels it, which it does by itself after some days."""

# What each of our states makes of the provider's status. Absent: nothing to move.
_EVENTS: dict[str, dict[str, str]] = {
    "open": {
        "processing": "provider_processing",
        "succeeded": "provider_succeeded",
        "canceled": "provider_canceled",
    },
    "processing": {
        "succeeded": "provider_succeeded",
        "canceled": "provider_canceled",
        "requires_payment_method": "provider_declined",
        SET_ASIDE: "provider_declined",
    },
    "unknown": {
        "processing": "provider_processing",
        "succeeded": "provider_succeeded",
        "canceled": "provider_canceled",
        "requires_payment_method": "provider_declined",
        "requires_confirmation": "provider_declined",
        "requires_action": "provider_declined",
        SET_ASIDE: "provider_declined",
    },
}


def event_for(state: str, status: str) -> str | None:
    """The event to move by, or None when the word changes nothing (it is old, or known).

    A lost answer that turns out to be an intent waiting for a card is `provider_declined`: the
    attempt is open again and nothing was taken.
    """
    return _EVENTS.get(state, {}).get(status)


def surplus(amount: int, balance_before: int) -> int:
    """What of a payment of `amount` the house may not keep, the guest owing `balance_before`."""
    return min(amount, max(0, amount - balance_before))
