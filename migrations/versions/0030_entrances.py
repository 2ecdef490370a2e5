"""Ways into a house: hours, capacity, and what is sold there."""

from pathlib import Path

from alembic import op

revision = "0050"
down_revision = "0026"

SQL = Path(__file__).parent.parent / "sql" / "0050_entrances.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
