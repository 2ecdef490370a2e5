"""Until when a booking waits for its deposit. By itself, as every change of a busy table."""

from pathlib import Path

from alembic import op

revision = "0050"
down_revision = "0049"

SQL = Path(__file__).parent.parent / "sql" / "0050_deposit_deadlines.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
