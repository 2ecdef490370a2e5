"""A lock command whose claim lapsed is one whose answer was lost."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"

SQL = Path(__file__).parent.parent / "sql" / "0006_lapsed_claims.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
