"""The backbone: tables, row-level security, guard triggers, the app's role."""

import os
from pathlib import Path

from alembic import op
from sqlalchemy import text
from sqlalchemy.engine import make_url

revision = "0001"
down_revision = None

SQL = Path(__file__).parent.parent / "sql"


def upgrade() -> None:
    app_role()
    run("0001_tables.sql")
    run("0001_guards.sql")


def app_role() -> None:
    """Create `portal_app` where it is missing, with the password that DATABASE_URL carries."""
    connection = op.get_bind()
    if not connection.scalar(text("select 1 from pg_roles where rolname = 'portal_app'")):
        connection.execute(
            text("create role portal_app login nosuperuser nocreatedb nocreaterole nobypassrls")
        )
    url = make_url(os.environ.get("DATABASE_URL", "postgresql://portal_app@localhost/"))
    if url.username == "portal_app" and url.password:
        quoted = connection.scalar(text("select quote_literal(:password)"), {"password": url.password})
        statement = f"alter role portal_app password {quoted}"
        connection.exec_driver_sql(statement.replace("%", "%%"))


def run(name: str) -> None:
    op.get_bind().exec_driver_sql((SQL / name).read_text(encoding="utf-8").replace("%", "%%"))
