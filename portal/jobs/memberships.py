"""Ends whose time has come, what they must still prove, members of plans that are retired, and what
the provider is to be asked of memberships that it bills."""

from collections.abc import Callable, Sequence

from portal import log
from portal.db import SYSTEM, Row, transaction
from portal.jobs.house import House
from portal.outcome import Outcome, Refused
from portal.verbs import billing_legs, membership_plans, membership_proofs, subscription_answers
from portal.verbs.membership_end import Ending, end_membership

BATCH = 20

REACHED = Ending("end_reached")
UNPAID = Ending("checkout_expired")
RETIRED = Ending("plan_retired", when="period_end")


def look(house: House) -> int:
    """One batch of each. Returns how much came to its end, so that nothing is asked in vain."""
    work = (resolve_due, read_due, end_due, prove_due, retire_due)
    return sum(one(house) for one in work)


def resolve_due(house: House) -> int:
    """Acts at the provider whose end nobody knows. Returns how many are settled now."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from legs_to_read(:batch)", batch=BATCH)
    return _applied(
        "leg_read", due, lambda row: billing_legs.resolve(house.desk(row.facility_id), row.id)
    )


def read_due(house: House) -> int:
    """Subscriptions that an event left open, or that should have been heard of by now."""
    with transaction(None) as tx:
        due = tx.rows(
            "select membership_id as id, facility_id from subscriptions_to_read(:batch)",
            batch=BATCH,
        )
    return _applied(
        "subscription_read",
        due,
        lambda row: subscription_answers.read(house.desk(row.facility_id), row.id),
    )


def end_due(house: House) -> int:
    """Ends that have come, and checkouts that nobody has paid."""
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id, state from memberships_to_end(:batch)", batch=BATCH)
    return _applied(
        "membership_end_reached",
        due,
        lambda row: end_membership(
            house.desk(row.facility_id),
            SYSTEM,
            row.id,
            UNPAID if row.state == "checkout" else REACHED,
        ),
    )


def _applied(what: str, due: Sequence[Row], do: Callable[[Row], Outcome]) -> int:
    """How many of them moved. One that cannot be done holds up no other."""
    moved = 0
    for row in due:
        try:
            said = do(row)
        except Exception:
            logger.exception(f"{what}_failed", row=str(row.id))
        else:
            moved += said.status == "applied"
            logger.info(what, row=str(row.id), code=said.code)
    return moved


def prove_due(house: House) -> int:
    with transaction(None) as tx:
        due = tx.rows("select id, facility_id from obligations_to_prove(:batch)", batch=BATCH)
    proven = 0
    for row in due:
        proven += membership_proofs.prove(house.desk(row.facility_id), row.id)
    return proven


def retire_due(house: House) -> int:
    """What was taken is due again later: one that cannot be ended yet holds up no other."""
    with transaction(None) as tx:
        due = tx.rows(
            "select id, facility_id, tries from memberships_of_retired_plans(:batch)", batch=BATCH
        )
    for row in due:
        try:
            said = end_membership(house.desk(row.facility_id), SYSTEM, row.id, RETIRED)
            if isinstance(said, Refused):
                _keep_answer(row, said)
        except Exception:
            logger.exception("membership_not_retired", membership=str(row.id))
        else:
            logger.info("membership_retired", membership=str(row.id), code=said.code)
    return len(due)


def _keep_answer(row: Row, said: Refused) -> None:
    with transaction(row.facility_id) as tx:
        membership_plans.keep_answer(tx, row.id, said.code)


logger = log.get(__name__)
