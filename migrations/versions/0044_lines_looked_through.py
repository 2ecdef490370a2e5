"""Look the rows of the new columns through beside the work: nobody waits."""

from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for constraint in ("ck_ledger_lines_tax_rate", "ck_ledger_lines_item"):
            op.execute(f"alter table ledger_lines validate constraint {constraint}")
