"""Deposits: how long they are waited for, and what ends without them."""

from portal.jobs import sweeps
from portal.verbs import deposits, facilities
from tests.matrix import scenes
from tests.matrix.act import button, event, form, job

SWEEP = sweeps.end_missed_deposits

ACTS = (
    form("facilities.hold_for_deposit", scenes.a_house_of_managers, facilities.hold_for_deposit,
         "hours"),
    button("deposits.set_deadline", scenes.a_booking_that_waits, deposits.set_deadline, "later"),
    button("deposits.set_deadline lifted", scenes.a_booking_that_waits, deposits.set_deadline,
           "lifted"),
    job("sweeps.end_missed_deposits", scenes.a_deposit_that_never_came, SWEEP),
    job("sweeps.end_missed_deposits in part", scenes.a_deposit_that_came_in_part, SWEEP),
    job("sweeps.end_missed_deposits at the card form", scenes.a_deposit_with_an_open_attempt,
        SWEEP),
    job("sweeps.end_missed_deposits paid", scenes.a_deposit_paid_and_unheard, SWEEP),
    event("event amount set aside and let go", scenes.a_deposit_that_is_let_go),
)  # fmt: skip
