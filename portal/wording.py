"""Words for every code, state and event, in the language of whoever reads.

Only whole sentences with named placeholders: a message is never put together from pieces.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from portal.lazy import _l, _lp
from portal.machines import MACHINES
from portal.outcome import Code, Standing, Status

Words = Callable[[Any], str]
"""How a detail (an amount, an instant) is written on the page."""

UNKNOWN: Final = "—"
"""Stands for a detail that a verb did not give."""

APPLIED: Final = ("applied",)
NOOP: Final = ("noop",)
CONFLICT: Final = ("conflict",)
REFUSED: Final = ("refused",)

# Code → the statuses that may carry it, and its message.
MESSAGES: Mapping[str, tuple[tuple[Status, ...], Any]] = {
    # stays
    "STAY_CREATED": (APPLIED, _l("The stay is booked.")),
    "STAY_ALREADY_CREATED": (NOOP, _l("This stay was booked already.")),
    "STAY_ADMITTED": (APPLIED, _l("Checked in. The door key has been ordered.")),
    "STAY_ADMITTED_THOUGH_LISTED": (
        APPLIED,
        _l(
            "Checked in, and the door key has been ordered. The blocklist names this guest, but"
            " without a ground on which the law lets you refuse lodging."
        ),
    ),
    "STAY_ALREADY_ADMITTED": (NOOP, _l("This guest is checked in already.")),
    "STAY_DEPARTED": (APPLIED, _l("Checked out. The lock has been asked to remove the key.")),
    "STAY_ALREADY_DEPARTED": (NOOP, _l("This guest is checked out already.")),
    "STAY_CANCELLED": (APPLIED, _l("The stay is cancelled.")),
    "STAY_ALREADY_CANCELLED": (NOOP, _l("This stay is cancelled already.")),
    "STAY_NO_SHOW": (APPLIED, _l("The stay is marked as a no-show.")),
    "STAY_ALREADY_NO_SHOW": (NOOP, _l("This stay is marked as a no-show already.")),
    "STAY_REINSTATED": (APPLIED, _l("The stay is reserved again.")),
    "STAY_ALREADY_RESERVED": (NOOP, _l("The stay is reserved already.")),
    "STAY_MOVED": (APPLIED, _l("The stay has another space now.")),
    "STAY_ALREADY_THERE": (NOOP, _l("The stay is in that space already.")),
    "STAY_TIMES_CHANGED": (APPLIED, _l("The times of the stay are changed.")),
    "STAY_TIMES_UNCHANGED": (NOOP, _l("The stay has these times already.")),
    "STAY_PERSONS_CHANGED": (APPLIED, _l("The number of persons is changed.")),
    "STAY_PERSONS_UNCHANGED": (NOOP, _l("The stay is for so many already.")),
    "STAY_PERSONS_IMPOSSIBLE": (REFUSED, _l("A stay is for 1 to %(count)s persons.")),
    "STAY_STATE_CHANGED": (
        CONFLICT,
        _l("Somebody changed this stay meanwhile. Nothing was done."),
    ),
    "STAY_NOT_YET_OPEN": (
        REFUSED,
        _l("It is too early to check in. The door opens at %(opens_at)s."),
    ),
    "STAY_WINDOW_OVER": (REFUSED, _l("The time of this stay ended at %(ended_at)s.")),
    "STAY_OVER": (REFUSED, _l("This stay is over, so it cannot be changed.")),
    "STAY_NOT_YET_LATE": (
        REFUSED,
        _l("The stay begins at %(starts_at)s. It cannot be a no-show before that."),
    ),
    "STAY_NOT_IN_HOUSE": (REFUSED, _l("Only a guest who is checked in can do this.")),
    "STAY_TIMES_IMPOSSIBLE": (
        REFUSED,
        _l("The stay cannot have these times. It must end after it begins, and not in the past."),
    ),
    "DEPOSIT_EXCEEDS_PRICE": (REFUSED, _l("The deposit cannot be more than the price.")),
    "DEPOSIT_DEADLINE_SET": (
        APPLIED,
        _l("The time for the deposit is changed, and the guest is told."),
    ),
    "DEPOSIT_DEADLINE_UNCHANGED": (NOOP, _l("The deposit has this time already.")),
    "DEPOSIT_DEADLINE_IMPOSSIBLE": (
        REFUSED,
        _l(
            "The time for the deposit must be to come, and at arrival at the latest: %(starts_at)s."
        ),
    ),
    "DEPOSIT_NOT_AWAITED": (REFUSED, _l("This stay waits for no deposit.")),
    "DEPOSIT_NOT_MISSED": (
        REFUSED,
        _l("The deposit is not overdue, so the booking goes on."),
    ),
    "DEPOSIT_HOURS_IMPOSSIBLE": (
        REFUSED,
        _l("A booking can be held for 1 hour to 366 days."),
    ),
    "FEE_EXCEEDS_PRICE": (REFUSED, _l("The fee cannot be more than the price, %(amount)s.")),
    "PRICE_BELOW_ZERO": (REFUSED, _l("The price would leave what a stay can cost.")),
    "VISIT_IS_ONE_PERSONS": (
        REFUSED,
        _l("A membership and a ticket give one person's visit. Book whoever comes along apart."),
    ),
    "QUOTA_EXHAUSTED": (
        REFUSED,
        _l("All %(count)s visits of the month of %(day)s are booked or used. None is left."),
    ),
    "TICKET_OFFER_CREATED": (APPLIED, _l("The ticket book is offered from now on.")),
    "TICKET_OFFER_ALREADY_CREATED": (NOOP, _l("This ticket book was offered already.")),
    "TICKET_OFFER_WITHDRAWN": (
        APPLIED,
        _l("This ticket book is no longer sold. Those that were sold keep paying."),
    ),
    "TICKET_OFFER_NOT_SOLD": (REFUSED, _l("This ticket book is no longer sold.")),
    "TICKET_OFFER_ALREADY_WITHDRAWN": (NOOP, _l("It was withdrawn already.")),
    "TICKET_OFFER_NOT_A_VISIT": (
        REFUSED,
        _l("Tickets pay visits: choose a plan of day use by the visit, which is open to all."),
    ),
    "TICKET_BOOK_SOLD": (
        APPLIED,
        _l("The ticket book is on the account. It pays visits once the account is settled."),
    ),
    "TICKET_BOOK_ALREADY_SOLD": (NOOP, _l("This ticket book was sold already.")),
    "TICKET_BOOK_TAKEN_BACK": (APPLIED, _l("The rest of the ticket book was taken back.")),
    "TICKET_BOOK_TAKEN_BACK_ALREADY": (NOOP, _l("It was taken back already.")),
    "TICKET_BOOK_VOID": (REFUSED, _l("This ticket book was taken back. It pays nothing any more.")),
    "TICKET_BOOK_UNKNOWN": (REFUSED, _l("There is no ticket book with this code.")),
    "TICKET_BOOK_OF_ANOTHER_PLAN": (REFUSED, _l("This ticket book is for another plan.")),
    "TICKET_BOOK_EXPIRED": (
        REFUSED,
        _l("The last day of this ticket book is %(day)s. It does not pay a later visit."),
    ),
    "TICKET_BOOK_EMPTY": (REFUSED, _l("No ticket of this book is left.")),
    "TICKET_BOOK_UNPAID": (
        REFUSED,
        _l("%(amount)s is still to be paid where this ticket book was sold. Then it pays visits."),
    ),
    "TICKET_BOOK_COST_LESS": (REFUSED, _l("At most its price goes back, %(amount)s.")),
    "TICKET_TAKEN": (APPLIED, _l("A ticket pays this visit now.")),
    "TICKET_ALREADY_TAKEN": (NOOP, _l("A ticket pays this visit already.")),
    "TICKET_NOT_FOR_MEMBERS": (
        REFUSED,
        _l("A member's stay takes no ticket: the membership gives it."),
    ),
    "CANCELLATION_TOO_LATE": (
        REFUSED,
        _l("The stay began at %(starts_at)s, so it cannot be cancelled here. Please speak to us."),
    ),
    "CANCELLATION_AT_DESK": (
        REFUSED,
        _l("This stay cannot be cancelled here. Please ask us; we will tell you what it costs."),
    ),
    "CANCELLATION_CHANGED": (
        REFUSED,
        _l("Nothing was cancelled: meanwhile the fee is %(amount)s. Please read it once more."),
    ),
    "SPACE_TAKEN": (REFUSED, _l("Another stay has this space at that time.")),
    "SPACE_QUARANTINED": (
        REFUSED,
        _l("The last guest's key is not confirmed as removed from this space's door."),
    ),
    "SPACE_NOT_USABLE": (REFUSED, _l("This space is not in use.")),
    # houses
    "SETTINGS_SAVED": (APPLIED, _l("The settings are saved.")),
    "SETTINGS_UNCHANGED": (NOOP, _l("The settings are like this already.")),
    # the day's close
    "DAY_CLOSED": (APPLIED, _l("The day is closed and sealed.")),
    "DAY_ALREADY_CLOSED": (NOOP, _l("This day is closed already.")),
    "DAY_NOT_YET": (REFUSED, _l("This day has not begun, so it cannot be closed.")),
    "DAY_BEFORE_LAST_CLOSE": (
        REFUSED,
        _l("The last close is of %(day)s. An earlier day cannot be closed any more."),
    ),
    "DAY_MOVED_ON": (
        REFUSED,
        _l(
            "Money came or went, or something was settled, since this page was opened. The drawer"
            " should hold %(amount)s now. Count again and send it again."
        ),
    ),
    "DAY_NEEDS_REASON": (
        REFUSED,
        _l(
            "The drawer should hold %(amount)s, or something is still open. Write why, and the day"
            " can be closed."
        ),
    ),
    "DRAWER_HOLDS_LESS": (
        REFUSED,
        _l("No more can be taken out than was counted, and nothing here can be below zero."),
    ),
    "JOURNAL_DAYS_IMPOSSIBLE": (
        REFUSED,
        _l("Choose a first and a last day, in this order, at most a year apart."),
    ),
    "ENTRANCE_CREATED": (APPLIED, _l("The entrance is open.")),
    "ENTRANCE_ALREADY_CREATED": (NOOP, _l("This entrance is open already.")),
    "ENTRANCE_UPDATED": (APPLIED, _l("The entrance is changed.")),
    "ENTRANCE_UNCHANGED": (NOOP, _l("The entrance is like this already.")),
    "ENTRANCE_SLUG_TAKEN": (REFUSED, _l("Another entrance has this short name.")),
    "ENTRANCE_HOURS_IMPOSSIBLE": (REFUSED, _l("These are no opening hours.")),
    "ENTRANCE_NEVER_OPENS": (
        REFUSED,
        _l("An entrance opens on one day of the week at least."),
    ),
    "DOOR_HAS_ENTRANCE": (REFUSED, _l("One of the doors is behind another entrance.")),
    "BLOCKLIST_ADDED": (APPLIED, _l("Added to the blocklist.")),
    "BLOCKLIST_ALREADY_ADDED": (NOOP, _l("This was added to the blocklist already.")),
    "BLOCKLIST_NAMES_NOBODY": (
        REFUSED,
        _l("Write at least one thing by which the person is known."),
    ),
    "BLOCKLIST_OVER_ALREADY": (REFUSED, _l("The last day has passed already.")),
    "BLOCKLIST_LIFTED": (APPLIED, _l("The entry is lifted. It refuses nobody any more.")),
    "BLOCKLIST_ALREADY_LIFTED": (NOOP, _l("This entry is lifted already.")),
    "GROUND_ADDED": (APPLIED, _l("The ground can be chosen.")),
    "GROUND_ALREADY_THERE": (NOOP, _l("There is a ground with this code already.")),
    "GROUND_RETIRED": (APPLIED, _l("The ground is not chosen any more.")),
    "GROUND_ALREADY_RETIRED": (NOOP, _l("This ground is not chosen any more already.")),
    "POLICY_CREATED": (APPLIED, _l("The cancellation policy is kept. Choose it for a plan.")),
    "POLICY_ALREADY_CREATED": (NOOP, _l("This cancellation policy was made already.")),
    "POLICY_UPDATED": (
        APPLIED,
        _l("The policy is changed. What is booked already keeps what its guest agreed to."),
    ),
    "POLICY_CHOSEN": (APPLIED, _l("What is booked of this plan from now on has this policy.")),
    "POLICY_UNCHANGED": (NOOP, _l("It is like this already.")),
    "POLICY_STEPS_UNSOUND": (
        REFUSED,
        _l("The steps cannot stand like this: each begins at its own hour, for 0 to 100 percent."),
    ),
    "TAX_NUMBER_WRONG": (
        REFUSED,
        _l("This is no registration number: T and 13 figures, the first of which fits the others."),
    ),
    "LODGING_TAX_EMPTY": (
        REFUSED,
        _l("Write at least one line. Where nothing is taxed, that is one from 0 with the tax 0."),
    ),
    "LODGING_TAX_ORDER": (
        REFUSED,
        _l("The line from %(amount)s ends before it begins. Nothing was saved."),
    ),
    "LODGING_TAX_OVERLAP": (
        REFUSED,
        _l("Two lines say something about %(amount)s. Nothing was saved."),
    ),
    "LODGING_TAX_GAP": (
        REFUSED,
        _l("No line speaks of %(amount)s; the last one has no upper end. Nothing was saved."),
    ),
    # the register of guests
    "REGISTER_FILLED": (APPLIED, _l("The register is complete. Thank you.")),
    "REGISTER_ENTRY_FILLED": (
        APPLIED,
        _l("Saved. The register still needs an entry for each other guest."),
    ),
    "REGISTER_UNCHANGED": (NOOP, _l("The register says this already.")),
    "REGISTER_INCOMPLETE": (REFUSED, _l("Something that the law asks for is missing.")),
    "REGISTER_NOT_NEEDED": (REFUSED, _l("The register of guests is for lodging only.")),
    "REGISTER_MISSING": (
        REFUSED,
        _l("The register of guests is not complete yet. The guest can fill it in on their page."),
    ),
    "REGISTER_OPENED": (APPLIED, _l("Your reading and its reason are recorded.")),
    "REGISTER_EXPORTED": (APPLIED, _l("The export and its reason are recorded.")),
    "REGISTER_DAYS_IMPOSSIBLE": (
        REFUSED,
        _l("Choose a first and a last day, at most a year apart."),
    ),
    "REASON_MISSING": (REFUSED, _l("Write the reason. It is recorded.")),
    # guests
    "GUEST_LANGUAGE_CHOSEN": (APPLIED, _l("Messages will come in this language.")),
    "GUEST_LANGUAGE_KEPT": (NOOP, _l("Messages come in this language already.")),
    "LINK_RENEWED": (APPLIED, _l("There is a new link. The old one no longer works.")),
    # money
    "PAYMENT_OPENED": (APPLIED, _l("The payment can be made now.")),
    "PAYMENT_ATTEMPT_OPEN": (NOOP, _l("A payment is open already.")),
    "PAYMENT_PENDING": (REFUSED, _l("A payment is being processed. Wait until it is certain.")),
    "PAYMENT_UNKNOWN": (
        REFUSED,
        _l("The fate of a payment is not known yet. It has to be asked for first."),
    ),
    "PAYMENT_RESOLVED": (("applied", "noop"), _l("The fate of the payment is known now.")),
    "PAYMENT_STILL_UNKNOWN": (REFUSED, _l("The payment provider could not tell yet.")),
    "PAYMENT_NOT_THERE": (
        REFUSED,
        _l("The provider has no such payment. Look at its account; if it is right, close this."),
    ),
    "PAYMENT_STATE_CHANGED": (
        CONFLICT,
        _l("This payment changed meanwhile. Nothing was done."),
    ),
    "PAYMENT_RECORDED": (APPLIED, _l("What the provider says of the payment is recorded.")),
    "PAYMENT_ALREADY_RECORDED": (NOOP, _l("The provider says nothing new about this payment.")),
    "CASH_TAKEN": (APPLIED, _l("The cash is recorded.")),
    "CASH_RETURNED": (APPLIED, _l("The returned cash is recorded.")),
    "CASH_ALREADY_BOOKED": (NOOP, _l("This cash was recorded already.")),
    "CASH_EXCEEDS_DUE": (REFUSED, _l("That is more than the guest owes, %(amount)s.")),
    "CASH_EXCEEDS_OWED": (
        REFUSED,
        _l("That is more than the house owes the guest, %(amount)s."),
    ),
    "NOTHING_DUE": (NOOP, _l("Nothing is owed.")),
    "BALANCE_DUE": (REFUSED, _l("The stay is not paid yet: %(amount)s is due.")),
    "AMOUNT_MISMATCH": (
        REFUSED,
        _l("The provider's amount is not the one in our books. Nothing was confirmed."),
    ),
    "AMOUNT_BELOW_MINIMUM": (
        REFUSED,
        _l("%(amount)s is too small for a card. Please pay it in cash at the desk."),
    ),
    "RECEIPT_ISSUED": (APPLIED, _l("The receipt is issued.")),
    "RETURN_ISSUED": (APPLIED, _l("The return is issued: it states what went back.")),
    "RECEIPT_ALREADY_ISSUED": (NOOP, _l("This document was issued already.")),
    "RECEIPT_ISSUED_AGAIN": (APPLIED, _l("Issued again under the same number, and marked so.")),
    "RECEIPT_NOTHING_RECEIVED": (
        REFUSED,
        _l("No money has arrived that no receipt states yet, so there is nothing to issue."),
    ),
    "RECEIPT_MORE_THAN_CHARGED": (
        REFUSED,
        _l("%(amount)s more has arrived than is charged. Once that is settled, issue the receipt."),
    ),
    "NOTHING_TO_REFUND": (REFUSED, _l("There is nothing left to refund.")),
    "REFUND_EXCEEDS_PAID": (REFUSED, _l("At most %(amount)s can still be refunded.")),
    "REFUND_PENDING": (REFUSED, _l("A refund is under way. Wait until it is certain.")),
    "REFUND_UNAVAILABLE": (
        REFUSED,
        _l("The payment provider could not make the refund. No money has moved."),
    ),
    "REFUND_UNKNOWN": (
        REFUSED,
        _l("The answer to a refund was lost. It is being asked for; do not refund again."),
    ),
    "REFUND_SENT": (APPLIED, _l("The refund is on its way.")),
    "REFUND_ALREADY_ASKED": (NOOP, _l("This refund was asked for already.")),
    "REFUND_RECORDED": (("applied", "noop"), _l("The refund is recorded.")),
    "REFUND_FAILED": (
        APPLIED,
        _l("The provider says that the refund failed. The money is still owed."),
    ),
    "REFUND_STATE_CHANGED": (CONFLICT, _l("This refund changed meanwhile. Nothing was done.")),
    "PAYMENT_DISPUTED": (
        REFUSED,
        _l(
            "The card's bank is questioning this payment or has taken it back. Nothing of it can be"
            " returned beside that."
        ),
    ),
    "DISPUTE_RECORDED": (APPLIED, _l("The provider's word on the dispute is recorded.")),
    "DISPUTE_ALREADY_RECORDED": (NOOP, _l("The provider says nothing new of a dispute.")),
    "BILLING_UNAVAILABLE": (
        REFUSED,
        _l("The payment provider could not be reached or did not agree. Nothing has changed."),
    ),
    "BILLING_UNKNOWN": (
        REFUSED,
        _l("The payment provider's answer was lost. It is being asked; please look again shortly."),
    ),
    "BILLING_ALREADY_SETTLED": (NOOP, _l("The payment provider has answered already.")),
    "SUBSCRIPTION_RECORDED": (APPLIED, _l("What the provider says of billing is recorded.")),
    "SUBSCRIPTION_ALREADY_KNOWN": (NOOP, _l("The provider says nothing new about billing.")),
    "SUBSCRIPTION_NOT_YET": (REFUSED, _l("The provider is still being asked to bill this.")),
    "SUBSCRIPTION_NOT_THERE": (
        REFUSED,
        _l("The provider bills nobody for this membership. End it now, or bill it anew."),
    ),
    "SUBSCRIPTION_NOT_OURS": (
        REFUSED,
        _l("The provider bills this membership a second time, which nobody here asked for."),
    ),
    # memberships
    "MEMBERSHIP_APPLIED": (APPLIED, _l("The application has been sent.")),
    "MEMBERSHIP_ALREADY_APPLIED": (NOOP, _l("This application was sent already.")),
    "MEMBERSHIP_ALREADY_EXISTS": (
        REFUSED,
        _l("With this address there is a membership or an application for this plan already."),
    ),
    "MEMBERSHIP_APPROVED": (APPLIED, _l("The application is approved. The membership runs.")),
    "MEMBERSHIP_CHECKOUT": (
        APPLIED,
        _l("The application is approved. The membership begins with the first payment."),
    ),
    "MEMBERSHIP_SWITCHED": (APPLIED, _l("The membership is on the other plan now.")),
    "MEMBERSHIP_ALREADY_ON_PLAN": (NOOP, _l("The membership is on this plan already.")),
    "MEMBERSHIP_ALREADY_APPROVED": (NOOP, _l("This application is approved already.")),
    "MEMBERSHIP_END_SCHEDULED": (APPLIED, _l("The end of the membership is set.")),
    "MEMBERSHIP_ENDED": (APPLIED, _l("The membership has ended.")),
    "MEMBERSHIP_END_REACHED": (
        REFUSED,
        _l("The end of this membership has come, so it cannot go on."),
    ),
    "MEMBERSHIP_RESUMED": (APPLIED, _l("The membership goes on.")),
    "MEMBERSHIP_NOT_SCHEDULED": (NOOP, _l("No end is set for this membership.")),
    "PLAN_CHANGED": (
        REFUSED,
        _l("What you would agree to has changed meanwhile. Please read it once more."),
    ),
    "PLAN_RETIRED": (
        REFUSED,
        _l("The plan of this membership is no longer offered, so it cannot go on."),
    ),
    "MEMBERSHIP_ALREADY_ENDED": (NOOP, _l("This membership has ended already.")),
    "MEMBERSHIP_ALREADY_SCHEDULED": (NOOP, _l("The end of this membership is set already.")),
    "MEMBERSHIP_STATE_CHANGED": (
        ("noop", "conflict"),
        _l("Somebody changed this membership meanwhile. Nothing was done."),
    ),
    "MEMBERSHIP_PAUSED": (
        REFUSED,
        _l("This membership is paused. What it gives comes back when it goes on."),
    ),
    "APPLICATION_UNDER_REVIEW": (
        REFUSED,
        _l("Nobody has decided on this application yet. Approve or reject it."),
    ),
    "CHECKOUT_IN_PROGRESS": (
        REFUSED,
        _l("A first payment is open, and its money may land any moment. Please wait for it."),
    ),
    "NOT_AN_APPLICATION": (REFUSED, _l("This was decided already, so it cannot be rejected.")),
    # plans that can be joined
    "PLAN_CREATED": (APPLIED, _l("The plan is offered. Its address can be given out.")),
    "PLAN_ALREADY_CREATED": (NOOP, _l("This plan was made already.")),
    "PLAN_CODE_TAKEN": (
        REFUSED,
        _l("Another plan has this code already. Please choose another one."),
    ),
    "PLAN_UPDATED": (
        APPLIED,
        _l("The plan is changed. Whoever has joined keeps what they agreed to."),
    ),
    "PLAN_UNCHANGED": (NOOP, _l("The plan is like this already.")),
    "PLAN_NOW_RETIRED": (
        APPLIED,
        _l("The plan is no longer offered. Its memberships are being ended, one by one."),
    ),
    "PLAN_ALREADY_RETIRED": (NOOP, _l("This plan is retired already.")),
    "PLAN_NOT_SOLD": (REFUSED, _l("This plan is retired, so it is not changed any more.")),
    "PLAN_PRICE_BELOW_MINIMUM": (
        REFUSED,
        _l("%(amount)s is too small for a card. Ask for more, or for payment at the desk."),
    ),
    "TERMS_VERSION_KEPT": (
        REFUSED,
        _l("The terms read differently now, so their version needs another name."),
    ),
    # plans of stays
    "STAY_PLAN_CREATED": (
        APPLIED,
        _l("The plan is on sale at the desk. Where it is sold at entrances, those say."),
    ),
    "STAY_PLAN_UPDATED": (
        APPLIED,
        _l("The plan is changed. What is booked already keeps its price and its tax."),
    ),
    "STAY_PLAN_WITHDRAWN": (
        APPLIED,
        _l("The plan is withdrawn from sale. What is booked of it stays booked."),
    ),
    "STAY_PLAN_HAS_TICKETS": (
        REFUSED,
        _l(
            "Ticket books that were sold pay for this plan until %(day)s, so it is sold until then."
        ),
    ),
    "STAY_PLAN_ALREADY_WITHDRAWN": (NOOP, _l("This plan is withdrawn from sale already.")),
    "STAY_PLAN_SOLD_AGAIN": (APPLIED, _l("The plan is on sale again.")),
    "STAY_PLAN_ALREADY_SOLD": (NOOP, _l("This plan is on sale already.")),
    "STAY_PLAN_KIND_FIXED": (
        REFUSED,
        _l("Stays have been booked of this plan, so its kind and its unit stay. Make another one."),
    ),
    "STAY_PLAN_BELOW_MINIMUM": (
        REFUSED,
        _l("%(amount)s is too small for a card. Ask for more, or for nothing."),
    ),
    "STAY_PLAN_AMOUNT_IMPOSSIBLE": (
        REFUSED,
        _l("A price and a deposit are from nothing to %(amount)s."),
    ),
    "STAY_PLAN_NOT_ON_SALE": (
        REFUSED,
        _l("This plan is no longer on sale. Please choose another one."),
    ),
    # keys
    "KEY_ISSUED": (APPLIED, _l("The lock has confirmed the key.")),
    "KEY_ALREADY_ISSUED": (NOOP, _l("The lock has confirmed this key already.")),
    "KEY_NOT_CONFIRMED": (("noop", "refused"), _l("The lock has not confirmed the key yet.")),
    "KEY_REVOKE_ASKED": (APPLIED, _l("The lock has been asked to remove the key.")),
    "KEY_REVOKED": (APPLIED, _l("The lock has confirmed that the key is gone.")),
    "KEY_FAILED": (APPLIED, _l("The lock has refused the key.")),
    "KEY_MISSING": (APPLIED, _l("The key is no longer on the lock.")),
    "KEY_ORDERED": (
        APPLIED,
        _l("A new key has been ordered. It counts once the lock confirms it."),
    ),
    "KEY_STATE_CHANGED": (CONFLICT, _l("This key changed meanwhile. Nothing was done.")),
    "LOCK_UNAVAILABLE": (REFUSED, _l("The lock controller could not be reached.")),
    "LOCK_ASKED_AGAIN": (APPLIED, _l("The lock will be asked again.")),
    "LOCK_ANSWERED": (
        APPLIED,
        _l("The lock controller has answered. Its keys are being looked at."),
    ),
    "LOCK_NOT_THERE": (REFUSED, _l("The lock controller does not know this lock.")),
    "LOCK_NOT_STUCK": (NOOP, _l("This waits for nobody: the lock is being asked by itself.")),
    # messages and machinery
    "MESSAGE_REQUEUED": (APPLIED, _l("The message will be sent.")),
    "MESSAGE_DROPPED": (APPLIED, _l("The message will not be sent.")),
    "MESSAGE_RECORDED": (APPLIED, _l("The message was delivered; it is recorded as sent.")),
    "MESSAGE_NOT_WAITING": (NOOP, _l("This message waits for nobody.")),
    "EVENT_REPLAYED": (APPLIED, _l("The event will be worked on again.")),
    "EVENT_ALREADY_HANDLED": (NOOP, _l("Somebody has dealt with this already.")),
    "EVENT_DISMISSED": (APPLIED, _l("This is closed; nothing more will be done about it.")),
    "CHANNEL_UNAVAILABLE": (REFUSED, _l("The message channel could not be reached.")),
    # gate
    "WALK_IN_NOT_ALLOWED": (REFUSED, _l("This entrance is for guests with a reservation.")),
    "MEMBERS_ONLY_PLAN": (
        REFUSED,
        _l("This is for members, and no membership gives it at that time."),
    ),
    "PLAN_NOT_IN_CONFIG": (REFUSED, _l("This plan is not sold here.")),
    "GUEST_BLOCKED": (REFUSED, _l("This guest cannot be admitted. Please ask a manager.")),
    "ENTRANCE_CLOSED": (REFUSED, _l("This entrance is closed. It opens at %(opens_at)s.")),
    "ENTRANCE_FULL": (REFUSED, _l("There is no room for another guest here just now.")),
    "ASK_AT_DESK": (REFUSED, _l("Please ask at the desk.")),
    # kiosk
    "KIOSK_OPENED": (APPLIED, _l("Here is your stay.")),
    "KIOSK_NOTHING_FOUND": (
        REFUSED,
        _l("Nothing was found for this. Check both fields, or ask at the desk."),
    ),
    "KIOSK_CLOSED": (APPLIED, _l("Thank you.")),
    "KIOSK_CLOSED_ALREADY": (NOOP, _l("Thank you.")),
    # everyone
    "NOT_FOUND": (REFUSED, _l("There is nothing here.")),
    "NOT_PERMITTED": (REFUSED, _l("Your role does not allow this.")),
    "STALE_PAGE": (CONFLICT, _l("The page was out of date. Nothing was done.")),
    "FORM_EXPIRED": (
        REFUSED,
        _l("This page was open for too long. Nothing was saved; check it and send it again."),
    ),
}

# Machine → state → its name. Nouns that come later are here already: their tables are.
STATES: Mapping[str, Mapping[str, Any]] = {
    "membership": {
        "applying": _l("Applying"),
        "checkout": _l("In checkout"),
        "active": _l("Active"),
        "past_due": _l("Past due"),
        "scheduled_to_end": _l("Ending"),
        "ended": _l("Ended"),
    },
    "stay": {
        "reserved": _l("Reserved"),
        "no_show": _l("No-show"),
        "admitted": _l("In house"),
        "cancelled": _l("Cancelled"),
        "departed": _l("Departed"),
    },
    "entry_key": {
        "requested": _l("Being set"),
        "issued": _l("On the lock"),
        "missing": _l("Missing from the lock"),
        "revoking": _l("Being removed"),
        "failed": _l("Refused by the lock"),
        "revoked": _l("Removed"),
    },
    "payment": {
        "open": _l("Open"),
        "processing": _l("Processing"),
        "unknown": _l("Unknown"),
        "succeeded": _l("Paid"),
        "refund_owed": _l("Refund owed"),
        "canceled": _l("Not paid"),
        "refunded": _l("Refunded"),
    },
    "refund": {
        "asked": _l("Asked for"),
        "unknown": _l("Unknown"),
        "pending": _l("On its way"),
        "succeeded": _l("Refunded"),
        "failed": _l("Failed"),
    },
    "order": {
        "paid": _l("Paid"),
        "queued": _l("Queued"),
        "fulfilling": _l("Being fulfilled"),
        "failed": _l("Failed"),
        "refunded": _l("Refunded"),
        "fulfilled": _l("Fulfilled"),
    },
    "supply": {
        "offered": _l("Offered"),
        "matched": _l("Matched"),
        "executing": _l("Being executed"),
        "execution_failed": _l("Execution failed"),
        "cancelled": _l("Cancelled"),
        "completed": _l("Completed"),
        "refunded": _l("Refunded"),
    },
    "settlement": {
        "awaiting_delivery": _l("Awaiting delivery"),
        "window_open": _l("Settlement window open"),
        "held": _l("Held"),
        "delivery_failed": _l("Delivery failed"),
        "settled": _l("Settled"),
    },
    "webhook_event": {
        "processing": _l("Waiting"),
        "completed": _l("Done"),
    },
}

# Machine → event → what happened, as a line of a timeline.
EVENTS: Mapping[str, Mapping[str, Any]] = {
    "membership": {
        "created": _l("Applied for membership"),
        "approved_for_checkout": _l("Approved, to be paid"),
        "approved_for_desk_billing": _l("Approved, billed at the desk"),
        "first_payment_landed": _l("First payment received"),
        "payment_overdue": _l("Payment overdue"),
        "payment_recovered": _l("Payment recovered"),
        "end_scheduled": _l("End scheduled"),
        "resumed": _l("Resumed"),
        "ended": _l("Ended"),
    },
    "stay": {
        "created": _l("Booked"),
        "admitted": _l("Checked in"),
        "cancelled": _l("Cancelled"),
        "no_show": _l("Marked as a no-show"),
        "reinstated": _l("Reserved again"),
        "departed": _l("Checked out"),
    },
    "entry_key": {
        "created": _l("Key ordered"),
        "set_on_lock": _l("Lock confirmed the key"),
        "lock_refused": _l("Lock refused the key"),
        "revoke_asked": _l("Removal asked for"),
        "vanished_from_lock": _l("Key vanished from the lock"),
        "removed_from_lock": _l("Lock confirmed the removal"),
    },
    "payment": {
        "created": _l("Payment opened"),
        "provider_processing": _l("Provider is processing"),
        "provider_succeeded": _l("Provider confirmed the payment"),
        "provider_declined": _l("Provider declined"),
        "provider_canceled": _l("Payment given up"),
        "answer_lost": _l("Provider's answer was lost"),
        "refund_owed": _l("A full refund is owed"),
        "refunded_in_full": _l("Refunded in full"),
        "refund_withdrawn": _l("Refund withdrawn"),
    },
    "refund": {
        "created": _l("Refund asked for"),
        "accepted": _l("Provider accepted the refund"),
        "provider_succeeded": _l("Provider confirmed the refund"),
        "provider_refused": _l("Provider refused the refund"),
        "provider_failed": _l("Refund failed at the provider"),
        "answer_lost": _l("Provider's answer was lost"),
        "nothing_sent": _l("Nothing had been sent"),
    },
    "order": {
        "created": _l("Ordered and paid"),
        "claimed": _l("Fulfilment begun"),
        "parked": _l("Parked"),
        "fulfilled": _l("Fulfilled"),
        "fulfilment_failed": _l("Fulfilment failed"),
        "money_returned": _l("Money returned"),
    },
    "supply": {
        "created": _l("Offered"),
        "matched": _l("Matched"),
        "cancelled": _l("Cancelled"),
        "execution_started": _l("Execution begun"),
        "completed": _l("Completed"),
        "execution_failed": _l("Execution failed"),
        "money_returned": _l("Money returned"),
    },
    "settlement": {
        "created": _l("Awaiting delivery"),
        "delivered": _l("Delivered"),
        "delivery_failed": _l("Delivery failed"),
        "window_closed": _l("Settlement window closed"),
        "disputed": _l("Disputed"),
        "dispute_cleared": _l("Dispute cleared"),
    },
    "webhook_event": {
        "created": _l("Received"),
        "completed": _l("Done"),
    },
}

ROLES: Mapping[str, Any] = {
    "front_desk": _l("Front desk"),
    "manager": _l("Manager"),
    "owner": _l("Owner"),
}

_NOW = _l("It is now: %(state)s.")
_NOW_SINCE = _l("It is now: %(state)s, since %(since)s, by %(by)s.")
_GONE = _l("It no longer exists.")


def statuses(code: Code) -> tuple[Status, ...]:
    """The statuses that may carry this code."""
    return MESSAGES[code][0]


def message(code: Code, details: Mapping[str, Any], words: Words) -> str:
    """The message of a code, its details written by `words`."""
    text = str(MESSAGES[code][1])
    if "%(" not in text:
        return text
    written = defaultdict(lambda: UNKNOWN, {name: words(value) for name, value in details.items()})
    return text % written


def standing(now: Standing, words: Words) -> str:
    """What the row is now, since when and by whom."""
    if now.state == "gone":
        return str(_GONE)
    state = state_name(now.machine, now.state)
    if now.since is None or now.by is None:
        return str(_NOW) % {"state": state}
    return str(_NOW_SINCE) % {"state": state, "since": words(now.since), "by": now.by}


# What has no machine, and yet stands in one way or another: by the kind in its records.
STANDINGS: Mapping[str, Mapping[str, Any]] = {
    "cancellation_policy": {"kept": _l("In use")},
    "plan": {"sold": _lp("stay plan", "On sale"), "withdrawn": _l("Withdrawn from sale")},
    "membership_plan": {"sold": _lp("plan", "Offered"), "retired": _l("Retired")},
    "blocklist_entry": {"listed": _l("On the blocklist"), "lifted": _l("Lifted")},
    "entrance": {"open": _lp("entrance", "Open")},
    "ticket_offer": {"sold": _lp("plan", "Offered"), "withdrawn": _l("Withdrawn")},
    "ticket_book": {"sold": _lp("ticket book", "Sold"), "taken_back": _l("Taken back")},
}


def state_name(machine: str, state: str) -> str:
    return str((STATES.get(machine) or STANDINGS[machine])[state])


def event_name(machine: str, event: str) -> str:
    return str(EVENTS[machine][event])


def role_name(role: str) -> str:
    return str(ROLES[role])


def states() -> dict[str, dict[str, dict[str, str]]]:
    """{machine: {from: {event: to}}}, for `flask states` and the documents."""
    return {
        machine.name: {state: dict(exits) for state, exits in machine.table.items()}
        for machine in MACHINES
    }
