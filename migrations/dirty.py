"""Before a migration forbids something, it looks whether somebody has it."""

from sqlalchemy import Connection

NAMED = 20
"""How many rows the message names; the count tells of the rest."""


def stop_where(connection: Connection, query: str, what: str) -> None:
    """Stop the upgrade before any change where `query` finds rows, and name them by their ids.

    Nothing is merged or deleted by itself: which of two rows is true, a person has to say.
    """
    found = connection.exec_driver_sql(query.replace("%", "%%")).scalars().all()
    if found:
        named = ", ".join(str(one) for one in found[:NAMED])
        raise SystemExit(f"the upgrade stopped, nothing was changed. {len(found)} {what}: {named}")
