"""Look the audits of the gate through beside the work: nobody waits."""

from alembic import op

revision = "0035"
down_revision = "0034"

UNCHECKED = (
    "ck_gate_audits_asks",
    "fk_gate_audits_facility_id_entrance_id_entrances",
    "fk_gate_audits_facility_id_blocklist_entry_id_blocklist_entries",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = 0")  # it waits for others, and nobody waits for it
        for constraint in UNCHECKED:
            op.execute(f"alter table gate_audits validate constraint {constraint}")
