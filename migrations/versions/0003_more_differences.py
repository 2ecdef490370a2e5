"""Messages beside the mail archive, codes of other digits; and a code is never let be."""

from pathlib import Path

from alembic import op

from migrations.dirty import stop_where

revision = "0003"
down_revision = "0002"

SQL = Path(__file__).parent.parent / "sql" / "0003_more_differences.sql"


def upgrade() -> None:
    stop_where(
        op.get_bind(),
        "select id from divergences where let_be and kind like 'code%'",
        "codes at a door that were let be; set let_be to false: each is raised again if it stands",
    )
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
