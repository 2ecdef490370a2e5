"""The rates of consumption tax by their day, and which of them a plan's price contains."""

from pathlib import Path

from alembic import op

revision = "0043"
down_revision = "0042"

SQL = Path(__file__).parent.parent / "sql" / "0043_tax_rates.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
