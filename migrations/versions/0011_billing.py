"""What is asked of the provider that bills memberships, and what it has said and granted."""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"

SQL = Path(__file__).parent.parent / "sql" / "0011_billing.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
