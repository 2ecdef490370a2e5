"""A book of tickets stands on the account of the stay on which it was sold. By itself: one busy table
at a time."""

from alembic import op

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    op.execute(
        "alter table ledger_lines drop constraint ck_ledger_lines_item,"
        " add constraint ck_ledger_lines_item"
        " check (item = '' or item in ('lodging_tax', 'ticket_book')"
        " and kind in ('charge', 'charge_reversed')) not valid"
    )
