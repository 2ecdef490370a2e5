"""Plans of stays that only members may book. By itself, as every change of a busy table."""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.execute("alter table plans add column members_only boolean not null default false")
