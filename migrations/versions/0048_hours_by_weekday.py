"""Opening hours by weekday: what held every day holds on each of the seven. A house has few
entrances, so they are written anew here."""

from pathlib import Path

from alembic import op

revision = "0048"
down_revision = "0047"

SQL = Path(__file__).parent.parent / "sql" / "0048_hours_by_weekday.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
