"""What is to end comes with its state, and a column that nobody read is gone. For a while both were
written into the migrations that had made them, so a house may have them already."""

from pathlib import Path

from alembic import op

revision = "0026"
down_revision = "0025"

SQL = Path(__file__).parent.parent / "sql" / "0026_ends_with_their_state.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
