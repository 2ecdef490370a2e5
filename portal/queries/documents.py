"""Receipts and returns of one account, as pages show them."""

from collections.abc import Sequence
from uuid import UUID

from portal import ledger
from portal.db import Row, Tx

_SHOWN = """
    d.id, d.number, d.kind, d.stay_id, d.membership_id, d.day, d.addressee, d.amount, d.currency,
    d.issued_at, d.stated,
    (select count(*) from document_copies c where c.document_id = d.id) as copies
"""


def of(tx: Tx, column: str, folio_id: UUID) -> Sequence[Row]:
    """In the order of their numbers. `column`: which account `folio_id` is of."""
    return tx.rows(
        f"select {_SHOWN} from documents d where d.{column} = :id order by d.number", id=folio_id
    )


def unstated(tx: Tx, column: str, folio_id: UUID) -> int:
    """What has arrived, less what has gone back, and stands on no document yet. Smallest unit."""
    found = tx.scalar(
        f"""
        select coalesce(-sum(l.amount), 0) from ledger_lines l
        where l.{column} = :id and l.kind = any(:money)
          and l.id > coalesce((select max(d.upto) from documents d where d.{column} = :id), 0)
        """,
        id=folio_id,
        money=list(ledger.MONEY),
    )
    return int(found)


def one(tx: Tx, document_id: UUID) -> Row | None:
    return tx.row(f"select {_SHOWN} from documents d where d.id = :id", id=document_id)
