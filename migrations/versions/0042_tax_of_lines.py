"""What is charged for, and at which rate of consumption tax. By itself: one busy table at a time."""

from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    op.execute(
        "alter table ledger_lines add column tax_rate smallint,"
        " add column item text not null default '',"
        " add constraint ck_ledger_lines_tax_rate"
        " check (tax_rate is null or kind in ('charge', 'charge_reversed', 'fee')"
        " and tax_rate between 0 and 99) not valid,"
        " add constraint ck_ledger_lines_item"
        " check (item = '' or item = 'lodging_tax' and kind in ('charge', 'charge_reversed'))"
        " not valid"
    )
