"""The tablet at an entrance: its short sessions, and stays that were booked there and left."""

from pathlib import Path

from alembic import op

revision = "0056"
down_revision = "0055"

SQL = Path(__file__).parent.parent / "sql" / "0056_kiosk.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
