"""Whether a house goes on giving to members whose payment is overdue. By itself: every other table
refers to this one."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.execute(
        "alter table facilities"
        " add column benefits_while_past_due boolean not null default false"
    )
