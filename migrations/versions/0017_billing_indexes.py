"""Look the rows of the new columns through, and index them, beside the work: nobody waits."""

from alembic import op

revision = "0017"
down_revision = "0016"

INDEXES = {
    "ix_payments_membership": "payments (facility_id, membership_id)",
    "ix_refunds_membership": "refunds (facility_id, membership_id)",
    "ix_ledger_lines_membership": "ledger_lines (facility_id, membership_id, id)",
}
TABLES = ("payments", "refunds", "ledger_lines")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for index, place in INDEXES.items():
            # What a cancelled build left is not valid, and "if not exists" would keep it.
            op.execute(f"drop index concurrently if exists {index}")
            op.execute(
                f"create index concurrently {index} on {place} where membership_id is not null"
            )
        for table in TABLES:
            for constraint in (
                f"fk_{table}_facility_id_membership_id_memberships",
                f"ck_{table}_folio",
            ):
                op.execute(f"alter table {table} validate constraint {constraint}")
