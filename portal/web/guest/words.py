"""What a guest is told of money, in plain words: entries of the account, and why a card failed."""

from collections.abc import Mapping
from typing import Any

from portal.db import Row
from portal.lazy import _l
from portal.web.words import BESIDE

ENTRIES: Mapping[str, Any] = {
    "charge": _l("Price"),
    "charge_reversed": _l("Price reduced"),
    "fee": _l("Cancellation fee"),
    "deposit": _l("Deposit paid by card"),
    "payment": _l("Paid by card"),
    "cash": _l("Paid in cash"),
    "cash_returned": _l("Returned in cash"),
    "refund": _l("Returned to your card"),
    "refund_reversed": _l("Return to your card failed"),
    "chargeback": _l("Taken back by your card's bank"),
    "chargeback_reversed": _l("Given back by your card's bank"),
}

PURPOSES: Mapping[str, Any] = {
    "reservation_deposit": _l("Deposit"),
    "reservation_balance": _l("Your stay"),
    "walk_in": _l("Your stay"),
    "membership_initial": _l("Membership, first payment"),
    "membership_renewal": _l("Membership, renewal"),
}

# The bank's word → ours. What would accuse a person (lost, stolen, fraud) is not passed on.
DECLINES: Mapping[str, Any] = {
    "insufficient_funds": _l("There is not enough money available on this card."),
    "withdrawal_count_limit_exceeded": _l("This card has reached its limit."),
    "card_velocity_exceeded": _l("This card has reached its limit."),
    "expired_card": _l("This card has expired."),
    "incorrect_number": _l("The card number was not right."),
    "invalid_number": _l("The card number was not right."),
    "incorrect_cvc": _l("The security code was not right."),
    "invalid_cvc": _l("The security code was not right."),
    "card_not_supported": _l("This card cannot be used for this payment."),
    "currency_not_supported": _l("This card cannot be used for this payment."),
    "authentication_required": _l("Your bank could not confirm that it was you."),
    "payment_intent_authentication_failure": _l("Your bank could not confirm that it was you."),
    "processing_error": _l("Your bank could not answer just now. Please try again shortly."),
    "try_again_later": _l("Your bank could not answer just now. Please try again shortly."),
    "issuer_not_available": _l("Your bank could not answer just now. Please try again shortly."),
}

DECLINED = _l("Your bank declined this card.")


def entry(line: Row) -> str:
    """What is charged beside the price has a name of its own."""
    return str(BESIDE.get(line.item, ENTRIES)[line.kind])


def purpose(key: str) -> str:
    return str(PURPOSES[key])


def decline(code: str | None) -> str:
    """Why, as far as a guest can do something about it."""
    return str(DECLINES.get(code or "", DECLINED))
