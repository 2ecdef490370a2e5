"""Plans of stays are made and changed on pages, and the register has an entry for each person. The
rows of the columns before are looked through first, beside the work: nobody waits."""

from pathlib import Path

from alembic import op

revision = "0053"
down_revision = "0052"

SQL = Path(__file__).parent.parent / "sql" / "0053_plans_and_registers.sql"
UNCHECKED = ("ck_stays_tax_class", "ck_stays_unit_price", "ck_stays_persons")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for constraint in UNCHECKED:
            op.execute(f"alter table stays validate constraint {constraint}")
        op.execute("reset lock_timeout")
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
