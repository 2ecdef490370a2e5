"""Links that end some time after what they show."""

from pathlib import Path

from alembic import op

revision = "0028"
down_revision = "0027"

SQL = Path(__file__).parent.parent / "sql" / "0028_links_end.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
