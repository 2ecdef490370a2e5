"""How long a house waits for deposits, and what a bank has only set aside; then what 0050 began is
looked through and indexed beside the work: nobody waits."""

from alembic import op

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # One busy table at a time. An upgrade that stopped in between is run again.
        op.execute("alter table payments add column if not exists authorised_at timestamptz")
        op.execute(
            "alter table facilities add column if not exists deposit_hours integer"
            " constraint ck_facilities_deposit_hours check (deposit_hours between 1 and 8784)"
        )
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        op.execute("alter table stays validate constraint ck_stays_deposit_by")
        # What a cancelled build left is not valid, and "if not exists" would keep it.
        op.execute("drop index concurrently if exists ix_stays_deposit_by")
        op.execute(
            "create index concurrently ix_stays_deposit_by on stays (deposit_by, id)"
            " where state = 'reserved' and deposit_by is not null"
        )
