"""Disputes of card payments."""

from pathlib import Path

from alembic import op

revision = "0029"
down_revision = "0028"

SQL = Path(__file__).parent.parent / "sql" / "0029_disputes.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
