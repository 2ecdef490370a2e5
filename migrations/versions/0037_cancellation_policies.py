"""Cancellation policies, each version of their terms, and its steps."""

from pathlib import Path

from alembic import op

revision = "0037"
down_revision = "0036"

SQL = Path(__file__).parent.parent / "sql" / "0037_cancellation_policies.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
