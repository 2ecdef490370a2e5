"""Receipts and what returns them: numbered without gaps, stated once, never changed."""

from pathlib import Path

from alembic import op

revision = "0045"
down_revision = "0044"

SQL = Path(__file__).parent.parent / "sql" / "0045_documents.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
