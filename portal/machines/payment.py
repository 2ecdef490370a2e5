"""A payment: one row per PaymentIntent. Partial refunds are ledger rows, not states."""

from typing import Literal, TypedDict

from portal.machines.machine import Exits, Machine

State = Literal[
    "open",
    "processing",
    "unknown",
    "succeeded",
    "refund_owed",
    "canceled",
    "refunded",
]


class Table(TypedDict):
    """One key a state: a state without its row of exits does not type-check."""

    open: Exits
    processing: Exits
    unknown: Exits
    succeeded: Exits
    refund_owed: Exits
    canceled: Exits
    refunded: Exits


TABLE: Table = {
    "open": {
        "provider_processing": "processing",
        "provider_succeeded": "succeeded",
        "provider_canceled": "canceled",
        "answer_lost": "unknown",
    },
    "processing": {
        "provider_succeeded": "succeeded",
        "provider_declined": "open",
        "provider_canceled": "canceled",
        "answer_lost": "unknown",
    },
    "unknown": {
        "provider_processing": "processing",
        "provider_declined": "open",
        "provider_succeeded": "succeeded",
        "provider_canceled": "canceled",
    },
    "succeeded": {
        "refund_owed": "refund_owed",
    },
    "refund_owed": {
        "refunded_in_full": "refunded",
        "refund_withdrawn": "succeeded",
    },
    "canceled": {},
    "refunded": {
        "refund_withdrawn": "succeeded",
    },
}


def exits(state: State) -> Exits:
    """The row of `state`. Total: mypy indexes the table with every member of State."""
    return TABLE[state]


MACHINE = Machine.of("payment", initial="open", table=TABLE)
