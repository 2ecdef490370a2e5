"""Memberships: plans, members, the life of a membership and what its end must prove."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"

SQL = Path(__file__).parent.parent / "sql" / "0007_memberships.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
