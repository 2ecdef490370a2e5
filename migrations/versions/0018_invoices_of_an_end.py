"""What an end must prove as well: no invoice of it can be paid any more."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.execute(
        "alter table end_obligations drop constraint ck_end_obligations_kind,"
        " add constraint ck_end_obligations_kind"
        " check (kind in ('keys_gone', 'member_told', 'invoices_closed'))"
    )
