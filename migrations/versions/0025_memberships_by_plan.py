"""Memberships by their plan: listed, counted by state, and looked for where it is retired. Built
beside the work: nobody waits."""

from alembic import op

revision = "0025"
down_revision = "0024"

INDEXES = {
    "ix_memberships_plan_listed": "(facility_id, plan_id, created_at, id)",
    "ix_memberships_plan_state": "(facility_id, plan_id, state, created_at, id)",
    "ix_memberships_to_retire": (
        "(plan_id, next_look_at) where state in ('applying', 'checkout', 'active', 'past_due')"
    ),
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for index, what in INDEXES.items():
            # What a cancelled build left is not valid, and "if not exists" would keep it.
            op.execute(f"drop index concurrently if exists {index}")
            op.execute(f"create index concurrently {index} on memberships {what}")
        # The newer one begins like it.
        op.execute("drop index concurrently if exists ix_memberships_plan")
