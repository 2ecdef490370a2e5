"""What a stay keeps of its plan as it was booked, and how many persons it is of. By itself, as every
change of a busy table."""

from pathlib import Path

from alembic import op

revision = "0052"
down_revision = "0051"

SQL = Path(__file__).parent.parent / "sql" / "0052_stays_as_agreed.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
