"""Ways into a house: hours, capacity, and what is sold there."""

from pathlib import Path

from alembic import op

revision = "0030"
down_revision = "0029"

SQL = Path(__file__).parent.parent / "sql" / "0030_entrances.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
