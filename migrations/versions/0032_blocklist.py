"""The blocklist, its keys, and the grounds on which the law lets a house refuse lodging."""

from pathlib import Path

from alembic import op

revision = "0032"
down_revision = "0031"

SQL = Path(__file__).parent.parent / "sql" / "0032_blocklist.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
