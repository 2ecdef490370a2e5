"""Lodging tax: what a night costs at which price, by the day from which it holds."""

from pathlib import Path

from alembic import op

revision = "0046"
down_revision = "0045"

SQL = Path(__file__).parent.parent / "sql" / "0046_lodging_tax.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
