"""Card payments and refunds: what people ask for, and what the provider tells."""

from functools import partial
from typing import Any
from uuid import uuid4

from portal.jobs import drain
from portal.verbs import disputes, payment_answers, payments, refunds
from tests.matrix import scenes
from tests.matrix.act import Act, Doing, asking, event, job
from tests.matrix.scenes import PRICE


def ask(do: Doing, form: Any, amount: int, **more: Any) -> Any:
    return do.at_desk(refunds.ask, do["payment"], amount, form, **more)


def opening(name: str, scene: scenes.Scene) -> Act:
    """The guest presses; the same press in a second tab is no other attempt."""

    def press(do: Doing) -> Any:
        return do.at_desk(payments.open_payment, do["stay"], "balance")

    return Act(f"payments.open_payment {name}", scene, press, press)


UNHEARD = scenes.paid_and_unheard

ACTS = (
    opening("the first", scenes.a_reserved_stay),
    opening("at another price", scenes.an_open_payment_of_the_old_price),
    opening("after a lost answer", scenes.a_payment_whose_answer_was_lost),
    asking("payments.cancel_attempt", scenes.an_open_payment, payments.cancel_attempt, "payment"),
    asking("payment_answers.resolve paid", UNHEARD, payment_answers.resolve, "payment"),
    asking("payment_answers.resolve found", scenes.a_payment_whose_answer_was_lost,
           payment_answers.resolve, "payment"),
    asking("payment_answers.resolve nothing there", scenes.a_payment_that_never_arrived,
           payment_answers.resolve, "payment"),
    Act(
        "refunds.ask the whole",
        scenes.with_a_form(scenes.a_reserved_stay_paid_by_card),
        lambda do: ask(do, do["form"], PRICE),
        lambda do: ask(do, uuid4(), PRICE),
    ),
    # A colleague's concession on a fresh form would be a second one.
    Act(
        "refunds.ask a concession",
        scenes.with_a_form(scenes.a_reserved_stay_paid_by_card),
        lambda do: ask(do, do["form"], 1000, lowers_price=True),
    ),
    asking("refunds.send", scenes.a_refund_whose_answer_was_lost, refunds.send, "refund"),
    job("drain refunds owed", scenes.an_owed_refund, drain.drain, "refunds"),
    job("drain refunds unknown", scenes.a_refund_whose_answer_was_lost, drain.drain, "refunds"),
    job("drain payments unheard", scenes.paid_and_due_for_reading, drain.drain, "payments"),
    job("drain payments unwanted", scenes.cancelled_with_an_open_payment, drain.drain, "payments"),
    job("drain payments refunds", scenes.refunds_due_for_reading, drain.drain, "payments"),
    event("event succeeded", UNHEARD),
    event("event succeeded, inline", UNHEARD, mode="inline"),
    event("event succeeded, paid twice", scenes.paid_twice),
    event("event succeeded, cancelled", scenes.paid_and_cancelled_in_between),
    event("event succeeded, another amount", scenes.paid_something_else),
    event("event unreadable", scenes.an_event_that_nobody_can_read),
    event("event processing", scenes.tried_with("pm_card_processing", "payment_intent.processing")),
    event("event declined", scenes.tried_with("pm_card_visa_chargeDeclined",
                                              "payment_intent.payment_failed")),
    event("event declined late", scenes.tried_with("pm_card_processing",
                                                   "payment_intent.payment_failed", "declined")),
    event("event canceled", scenes.cancelled_at_the_provider),
    event("event refund of the dashboard", scenes.a_refund_of_the_dashboard("refund.created")),
    event("event charge refunded", scenes.a_refund_of_the_dashboard("charge.refunded")),
    event("event refund failed", scenes.a_refund_that_fails_later),
    event("event disputed", scenes.disputed),
    event("event dispute lost", partial(scenes.disputed, status="lost")),
    event("event dispute won", partial(scenes.disputed, status="won")),
    asking("disputes.ask", scenes.disputed, disputes.ask, "payment"),
    event("event refund failed, inline", scenes.a_refund_that_fails_later, mode="inline"),
)  # fmt: skip
