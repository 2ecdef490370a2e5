"""Look the rows of the new columns through, and index them, beside the work: nobody waits."""

from alembic import op

revision = "0010"
down_revision = "0009"

INDEXES = {"ix_stays_membership": "stays", "ix_outbox_membership": "outbox"}
UNCHECKED = {
    "stays": ("fk_stays_facility_id_membership_id_memberships",),
    "outbox": ("fk_outbox_facility_id_membership_id_memberships", "ck_outbox_subject"),
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for index, table in INDEXES.items():
            # What a cancelled build left is not valid, and "if not exists" would keep it.
            op.execute(f"drop index concurrently if exists {index}")
            op.execute(
                f"create index concurrently {index} on {table} (facility_id, membership_id)"
                " where membership_id is not null"
            )
        for table, constraints in UNCHECKED.items():
            for constraint in constraints:
                op.execute(f"alter table {table} validate constraint {constraint}")
