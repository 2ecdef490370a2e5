"""Books of tickets: what is offered, what was sold, and every ticket that was taken of it."""

from pathlib import Path

from alembic import op

revision = "0054"
down_revision = "0053"

SQL = Path(__file__).parent.parent / "sql" / "0054_ticket_books.sql"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SQL.read_text(encoding="utf-8").replace("%", "%%"))
