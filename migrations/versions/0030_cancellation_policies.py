"""Cancellation policies, each version of their terms, and its steps."""

from pathlib import Path

from alembic import op

revision = "0030"
down_revision = "0026"

SQL = Path(__file__).parent.parent / "sql" / "0030_cancellation_policies.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
