"""What a house has decided about itself."""

from portal.db import Actor, Tx
from portal.outcome import Applied, Code, Noop, Outcome, Refused
from portal.policies import tax

LONGEST_HOLD = 366 * 24
"""Hours."""


def choose_benefits(tx: Tx, actor: Actor, while_past_due: bool) -> Outcome:
    """Whether members keep what their membership gives while a payment of theirs is overdue. The
    gate reads it anew each time: what is booked already is decided by it as well."""
    changed = tx.run(
        """
        update facilities set benefits_while_past_due = :wanted
        where id = :id and benefits_while_past_due <> :wanted
        """,
        id=tx.facility_id,
        wanted=while_past_due,
    )
    return _saved(tx, changed.rowcount)


def name_issuer(tx: Tx, actor: Actor, issuer_name: str, tax_number: str | None) -> Outcome:
    """Who issues the receipts from now on, and under which registration as an issuer of qualified
    invoices; None without one. What was issued states what it stated."""
    if tax_number and not tax.is_registration(tax_number):
        return Refused(Code.TAX_NUMBER_WRONG)
    changed = tx.run(
        """
        update facilities set issuer_name = :name, tax_number = :number
        where id = :id and (issuer_name, tax_number) is distinct from (:name, :number)
        """,
        id=tx.facility_id,
        name=issuer_name,
        number=tax_number,
    )
    return _saved(tx, changed.rowcount)


def require_register(tx: Tx, actor: Actor, required: bool) -> Outcome:
    """Whether the gate lets a guest of lodging in only once the register of guests is complete."""
    changed = tx.run(
        """
        update facilities set register_required = :wanted
        where id = :id and register_required <> :wanted
        """,
        id=tx.facility_id,
        wanted=required,
    )
    return _saved(tx, changed.rowcount)


def hold_for_deposit(tx: Tx, actor: Actor, hours: int | None) -> Outcome:
    """How long a booking that asks for a deposit holds its space; None: without end. What is booked
    already keeps the deadline that its guest was told."""
    if hours is not None and not 1 <= hours <= LONGEST_HOLD:
        return Refused(Code.DEPOSIT_HOURS_IMPOSSIBLE)
    changed = tx.run(
        """
        update facilities set deposit_hours = :hours
        where id = :id and deposit_hours is distinct from :hours
        """,
        id=tx.facility_id,
        hours=hours,
    )
    return _saved(tx, changed.rowcount)


def _saved(tx: Tx, changed: int) -> Outcome:
    if changed:
        return Applied(Code.SETTINGS_SAVED, to="saved", subject=tx.facility_id)
    if tx.scalar("select 1 from facilities where id = :id", id=tx.facility_id) is None:
        return Refused(Code.NOT_FOUND)
    return Noop(Code.SETTINGS_UNCHANGED, subject=tx.facility_id)
