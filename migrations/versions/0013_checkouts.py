"""Until when an approved application may be paid; an open one ends by the same sweep as an end."""

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"

SQL = Path(__file__).parent.parent / "sql" / "0013_checkouts.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
