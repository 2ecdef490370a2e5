"""Words of staff pages for what is no state and no event: folio lines, messages, commands."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from portal.db import Row
from portal.lazy import _l, _lp
from portal.web.locale import money

SOURCES: Mapping[str, Any] = {
    "desk": _l("Booked at the desk"),
    "web": _l("Booked on the web"),
    "walk_in": _l("Walk-in"),
}

LEDGER: Mapping[str, Any] = {
    "charge": _l("Charge"),
    "charge_reversed": _l("Charge taken back"),
    "fee": _l("Cancellation fee"),
    "deposit": _l("Deposit by card"),
    "payment": _l("Payment by card"),
    "cash": _l("Cash received"),
    "cash_returned": _l("Cash handed back"),
    "refund": _l("Refund to the card"),
    "refund_reversed": _l("Refund that failed"),
    "chargeback": _l("Taken back by the card's bank"),
    "chargeback_reversed": _l("Given back by the card's bank"),
}

TICKET_LINES: Mapping[str, Any] = {
    "sold": _l("Sold"),
    "taken": _l("Used"),
    "returned": _l("Came back with a cancellation"),
    "taken_back": _l("Taken back"),
}

QUOTA_LINES: Mapping[str, Any] = {
    "granted": _l("Visits of the month"),
    "taken": _l("Booked"),
    "returned": _l("Came back with a cancellation"),
    "moved_here": _l("Moved here from another month"),
    "moved_away": _l("Moved to another month"),
}

BESIDE: Mapping[str, Mapping[str, Any]] = {
    "lodging_tax": {"charge": _l("Lodging tax"), "charge_reversed": _l("Lodging tax taken back")},
    "ticket_book": {"charge": _l("Ticket book"), "charge_reversed": _l("Ticket book taken back")},
}
"""What is charged beside the price, by its item."""


def entry(line: Row) -> str:
    return of_line(line.kind, line.item)


def of_line(kind: str, item: str) -> str:
    """A line of an account; what is charged beside the price has a name of its own."""
    return said(BESIDE.get(item, LEDGER), kind)


PURPOSES: Mapping[str, Any] = {
    "walk_in": _l("Walk-in"),
    "reservation_deposit": _l("Deposit"),
    "reservation_balance": _l("Balance due"),
    "membership_initial": _l("Membership, first payment"),
    "membership_renewal": _l("Membership, renewal"),
    "order": _l("Order"),
    "credit": _l("Credit"),
}

REFUND_REASONS: Mapping[str, Any] = {
    "staff": _l("asked for by staff"),
    "surplus": _l("paid too much"),
    "late_payment": _l("arrived too late"),
    "cancellation": _l("price fell or stay cancelled"),
    "external": _l("made at the provider"),
}

MESSAGES: Mapping[str, Any] = {
    "stay_created": _l("Booking confirmation"),
    "stay_changed": _l("Notice of changed times"),
    "stay_cancelled": _l("Notice of cancellation"),
    "deposit_deadline": _l("Notice of the time for the deposit"),
    "deposit_reminder": _l("Reminder of the deposit"),
    "deposit_missed": _l("Notice that the booking ended without its deposit"),
    "stay_link": _l("New link to the stay"),
    "ticket_book_sold": _l("Notice of a ticket book"),
    "payment_received": _l("Receipt of payment"),
    "refund_sent": _l("Notice of refund"),
    "refund_failed": _l("Notice of a failed refund"),
    "entry_key_issued": _l("Door code"),
    "entry_key_changed": _l("Door code, new time"),
    "membership_applied": _l("Receipt of the application"),
    "membership_checkout": _l("Request of the first payment"),
    "membership_paid": _l("Receipt of a membership's payment"),
    "membership_overdue": _l("Notice of a payment that failed"),
    "membership_switched": _l("Notice of another plan"),
    "membership_link": _l("New link to the membership"),
    "membership_refund_sent": _l("Notice of a membership's refund"),
    "membership_refund_failed": _l("Notice of a membership's failed refund"),
    "membership_approved": _l("Welcome as a member"),
    "membership_rejected": _l("Notice of a rejected application"),
    "membership_not_begun": _l("Notice of a closed application"),
    "membership_end_scheduled": _l("Notice of the coming end"),
    "membership_resumed": _l("Notice that the membership goes on"),
    "membership_ended": _l("Notice of the end"),
}

MESSAGE_STATES: Mapping[str, Any] = {
    "waiting": _l("Waiting to be sent"),
    "sent": _l("Sent"),
    "withdrawn": _l("Withdrawn, no longer true"),
    "suppressed": _l("Not sent, said already"),
    "dropped": _l("Not sent"),
    "unknown": _l("Delivery unknown"),
    "dead": _l("Could not be sent"),
}

MESSAGE_TONES = {"waiting": "busy", "sent": "good", "unknown": "bad", "dead": "bad"}

CHANNELS: Mapping[str, Any] = {"email": _lp("channel", "E-mail"), "line": "LINE"}

LANGUAGES: Mapping[str, Any] = {"ja": _l("Japanese"), "en": _l("English")}

COMMANDS: Mapping[str, Any] = {
    "set": _l("Lock asked to set the key"),
    "update": _l("Lock asked to change the key's time"),
    "remove": _l("Lock asked to remove the key"),
    "done": _l("Lock answered"),
    "given_up": _l("Lock did not answer; left to a person"),
}

# The lock controller's own words on a code.
OBSERVED: Mapping[str, Any] = {
    "set": _l("on the lock"),
    "setting": _l("being set"),
    "unset": _l("not on the lock"),
    "removing": _l("being removed"),
    "gone": _l("gone"),
    "unknown": _l("unclear"),
}

# How a lock command ended.
RESULTS: Mapping[str, Any] = {
    "accepted": _l("taken on"),
    "read back": _l("done already, as reading it back showed"),
    "gone": _l("there was nothing left to remove"),
    "superseded": _l("no longer needed"),
}

REVOKED: Mapping[str, Any] = {
    "departed": _l("the guest checked out"),
    "moved": _l("the guest moved"),
    "reissued": _l("a new code was asked for"),
    "membership ended": _l("the membership that gave the stay ended"),
}

ENDINGS: Mapping[str, Any] = {
    "self_cancel": _l("as the member wished"),
    "force_cancel": _l("decided by the house"),
    "application_rejected": _l("the application was rejected"),
    "plan_retired": _l("the plan is no longer offered"),
    "checkout_expired": _l("the first payment never came"),
    "provider_ended": _l("at the payment provider"),
    "end_reached": _l("the end had come"),
}
"""Why a membership ended, or will."""

# The ground of a refused check-in, without the amounts and times of that moment.
GATE: Mapping[str, Any] = {
    "STAY_NOT_YET_OPEN": _l("It was too early."),
    "STAY_WINDOW_OVER": _l("The time of the stay was over."),
    "MEMBERS_ONLY_PLAN": _l("No membership gave the stay at that time."),
    "MEMBERSHIP_PAUSED": _l("The membership was paused."),
    "WALK_IN_NOT_ALLOWED": _l("The entrance was for guests with a reservation."),
    "PLAN_NOT_IN_CONFIG": _l("The plan was not sold at the entrance."),
    "GUEST_BLOCKED": _l("The blocklist named the guest."),
    "ENTRANCE_CLOSED": _l("The entrance was closed."),
    "ENTRANCE_FULL": _l("There was no room for another guest."),
    "REGISTER_MISSING": _l("The register of guests was not complete."),
    "SPACE_NOT_USABLE": _l("The space was not in use."),
    "SPACE_TAKEN": _l("Another guest was in the space."),
    "SPACE_QUARANTINED": _l("The last guest's key was not confirmed as removed."),
    "PAYMENT_UNKNOWN": _l("The fate of a payment was not known."),
    "PAYMENT_PENDING": _l("A payment was being processed."),
    "BALANCE_DUE": _l("The stay was not paid."),
}

DISPUTES: Mapping[str, Any] = {
    "warning_needs_response": _l("The bank asks; no money has moved"),
    "warning_under_review": _l("The bank looks at the answer; no money has moved"),
    "warning_closed": _l("The bank's question is closed"),
    "needs_response": _l("Taken back; evidence can be sent"),
    "under_review": _l("Taken back; the bank looks at the evidence"),
    "won": _l("Won: the money is back"),
    "lost": _l("Lost: the guest's bank keeps it"),
    "prevented": _l("Settled before it became a dispute"),
}

# What differs between our books and the far side's: what a person would say of it.
DIVERGENCES: Mapping[str, Any] = {
    "payment_not_here": _l("A payment at the provider that is not in our books"),
    "payment_not_there": _l("A payment in our books that the provider does not have"),
    "payment_differs": _l("A payment that the provider tells differently"),
    "refund_not_here": _l("A refund at the provider that is not in our books"),
    "refund_not_there": _l("A refund in our books that the provider does not have"),
    "refund_differs": _l("A refund that the provider tells differently"),
    "dispute_differs": _l("A dispute that the provider tells differently"),
    "code_stray": _l("A code on the lock that belongs to nobody now"),
    "code_missing": _l("A key whose code is not on the lock"),
    "code_differs": _l("A code that ends at another time on the lock"),
    "code_pin_differs": _l("A code whose digits are others on the lock"),
    "message_not_here": _l("A message that was delivered, and that we do not call sent"),
    "message_not_there": _l("A message that we call sent, and that the mail server does not have"),
    "subscription_not_here": _l(
        "A membership that the provider bills, and that we know nothing of"
    ),
    "subscription_not_there": _l("A membership that we believe billed, and the provider does not"),
    "subscription_differs": _l("A membership whose billing the provider tells differently"),
}

DIVERGENCE_VERBS: Mapping[str, Any] = {
    "code_stray": _l("Remove the code from the lock"),
    "code_missing": _l("Ask the lock now"),
    "code_differs": _l("Set the time once more"),
    "code_pin_differs": _l("Order a new code"),
    "message_not_here": _l("Record it as sent"),
    "message_not_there": _l("Send it once more"),
}
"""The button of each kind; money is asked after."""

LEGS: Mapping[str, Any] = {
    "subscribe": _l("begin billing"),
    "set_end": _l("set the end of billing"),
    "end_now": _l("end billing now"),
    "abandon_checkout": _l("close the open checkout"),
    "go_on": _l("take back the end of billing"),
    "switch": _l("bill another plan"),
}
"""What the payment provider was asked to do."""

UNITS: Mapping[str, Any] = {
    "night": _l("a night"),
    "hour": _l("an hour"),
    "visit": _l("a visit"),
}

NOBODY: Mapping[str, Any] = {
    "system": _l("Monban"),
    "card provider": _l("Payment provider"),
    "lock controller": _l("Lock controller"),
}


def said(table: Mapping[str, Any], key: str) -> str:
    """The words for `key`; the key itself for one that came after these words."""
    return str(table.get(key, key))


def observed(word: str | None) -> str:
    """The controller's word on a code; its error codes after it, as it wrote them."""
    if not word:
        return ""
    status, _, errors = word.partition(":")
    told = said(OBSERVED, status)
    return f"{told} ({errors.replace(':', ', ')})" if errors else told


def ending(told: str) -> str:
    """The reason of an end; what a colleague wrote beside it after it."""
    reason, colon, note = told.partition(": ")
    return f"{said(ENDINGS, reason)}{colon}{note}"


def who(kind: str, name: str) -> str:
    """The actor of a record as people call it: machines have names of ours in the records."""
    if kind == "system":
        return str(NOBODY["system"])
    return said(NOBODY, name) if kind == "provider" else name


def dispute_page(dispute: Any) -> str:
    """The dispute in the provider's own pages, where the house sends its evidence."""
    part = "" if dispute.livemode else "test/"
    return f"https://dashboard.stripe.com/{part}disputes/{dispute.provider_dispute_id}"


def table() -> dict[str, Any]:
    """What templates call these words by."""
    return {
        "source_name": partial(said, SOURCES),
        "ledger_name": partial(said, LEDGER),
        "dispute_name": partial(said, DISPUTES),
        "dispute_page": dispute_page,
        "ledger_entry": entry,
        "purpose_name": partial(said, PURPOSES),
        "quota_line": partial(said, QUOTA_LINES),
        "ticket_line": partial(said, TICKET_LINES),
        "refund_reason": partial(said, REFUND_REASONS),
        "message_name": partial(said, MESSAGES),
        "message_state": partial(said, MESSAGE_STATES),
        "message_tone": partial(said, MESSAGE_TONES),
        "leg_name": partial(said, LEGS),
        "channel_name": partial(said, CHANNELS),
        "language_name": partial(said, LANGUAGES),
        "command_name": partial(said, COMMANDS),
        "actor_name": who,
        "observed": observed,
        "divergence_name": partial(said, DIVERGENCES),
        "divergence_verb": lambda kind: str(DIVERGENCE_VERBS.get(kind, _l("Ask the provider now"))),
    }


PRICES: Mapping[str, Any] = {
    "month": _l("%(price)s a month"),
    "year": _l("%(price)s a year"),
}


def price(amount: int, currency: str, billed_every: str) -> str:
    """What a membership costs, in the smallest unit, and for how long."""
    return str(PRICES[billed_every]) % {"price": money(amount, currency)}
