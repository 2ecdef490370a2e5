"""The fingerprint of a document that a guest has shown, for the blocklist alone."""

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.execute("alter table guests add column document_mark text")
