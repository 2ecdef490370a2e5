"""The register of guests: sealed, read for a reason, gone after three years."""

from pathlib import Path

from alembic import op

revision = "0047"
down_revision = "0046"

SQL = Path(__file__).parent.parent / "sql" / "0047_guest_register.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
