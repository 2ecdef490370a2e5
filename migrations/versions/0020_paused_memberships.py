"""A membership that is paused at the card provider: it stays what it is, and gives nothing."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.execute("alter table memberships add column paused boolean not null default false")
