"""An index on what was mailed and when, built beside the work: nobody waits for it."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        # What a cancelled build left is not valid, and "if not exists" would keep it.
        op.execute("drop index concurrently if exists ix_outbox_mailed")
        op.execute(
            "create index concurrently ix_outbox_mailed on outbox (facility_id, sent_at, id)"
            " where channel = 'email' and sent_at is not null"
        )
