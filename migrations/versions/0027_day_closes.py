"""The day's close."""

from pathlib import Path

from alembic import op

revision = "0027"
down_revision = "0026"

SQL = Path(__file__).parent.parent / "sql" / "0027_day_closes.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
