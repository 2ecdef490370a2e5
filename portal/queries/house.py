"""The house itself, as its managers see it."""

from portal.db import Row, Tx


def settings(tx: Tx) -> Row:
    found = tx.row(
        "select benefits_while_past_due, issuer_name, tax_number, register_required, deposit_hours"
        " from facilities where id = :id",
        id=tx.facility_id,
    )
    if found is None:
        raise LookupError("a house that is in use is not there")
    return found
