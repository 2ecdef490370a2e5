"""Memberships of plans that are retired: found, asked to end, and why one could not yet."""

from pathlib import Path

from alembic import op

revision = "0024"
down_revision = "0023"

SQL = Path(__file__).parent.parent / "sql" / "0024_ends_of_retired_plans.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
