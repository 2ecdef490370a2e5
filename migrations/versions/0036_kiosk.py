"""The tablet at an entrance: its short sessions, and stays that were booked there and left."""

from pathlib import Path

from alembic import op

revision = "0036"
down_revision = "0035"

SQL = Path(__file__).parent.parent / "sql" / "0036_kiosk.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
